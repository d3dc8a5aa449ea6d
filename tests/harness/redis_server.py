"""A Redis of the tests' own, which they may kill, freeze and start again on the same port."""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from redis import Redis

from dominds.local import embedded_redis
from dominds.local.processes import Process, signal_group, spawn


@dataclass
class RedisServer:
    """One redis-server on a loopback port, with a password, without persistence."""

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="dominds-redis-")))
    place: embedded_redis.RedisPlace | None = None
    process: Process | None = None

    def __post_init__(self) -> None:
        atexit.register(self.remove)

    @property
    def url(self) -> str:
        assert self.place is not None, "start() first"
        return self.place.url

    @property
    def port(self) -> int:
        assert self.place is not None, "start() first"
        return self.place.port

    def start(self) -> "RedisServer":
        """Start it; again after a kill, on the same port and empty."""
        if self.place is None:
            self.place, self.process = embedded_redis.start_in(self.folder, self._spawn)
        else:
            self.process = self._spawn(embedded_redis.command_for(self.place))
            assert embedded_redis._wait_for(self.place, self.process), "Redis did not come back"
        return self

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return spawn(command, os.environ, log.fileno(), self.folder)

    def client(self) -> Redis:
        return Redis.from_url(self.url, socket_timeout=3)

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None:
            signal_group(self.process, number)

    def kill(self) -> None:
        """End it at once; everything in it is lost."""
        self._signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def freeze(self) -> None:
        """Stop it in its tracks: connections stay open, nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
