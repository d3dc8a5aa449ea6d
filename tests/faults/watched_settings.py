"""The product's settings, for processes that report what their transactions must not do."""

from dominds.settings import *  # noqa: F403
from dominds.settings import INSTALLED_APPS as PRODUCT

INSTALLED_APPS = [*PRODUCT, "tests.faults.watch.Watch"]
