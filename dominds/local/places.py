"""The folders of Dominds: its own files, and its data. ``up`` imports this module, so it must not import Django."""

from pathlib import Path

from dominds import env

BASE_DIR = Path(__file__).resolve().parents[2]
# A checkout holds data, templates and static files side by side. An installed wheel has the files inside the package,
# and puts its data into the folder where it is started.
IN_CHECKOUT = (BASE_DIR / "manage.py").is_file()
RESOURCES = BASE_DIR if IN_CHECKOUT else BASE_DIR / "dominds" / "resources"
HOME_DIR = BASE_DIR if IN_CHECKOUT else Path.cwd()
DATA_DIR = env.folder("DOMINDS_DATA_DIR", "var", base=HOME_DIR)
# `up` writes the address of its Redis here, so that other commands find it.
REDIS_URL_FILE = DATA_DIR / "redis.url"
