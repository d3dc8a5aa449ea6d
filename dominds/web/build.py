"""The build that this process serves, named by a short hash of its version and its static files."""

import hashlib
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.contrib.staticfiles.storage import StaticFilesStorage

from dominds.version import VERSION


def build_of(folders: list[Path]) -> str:
    digest = hashlib.blake2b(VERSION.encode(), digest_size=5)
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()


def folders() -> list[Path]:
    """Return the folders of the product's static files, including those of extensions."""
    own = [Path(config.path, "static") for config in apps.get_app_configs() if config.name in settings.EXTRAS]
    return [*(Path(folder) for folder in settings.STATICFILES_DIRS), *own]


BUILD = build_of(folders())


class StampedStorage(StaticFilesStorage):
    """Static files with the build in their addresses, so that no page of a new build runs an old, cached script."""

    def url(self, name: str | None) -> str:
        return f"{super().url(name)}?v={BUILD}"
