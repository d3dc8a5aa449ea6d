"""Many short lives of the driver under a virtual clock, each repeated by its seed (``simulation.py``)."""

import subprocess
import sys

import pytest

from tests.faults.effort import DEEP
from tests.harness.stack import ROOT

pytestmark = pytest.mark.server

SECONDS = 600 if DEEP else 30  # of each kind of world, after which no new one begins


@pytest.mark.timeout(SECONDS * 2 + 120)
@pytest.mark.parametrize("database", ["sqlite", *(["postgresql"] if DEEP else [])])
@pytest.mark.parametrize(
    "worlds",
    ["tests.faults.simulation", pytest.param("tests.faults.team_worlds", marks=pytest.mark.extras)],
)
def test_no_promise_is_broken_in_any_world(worlds: str, database: str) -> None:
    """The sentence of a failure begins with its seed: ``python -m tests.faults.simulation --seeds SEED:SEED+1``."""
    seconds = SECONDS if database == "sqlite" else 120
    options = ["--database", database, "--seeds", "1:100000", "--seconds", str(seconds)]
    command = [sys.executable, "-m", worlds, *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-4_000:]
    assert ended.stdout.count(" calls, ") >= 1, "no world came to its end"
