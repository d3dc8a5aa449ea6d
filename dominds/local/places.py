"""The folders of Dominds: its own files, and its data. ``up`` reads this module, so it knows no Django."""

from pathlib import Path

from dominds import env

BASE_DIR = Path(__file__).resolve().parents[2]
# A checkout keeps its data, templates and static files side by side. An installed wheel carries the files inside the
# package, and keeps data in the folder where it was started.
IN_CHECKOUT = (BASE_DIR / "manage.py").is_file()
RESOURCES = BASE_DIR if IN_CHECKOUT else BASE_DIR / "dominds" / "resources"
HOME_DIR = BASE_DIR if IN_CHECKOUT else Path.cwd()
DATA_DIR = env.folder("DOMINDS_DATA_DIR", "var", base=HOME_DIR)
# `up` writes the address of its own Redis here, so that commands beside it find it.
REDIS_URL_FILE = DATA_DIR / "redis.url"
