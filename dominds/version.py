"""The installed version of Dominds."""

from importlib.metadata import PackageNotFoundError, version


def _version() -> str:
    try:
        return version("dominds")
    except PackageNotFoundError:
        return ""


VERSION = _version()
