"""Supervision of the parts on one machine: they are started, restarted when they die, and stopped together.

``Supervisor.run`` is the place to start reading. ``up`` decides what the parts are.
"""

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dominds.local.processes import Process, signal_group, spawn, wait_all

MAX_DEATHS = 3  # deaths of one part within DEATH_WINDOW_SECONDS that stop everything
DEATH_WINDOW_SECONDS = 60.0
TICK_SECONDS = 0.1
KEPT_LINES = 20  # newest lines of each part, shown when it keeps dying
# At TERM Celery's thread pool waits for every task, but QUIT ends it at once.
QUIT_AFTER_SECONDS = 5.0
KILL_AFTER_SECONDS = 8.0
LAST_PART_SECONDS = 1.0


@dataclass(frozen=True)
class Part:
    """A part to run. ``command`` is called at each start, so that a part may get a new name each time."""

    name: str
    command: Callable[[], Sequence[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Called after it has died and before it is restarted, to clean up. It must not wait for anything.
    after_death: Callable[[], object] | None = None
    #: Whether it is stopped after the others, which need it until then.
    stops_last: bool = False
    #: Whether its output is shown only if it keeps dying.
    quiet: bool = False


@dataclass
class Running:
    """A part with its process and its newest lines of output."""

    part: Part
    process: Process
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    deaths: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_DEATHS))  # monotonic seconds


class PartKeepsDying(Exception):
    """Raised when a part died for the third time within a minute."""

    def __init__(self, running: Running) -> None:
        code = running.process.returncode
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        last_lines = "\n".join(f"    {line}" for line in running.lines) or "    (nothing)"
        super().__init__(
            f"The part '{running.part.name}' {how}, for the {MAX_DEATHS}rd time within {DEATH_WINDOW_SECONDS:.0f} s. "
            f"Everything was stopped. Its last lines:\n{last_lines}"
        )


class Supervisor:
    """Runs parts until it is told to stop. It must run in the main thread, with which its children die."""

    def __init__(self, environment: Mapping[str, str], folder: Path, say: Callable[[str], None]) -> None:
        self.environment = dict(environment)
        self.folder = folder
        self.say = say
        self.running: list[Running] = []
        self.ending = threading.Event()
        self._kept: list[str] | None = None
        self._saying = threading.Lock()

    def run(self, each_tick: Callable[[], None] = lambda: None) -> None:
        """Watch the parts until a signal asks to stop, and then stop them.

        1. A part that has ended is cleaned up and started again.
        2. A third death of one part within a minute ends everything with ``PartKeepsDying``.
        3. ``each_tick`` is called ten times a second.
        """
        try:
            while not self.ending.wait(TICK_SECONDS):
                for running in self.running:
                    if running.process.poll() is not None:
                        self._bury(running)
                each_tick()
        finally:
            self.stop()

    def listen_for_signals(self) -> None:
        """Stop at Ctrl-C, SIGTERM, or when the terminal is closed."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self.ending.set())

    def start(self, part: Part) -> Running:
        """Start a part for the first time."""
        return self.adopt(part, self._spawn(part))

    def adopt(self, part: Part, process: Process) -> Running:
        """Watch a process that runs already. ``part`` tells how to restart it."""
        running = Running(part, process)
        self._read(running)
        self.running.append(running)
        return running

    def _spawn(self, part: Part) -> Process:
        return spawn(part.command(), {**self.environment, **part.environment}, subprocess.PIPE, self.folder)

    def _bury(self, running: Running) -> None:
        """Start a dead part again, unless it has died too often."""
        signal_group(running.process, signal.SIGKILL)  # ends children that it left
        running.deaths.append(time.monotonic())
        if len(running.deaths) == MAX_DEATHS and running.deaths[-1] - running.deaths[0] < DEATH_WINDOW_SECONDS:
            time.sleep(TICK_SECONDS)  # its last lines may still arrive
            raise PartKeepsDying(running)
        self.say(f"{running.part.name} ended (code {running.process.returncode}); starting it again")
        if running.part.after_death:
            running.part.after_death()
        running.process = self._spawn(running.part)
        self._read(running)

    def _read(self, running: Running) -> None:
        """Pass on a part's output, in a separate thread."""
        threading.Thread(target=self._pass_on, args=(running, running.process), daemon=True).start()

    def _pass_on(self, running: Running, process: Process) -> None:
        assert process.stdout is not None
        with process.stdout as output:
            for raw in output:
                line = raw.decode(errors="replace").rstrip()
                if line:
                    running.lines.append(line)
                if line and not running.part.quiet:
                    self._say_or_keep(f"[{running.part.name}] {line}")

    def _say_or_keep(self, line: str) -> None:
        with self._saying:
            if self._kept is None:
                self.say(line)
            else:
                self._kept.append(line)

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Hold back the parts' output during the block, and show it if the block fails."""
        self._kept = []
        yield
        with self._saying:
            for line in self._kept:
                self.say(line)
            self._kept = None

    def stop(self) -> None:
        """Stop every part and everything that it started. This takes at most about ten seconds."""
        first = [running.process for running in self.running if not running.part.stops_last]
        last = [running.process for running in self.running if running.part.stops_last]
        _end(first, QUIT_AFTER_SECONDS, KILL_AFTER_SECONDS)
        _end(last, LAST_PART_SECONDS, LAST_PART_SECONDS)
        self.running = []


def _end(processes: Sequence[Process], quit_after: float, kill_after: float) -> None:
    """End processes by TERM, then QUIT, then KILL, so many seconds after the first signal."""
    for process in processes:
        signal_group(process, signal.SIGTERM)
    if not wait_all(processes, quit_after):
        for process in processes:
            if process.poll() is None:
                signal_group(process, signal.SIGQUIT)
        wait_all(processes, kill_after - quit_after)
    for process in processes:
        signal_group(process, signal.SIGKILL)  # also ends processes that a part has left in its group
        process.wait()


def say(line: str) -> None:
    """Print a line at once. A reader that has closed the pipe, as in ``up | head``, must not stop the product."""
    try:
        os.write(1, f"{line}\n".encode())
    except OSError:
        return
