"""Child processes that never outlive their parent. Each has a process group, and is ended with it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

LAUNCHER = Path(__file__).with_name("launcher.py")
POLL_SECONDS = 0.05

Process = subprocess.Popen[bytes]


def spawn(command: Sequence[str], environment: Mapping[str, str], output: IO[bytes] | int, folder: Path) -> Process:
    """Start a command whose process dies with the calling *thread*, so call this from the main thread."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), *command],
        env=dict(environment),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def signal_group(process: Process, number: signal.Signals) -> None:
    """Send a signal to a process and everything that it started. It is no error if they have ended."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def wait_all(processes: Iterable[Process], seconds: float) -> bool:
    """Wait up to ``seconds`` for all processes to end, and return whether they did."""
    waiting = list(processes)
    deadline = time.monotonic() + seconds
    while any(process.poll() is None for process in waiting):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
