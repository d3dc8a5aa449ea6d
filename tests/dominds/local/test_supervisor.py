"""The supervisor alone, with parts of a line of shell: restarts, the third death, and nothing left behind."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dominds.local import supervisor as module
from dominds.local.supervisor import Part, PartKeepsDying, Supervisor
from tests.harness.stack import ROOT, eventually

pytestmark = pytest.mark.server

Shell = Callable[..., Part]


@pytest.fixture
def log_lines() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, log_lines: list[str]) -> Iterator[Supervisor]:
    made = Supervisor(os.environ, tmp_path, log_lines.append)
    yield made
    made.stop()


def shell(name: str, script: str, **options: Any) -> Part:
    return Part(name, lambda: ["sh", "-c", script], **options)


def stop_when(supervisor: Supervisor, claim: Callable[[], object], seconds: float = 10) -> Callable[[], None]:
    """Return a tick that asks the supervisor to stop once a claim holds, or when time is up."""
    deadline = time.monotonic() + seconds

    def tick() -> None:
        if claim() or time.monotonic() > deadline:
            supervisor.ending.set()

    return tick


def test_a_part_that_dies_is_started_again(supervisor: Supervisor, log_lines: list[str], tmp_path: Path) -> None:
    supervisor.start(shell("web", "echo up >> starts; [ $(wc -l < starts) -gt 1 ] && exec sleep 60; exit 3"))
    starts = tmp_path / "starts"
    supervisor.run(stop_when(supervisor, lambda: starts.exists() and len(starts.read_text().splitlines()) == 2))
    assert "web ended (code 3); starting it again" in log_lines


def test_the_third_death_within_a_minute_stops_everything_and_says_why(supervisor: Supervisor, tmp_path: Path) -> None:
    other = supervisor.start(shell("worker", "exec sleep 60"))
    supervisor.start(shell("web", "echo start >> starts; echo the port is on fire; exit 3"))
    with pytest.raises(
        PartKeepsDying, match=r"(?s)'web' ended with exit code 3, for the 3rd time.*the port is on fire"
    ):
        supervisor.run()
    assert len((tmp_path / "starts").read_text().splitlines()) == 3
    assert other.process.poll() is not None


def test_deaths_that_lie_apart_do_not_add_up(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DEATH_WINDOW_SECONDS", 0.0)
    supervisor.start(shell("web", "echo start >> starts; exit 3"))
    starts = tmp_path / "starts"
    supervisor.run(stop_when(supervisor, lambda: starts.exists() and len(starts.read_text().splitlines()) >= 5))
    assert len(starts.read_text().splitlines()) >= 5


def test_what_a_dead_part_left_behind_is_cleaned_up(supervisor: Supervisor, tmp_path: Path) -> None:
    cleaned = tmp_path / "cleaned"
    part = shell(
        "worker",
        "[ -e once ] && exec sleep 60; touch once; sleep 77 & echo $! > child; exit 1",
        after_death=cleaned.touch,
    )
    supervisor.start(part)
    supervisor.run(stop_when(supervisor, cleaned.exists))
    assert cleaned.exists()
    assert not _lives(int((tmp_path / "child").read_text()))


def test_stopping_grows_in_force_and_leaves_nothing(supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUIT_AFTER_SECONDS", 0.3)
    monkeypatch.setattr(module, "KILL_AFTER_SECONDS", 0.6)
    deaf = supervisor.start(shell("deaf", "trap '' TERM QUIT; echo ready; while :; do sleep 1; done"))
    eventually(lambda: "ready" in deaf.lines)
    started = time.monotonic()
    supervisor.stop()
    assert time.monotonic() - started < 3
    assert not psutil.pid_exists(deaf.process.pid)


def test_the_part_that_others_need_stops_last(supervisor: Supervisor, tmp_path: Path) -> None:
    script = "trap 'echo {0} >> order; exit' TERM; echo ready; while :; do sleep 0.05; done"
    first = supervisor.start(shell("redis", script.format("redis"), stops_last=True))
    second = supervisor.start(shell("web", script.format("web")))
    eventually(lambda: "ready" in first.lines and "ready" in second.lines)
    supervisor.stop()
    assert (tmp_path / "order").read_text().split() == ["web", "redis"]


def test_output_is_passed_on_by_name_or_kept(supervisor: Supervisor, log_lines: list[str]) -> None:
    supervisor.start(shell("web", "echo hello; exec sleep 60"))
    quiet = supervisor.start(shell("redis", "echo psst; exec sleep 60", quiet=True))
    eventually(lambda: "[web] hello" in log_lines and "psst" in quiet.lines)
    assert not [line for line in log_lines if "psst" in line]


def test_a_child_dies_with_its_parent_even_by_kill_9(tmp_path: Path) -> None:
    script = (
        "import os, subprocess, time; from pathlib import Path; from dominds.local.processes import spawn; "
        "child = spawn(['sleep', '60'], os.environ, subprocess.DEVNULL, Path('.')); "
        "print(child.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        child = int(parent.stdout.readline())
    eventually(lambda: psutil.Process(child).name() == "sleep")
    parent.kill()
    parent.wait()
    eventually(lambda: not _lives(child), 5)


def test_a_child_is_not_started_for_a_parent_that_is_gone(tmp_path: Path) -> None:
    launcher = ROOT / "dominds" / "local" / "launcher.py"
    done = subprocess.run([sys.executable, str(launcher), "1", "touch", str(tmp_path / "ran")], check=False)
    assert done.returncode == 1
    assert not (tmp_path / "ran").exists()


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
