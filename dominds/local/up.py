"""``dominds up`` runs the whole product on this machine until Ctrl-C.

This process only waits for others, so it does not import Django, which saves 150 MB.
"""

import errno
import fcntl
import os
import shutil
import socket
import subprocess
import sys
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread

from dominds import env
from dominds.local import embedded_redis, gate
from dominds.local.places import DATA_DIR, HOME_DIR, REDIS_URL_FILE
from dominds.local.processes import Process, spawn
from dominds.local.supervisor import Part, PartKeepsDying, Supervisor, say

HELP = "Start the embedded parts, migrations, web and worker, which sweeps; Ctrl-C or SIGTERM stops them all."
DEFAULT_PORT = 8000
LARGEST_PORT = 65_535
DEFAULT_CONCURRENCY = 1_000  # threads of the worker, one for each running answer; they are started as needed
LARGEST_SOCKET_FRAME = 65_536  # bytes that a browser may send; long prompts go by POST
SOCKET_LIFE_SECONDS = 12 * 60 * 60
ASKED_EVERY_SECONDS = 0.1  # the pause between two questions to /readyz, until it answers
ANSWER_SECONDS = 30
BYTECODE_ROOM_BYTES = 200_000_000  # free space that bytecode needs: several times its size
NOBODY_ADMINISTERS = 3  # exit code of `prepare --exit-code`


class CannotStart(SystemExit):
    """Ends the process because Dominds cannot start. The reason goes to standard error, and the exit code is 1."""


def main(arguments: Sequence[str]) -> None:
    parser = ArgumentParser(prog="dominds up", description=HELP, formatter_class=RawDescriptionHelpFormatter)
    add_options(parser)
    given = parser.parse_args(arguments)
    run(given.host, given.port, given.concurrency)


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    add_port(parser)
    answers = whole_number(1)
    parser.add_argument(
        "--concurrency", type=answers, default=DEFAULT_CONCURRENCY, help="answers at once (default 1000)"
    )


def add_port(parser: ArgumentParser) -> None:
    port = whole_number(1, LARGEST_PORT)
    parser.add_argument("--port", type=port, default=None, help="port to listen on (default: PORT, or 8000)")


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a reader of an option's value, for ``type`` of argparse."""
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"

    def read(value: str) -> int:
        if not value.isdecimal() or int(value) < least or (most is not None and int(value) > most):
            raise ArgumentTypeError(f"found {value!r}, expected a whole number {bounds}")
        return int(value)

    return read


def port_of(given: int | None) -> int:
    return given or env.number("PORT", default=DEFAULT_PORT, minimum=1, maximum=LARGEST_PORT)


def run(host: str, port: int | None, concurrency: int) -> None:
    """Start everything, restart parts that die, and stop everything together.

    1. Lock the data folder, and start a Redis unless one is named.
    2. Start web and worker, which load their code and wait at the gate while the database is prepared.
    3. Watch them until a signal asks to stop.
    """
    port = port_of(port)
    refuse_open_host(host)
    refuse_busy_port(host, port)
    env.make_folder("DOMINDS_DATA_DIR", DATA_DIR)
    environment = os.environ | {"PYTHONUNBUFFERED": "1"} | kept_bytecode(os.environ, DATA_DIR)
    supervisor = Supervisor(environment, HOME_DIR, say)
    supervisor.listen_for_signals()
    with ExitStack() as opened:
        opened.enter_context(alone_in(DATA_DIR))
        opened.callback(supervisor.stop)
        if not env.text("REDIS_URL"):
            opened.enter_context(own_redis(supervisor))
        with gate.close(DATA_DIR) as held_back, supervisor.silent():
            supervisor.environment |= held_back
            supervisor.start(Part("web", lambda: web_command(host, port)))
            supervisor.start(worker_part(concurrency))
            administered = prepare(supervisor)
        announcement = Announcement(host, port, administered)
        Thread(target=announcement.make, args=(supervisor.ending,), name="announcement", daemon=True).start()
        try:
            supervisor.run()
        except PartKeepsDying as error:
            raise CannotStart(str(error)) from None
        say("Dominds has stopped.")


