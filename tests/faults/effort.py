"""How much is broken: a selection in ``make test``, everything in ``make faults``."""

import os

import pytest

DEEP = os.environ.get("DOMINDS_FAULTS") == "all"
everything = pytest.mark.deep  # left out of a run by tests/conftest.py unless it is a deep one
