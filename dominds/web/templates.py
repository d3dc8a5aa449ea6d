"""Template loaders that drop the indentation of lines, which only readers of the source need."""

import re
from typing import Any

from django.template.loaders import app_directories, filesystem

INDENTATION = re.compile(r"\n[ \t]+")


class OfFolders(filesystem.Loader):
    """A loader for ``DIRS``. Text inside ``<pre>`` is not affected, since it comes from variables."""

    def get_contents(self, origin: Any) -> str:
        source: str = super().get_contents(origin)
        return INDENTATION.sub("\n", source) if origin.name.endswith(".html") else source


class OfApps(OfFolders, app_directories.Loader):
    """A loader for the folders of apps."""

    get_dirs = app_directories.Loader.get_dirs
