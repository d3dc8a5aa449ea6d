"""The table of ``docs/quality.md`` in full: long talks in windows of every size, by policy, with and without recall.

``make bench BENCHMARKS=windows`` adds its rows to ``var/windows.md``. Each talk is as long as three rewrites take, at
most 200 messages; one that fills no window of its size is left out. ``DOMINDS_WINDOWS``, ``DOMINDS_WINDOW_POLICIES``,
``DOMINDS_WINDOW_SHAPES`` and ``DOMINDS_WINDOW_MESSAGES`` choose less, and ``-n 2`` runs two at once.
"""

import os
import sys
from pathlib import Path

import pytest

WHOLE = {
    "DOMINDS_WINDOWS": "2048,3000,4096,8192,32768,200000",
    "DOMINDS_WINDOW_POLICIES": "autocompaction,breaking,retention,summarize,none",
    "DOMINDS_WINDOW_SHAPES": "one-line,answers,tools,paste,paragraphs",
    "DOMINDS_WINDOW_MESSAGES": "200",
    "DOMINDS_WINDOW_TABLE": str(Path("var/windows.md").resolve()),
}

if __name__ == "__main__":
    for name, value in WHOLE.items():
        os.environ.setdefault(name, value)
    Path(os.environ["DOMINDS_WINDOW_TABLE"]).parent.mkdir(exist_ok=True)
    sys.exit(pytest.main(["tests/flows/test_windows.py", "-q", *sys.argv[1:]]))
