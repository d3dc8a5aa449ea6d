"""How much is broken: a selection in ``make test``, everything in ``make faults``."""

import os

import pytest

DEEP = os.environ.get("DOMINDS_FAULTS") == "all"
everything = pytest.mark.skipif(not DEEP, reason="slow: make faults runs it")