def kept_bytecode(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return variables by which Python writes bytecode into the data folder if it may not write it beside the sources.

    In many containers each part would otherwise compile all that it imports at each start, which takes 2.5 s of CPU. If
    the disk is nearly full nothing is written: Python would leave truncated files, at which later starts would fail.
    """
    if not environment.get("PYTHONDONTWRITEBYTECODE") or environment.get("PYTHONPYCACHEPREFIX"):
        return {}
    kept = folder / "bytecode"
    if shutil.disk_usage(folder).free < BYTECODE_ROOM_BYTES:
        shutil.rmtree(kept, ignore_errors=True)
        return {}
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(kept)}


# -- before the start ------------------------------------------------------------------------------


def refuse_open_host(host: str) -> None:
    """Refuse to listen on a network unless ``ALLOWED_HOSTS`` names the hosts by which people come."""
    if host in ("127.0.0.1", "localhost", "::1") or env.text("ALLOWED_HOSTS"):
        return
    raise CannotStart(
        f"--host {host} would open Dominds to the network, but ALLOWED_HOSTS is not set. "
        "Set it to the names that people type (ALLOWED_HOSTS=dominds.example.org), or leave --host out. "
        "Pages are then served for HTTPS only; DOMINDS_HTTPS=off allows plain HTTP."
    )


def refuse_busy_port(host: str, port: int) -> None:
    """Refuse to start on a port that is taken, before anything is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                why, hint = "is already in use", "Stop the other program, or choose another port with --port or PORT."
            elif error.errno == errno.EACCES:
                why, hint = "may not be used by this user", "Choose one above 1023 with --port or PORT."
            else:
                why, hint = f"cannot be used: {error.strerror}", "Choose another address with --host."
            raise CannotStart(f"Port {port} on {host} {why}. {hint}") from None


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Lock the data folder, since two supervisors in one folder would free each other's leases."""
    with (folder / "up.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(
                f"Another Dominds runs with the data in {folder}. Stop it, or set DOMINDS_DATA_DIR to another folder."
            ) from None
        yield


@contextmanager
def own_redis(supervisor: Supervisor) -> Iterator[None]:
    """Run an embedded Redis, and tell its address to the parts and to other commands."""

    def start(command: list[str]) -> Process:
        return spawn(command, os.environ, subprocess.PIPE, HOME_DIR)

    try:
        place, process = embedded_redis.start_in(DATA_DIR / "redis", start)
    except embedded_redis.RedisDidNotStart as error:
        raise CannotStart(str(error)) from error
    supervisor.adopt(Part("redis", lambda: embedded_redis.command_for(place), stops_last=True, quiet=True), process)
    supervisor.environment["REDIS_URL"] = place.url
    REDIS_URL_FILE.unlink(missing_ok=True)
    REDIS_URL_FILE.touch(mode=0o600)
    REDIS_URL_FILE.write_text(place.url)
    try:
        yield
    finally:
        REDIS_URL_FILE.unlink(missing_ok=True)


def prepare(supervisor: Supervisor) -> bool:
    """Prepare the database in a separate process, which frees its memory. Return whether there is an administrator."""
    command = [sys.executable, "-m", "dominds", "prepare", "--exit-code", "--redis"]
    process = spawn(command, supervisor.environment, subprocess.PIPE, HOME_DIR)
    assert process.stdout is not None
    with process.stdout as output:
        for line in output:
            say(line.decode(errors="replace").rstrip())
    if (code := process.wait()) not in (0, NOBODY_ADMINISTERS):
        raise CannotStart(code if code > 0 else 1)
    return code == 0


# -- the parts -------------------------------------------------------------------------------------


# Each part can also run alone on another machine: ``dominds web``, ``dominds worker`` and ``dominds sweep``.


def web_command(host: str, port: int) -> list[str]:
    options = {
        "--bind": host,
        "--port": port,
        "--verbosity": 0,
        "--websocket_timeout": SOCKET_LIFE_SECONDS,
        "--websocket-max-message-size": LARGEST_SOCKET_FRAME,
        "--application-close-timeout": 5,  # seconds
        "--server-name": "dominds",
    }
    words = [str(word) for option in options.items() for word in option]
    return [sys.executable, "-m", "daphne", *words, "dominds.asgi:application"]


def worker_part(concurrency: int) -> Part:
    """Return the worker, which also sweeps. At each start it gets a new name, and frees the leases of the last one."""
    names = [""]

    def command() -> list[str]:
        names.append(new_worker_name())
        return ["env", f"DOMINDS_WORKER_BEFORE={names[-2]}", *worker_command(names[-1], concurrency)]

    return Part("worker", command, {"DOMINDS_SWEEPS": "1"})


def new_worker_name() -> str:
    return f"worker-{os.urandom(4).hex()}"


def worker_command(name: str, concurrency: int) -> list[str]:
    worker = [sys.executable, "-m", "dominds.worker", "--concurrency", str(concurrency), "-n", f"{name}@%h"]
    # ``env`` tells the worker its name, which it writes into its leases.
    return ["env", f"DOMINDS_WORKER={name}", *worker]


# -- the announcement ------------------------------------------------------------------------------


class Announcement:
    """The line that tells the address of Dominds, once it answers there."""

    def __init__(self, host: str, port: int, administered: bool) -> None:
        self.host = "127.0.0.1" if host in ("0.0.0.0", "localhost") else host  # nosec B104: only compared
        self.port = port
        self.shown = f"[{self.host}]" if ":" in self.host else self.host
        self.address = f"http://{self.shown}:{port}/"
        self.administered = administered

    def make(self, ending: Event) -> None:
        """Print the line once Dominds answers.

        Only one question is asked at a time, since unanswered ones would pile up and keep a busy server busy.
        """
        while not ending.wait(ASKED_EVERY_SECONDS):
            if self._answers():
                say(f"Dominds is at {self.address}")
                if not self.administered:
                    say(f"First start: make the administrator at {self.address}setup/")
                return

    def _answers(self) -> bool:
        """Ask for readiness over a plain socket. An HTTP library loads TLS, which takes more memory than the rest."""
        try:
            with (
                socket.create_connection((self.host, self.port), timeout=ANSWER_SECONDS) as server,
                server.makefile("rb") as answer,
            ):
                server.sendall(f"GET /readyz HTTP/1.0\r\nHost: {self.shown}\r\n\r\n".encode())
                return answer.read(10_000).split(maxsplit=2)[1:2] == [b"200"]
        except OSError:
            return False
