"""``manage.py up``: the whole product on this machine, until Ctrl-C."""

import errno
import fcntl
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import StringIO
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import structlog
from django.conf import settings
from django.core.management import call_command, get_commands
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connections

from dominds import env
from dominds.celery import app as celery
from dominds.local import embedded_redis
from dominds.local.processes import Process, spawn
from dominds.local.supervisor import Part, PartKeepsDying, Supervisor, say
from dominds.management.commands.prepare import has_administrator

log = structlog.get_logger(__name__)

DEFAULT_PORT = 8000
DEFAULT_CONCURRENCY = 64  # threads of the worker, so many dialogs at once
LARGEST_SOCKET_FRAME = 65_536  # bytes a browser may send; long prompts go by POST
SOCKET_LIFE_SECONDS = 12 * 60 * 60
SWEEPER_ENDS_SECONDS = 2.0


class Command(BaseCommand):
    """Start everything, restart what dies, stop everything together."""

    help = "Start the embedded parts, migrations, web, worker and sweeper; Ctrl-C or SIGTERM stops them all."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        parser.add_argument("--port", type=int, default=None, help="port to listen on (default: PORT, or 8000)")
        parser.add_argument(
            "--concurrency", type=int, default=DEFAULT_CONCURRENCY, help="dialogs that the worker runs at once"
        )

    def handle(self, *, host: str, port: int | None, concurrency: int, **_: Any) -> None:
        port = port or env.number("PORT", default=DEFAULT_PORT, minimum=1)
        refuse_open_host(host)
        refuse_busy_port(host, port)
        supervisor = Supervisor(os.environ | {"PYTHONUNBUFFERED": "1"}, settings.HOME_DIR, say)
        supervisor.listen_for_signals()
        with ExitStack() as opened:
            opened.enter_context(alone_in(settings.DATA_DIR))
            opened.callback(supervisor.stop)
            if not env.text("REDIS_URL"):
                opened.enter_context(own_redis(supervisor))
            call_command("prepare", stdout=self.stdout)
            self.stdout.flush()
            administered = has_administrator()
            connections.close_all()
            if supervisor.ending.is_set():
                return
            for part in (Part("web", lambda: web_command(host, port)), worker_part(concurrency)):
                supervisor.start(part)
            if "sweep" in get_commands():
                opened.enter_context(own_sweeper(supervisor.ending))
            try:
                supervisor.run(Announcement(host, port, administered))
            except PartKeepsDying as error:
                raise CommandError(str(error)) from error
            say("Dominds has stopped.")


# -- before the start ------------------------------------------------------------------------------


def refuse_open_host(host: str) -> None:
    """Refuse to listen for a network before it was said by which names people come."""
    if host in ("127.0.0.1", "localhost", "::1") or env.text("ALLOWED_HOSTS"):
        return
    raise CommandError(
        f"--host {host} would open Dominds to the network, but ALLOWED_HOSTS is not set. "
        "Set it to the names that people type (ALLOWED_HOSTS=dominds.example.org), or leave --host out. "
        "Pages are then served for HTTPS only; DOMINDS_HTTPS=off allows plain HTTP."
    )


def refuse_busy_port(host: str, port: int) -> None:
    """Say clearly that the port is taken, before anything is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            why = "is already in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
            raise CommandError(
                f"Port {port} on {host} {why}. Stop the other program, or choose another port with --port or PORT."
            ) from error


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the data folder. Two supervisors in one would free each other's work."""
    with (folder / "up.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CommandError(
                f"Another Dominds runs with the data in {folder}. Stop it, or set DOMINDS_DATA_DIR to another folder."
            ) from error
        yield


@contextmanager
def own_redis(supervisor: Supervisor) -> Iterator[None]:
    """Run a Redis of our own and tell its address to the parts, and to commands that run beside them."""

    def start(command: list[str]) -> Process:
        return spawn(command, os.environ, subprocess.PIPE, settings.HOME_DIR)

    try:
        place, process = embedded_redis.start_in(settings.DATA_DIR / "redis", start)
    except embedded_redis.RedisDidNotStart as error:
        raise CommandError(str(error)) from error
    supervisor.adopt(Part("redis", lambda: embedded_redis.command_for(place), stops_last=True, quiet=True), process)
    supervisor.environment["REDIS_URL"] = os.environ["REDIS_URL"] = settings.REDIS_URL = celery.conf.broker_url = (
        place.url
    )
    address: Path = settings.REDIS_URL_FILE
    address.unlink(missing_ok=True)
    address.touch(mode=0o600)
    address.write_text(place.url)
    try:
        yield
    finally:
        address.unlink(missing_ok=True)


# -- the parts -------------------------------------------------------------------------------------


# Each can be started alone on another machine by the same command; the sweeper by ``dominds sweep``.


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
    """Return the worker, which gets a new name at each start: the dead one's leases are then freed by name, at once."""
    names = [""]

    def command() -> list[str]:
        names.append(new_worker_name())
        return worker_command(names[-1], concurrency)

    def clean_up() -> None:
        Thread(target=free_leases, args=(names[-1],), name="cleaning-up", daemon=True).start()

    return Part("worker", command, after_death=clean_up if "free_leases" in get_commands() else None)


def new_worker_name() -> str:
    return f"worker-{uuid4().hex[:8]}"


def free_leases(worker: str) -> None:
    """In this process: another one would take seconds to start, and take them from the new worker."""
    said = StringIO()
    try:
        call_command("free_leases", worker=worker, stdout=said)
        say(f"{worker} is gone: {said.getvalue().strip()}")
    except (DatabaseError, OSError) as error:
        say(f"{worker} is gone, its leases run out by themselves: {error}")
    finally:
        connections.close_all()


def worker_command(name: str, concurrency: int) -> list[str]:
    celery = [sys.executable, "-m", "celery", "-q", "-A", "dominds.celery", "worker"]
    pool = ["--pool", "threads", "--concurrency", str(concurrency)]
    # env: the worker itself learns its name, which it writes into the leases that it takes.
    return ["env", f"DOMINDS_WORKER={name}", *celery, *pool, "--without-gossip", "--without-mingle", "-n", f"{name}@%h"]


@contextmanager
def own_sweeper(ending: Event) -> Iterator[None]:
    """Sweep in a thread of this process, which has loaded all that it takes: a process of its own holds 70 MB to wait."""
    thread = Thread(target=sweep, args=(ending,), name="sweeper", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(SWEEPER_ENDS_SECONDS)


def sweep(ending: Event) -> None:
    """Start it again when it fails, like any part."""
    while not ending.is_set():
        try:
            call_command("sweep", ending=ending)
        except Exception:
            log.exception("sweeper_failed")
            ending.wait(1)


# -- the word that it is ready ---------------------------------------------------------------------


class Announcement:
    """Says once where Dominds is, when it answers there."""

    def __init__(self, host: str, port: int, administered: bool) -> None:
        shown = "127.0.0.1" if host in ("0.0.0.0", "localhost") else host  # nosec B104: only compared
        shown = f"[{shown}]" if ":" in shown else shown
        self.address = f"http://{shown}:{port}/"
        self.administered = administered
        self.made = False

    def __call__(self) -> None:
        if not self.made and self._answers():
            self.made = True
            say(f"Dominds is at {self.address}")
            if not self.administered:
                say(f"First start: make the administrator at {self.address}setup/")

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}readyz", timeout=1) as answer:  # nosec B310: our own
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
