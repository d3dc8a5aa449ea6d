"""All 48 stories of ``tests/dialogs/test_stories.py``: four policies in four windows over three doors. CI plays twelve.

``make bench BENCHMARKS=stories`` takes two minutes.
"""

import os
import sys

import pytest

if __name__ == "__main__":
    os.environ["DOMINDS_STORIES"] = "all"
    sys.exit(pytest.main(["tests/dialogs/test_stories.py", "-q", "--durations=5", *sys.argv[1:]]))
