"""A whole Dominds of real processes: web server, workers and sweeper, on a database and a Redis of its own.

Parts are started as an operator would, by their public commands, and can be killed, frozen and started again one by
one.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2

from dominds.local.embedded_redis import free_port
from dominds.local.processes import Process, signal_group, spawn, wait_all
from tests.harness.postgres import PostgresServer
from tests.harness.redis_server import RedisServer

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 60
STOP_SECONDS = 8


class StackFailed(Exception):
    """A part of the stack did not come up, or a command failed; carries the log."""


def eventually(claim: Callable[[], Any], seconds: float = 20, every: float = 0.1) -> Any:
    """Return the first true answer of ``claim``; fail with its last one when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (answer := claim()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not so within {seconds} s; the last answer was {answer!r}")
        time.sleep(every)
    return answer


@dataclass
class Part:
    """One running process of a stack."""

    name: str
    process: Process
    log_file: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def log(self, lines: int = 40) -> str:
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def signal(self, number: signal.Signals) -> None:
        signal_group(self.process, number)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def terminate(self, seconds: float = STOP_SECONDS) -> None:
        """End it the orderly way; kill it when it does not listen."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        if not wait_all([self.process], seconds):
            self.kill()


@dataclass
class Stack:
    """``database_url`` must name an empty or a migrated database; ``prepared`` says that ``prepare`` was run on it."""

    database_url: str
    concurrency: int = 16
    settings: dict[str, str] = field(default_factory=dict)  # further environment of all parts
    prepared: bool = False
    redis: RedisServer = field(default_factory=RedisServer)
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="dominds-stack-")))
    port: int = field(default_factory=free_port)
    parts: list[Part] = field(default_factory=list)
    code: Path = ROOT  # the folder of another release, to run that
    python: str = sys.executable

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    @property
    def minds_dir(self) -> Path:
        return self.folder / "minds"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "dominds.settings",
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis.url,
            "DOMINDS_DATA_DIR": str(self.folder / "data"),
            "DOMINDS_MINDS_DIR": str(self.minds_dir),
            "DOMINDS_LOG": "console",
            "PYTHONUNBUFFERED": "1",
            **self.settings,
        }

    # -- life ----------------------------------------------------------------------------------------------------------
    @classmethod
    def on_new_database(cls, server: PostgresServer, name: str, **options: Any) -> "Stack":
        """Return a stack on a copy of a database that `prepare` made once for all of a server:
        5 s of CPU less to start."""
        if server.template is None:
            with tempfile.TemporaryDirectory() as folder:
                first = cls(server.create_database("prepared"), folder=Path(folder))
                first.prepare()
                first.redis.remove()
            server.template = "prepared"
        return cls(server.create_database(name, server.template), prepared=True, **options)

    def prepare(self) -> None:
        """Start Redis; migrate and load the agents, as an operator does before the parts start."""
        self.minds_dir.mkdir(parents=True, exist_ok=True)
        if self.redis.process is None:
            self.redis.start()
        if not self.prepared or any(self.minds_dir.iterdir()):
            self.manage("prepare")

    def start(self, workers: int = 1) -> "Stack":
        """Prepare, start everything and wait until it is ready."""
        self.prepare()
        web = self.start_web()
        for _ in range(workers):
            self.start_worker()
        self.start_sweeper()
        self.wait_until_ready(web)
        return self

    def sync_agents(self) -> None:
        """Read minds_dir again, after a test has written to it."""
        self.manage("sync_agents")

    def wait_until_ready(self, web: Part) -> None:
        try:
            eventually(lambda: self.is_ready() or not web.running, READY_SECONDS)
        except AssertionError as error:
            raise StackFailed(f"not ready within {READY_SECONDS} s:\n{self.logs()}") from error
        if not web.running:
            raise StackFailed(f"the web server ended:\n{web.log()}")

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.base_url}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def stop(self) -> None:
        """End everything and delete the folder."""
        for part in self.parts:
            part.signal(signal.SIGCONT)
            part.signal(signal.SIGTERM)
        if not wait_all((part.process for part in self.parts), STOP_SECONDS):
            for part in self.parts:
                part.kill()
        self.redis.remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- parts ---------------------------------------------------------------------------------------------------------
    def start_part(self, name: str, *command: str, **environment: str) -> Part:
        """Start one command in the stack's environment."""
        log_file = self.folder / f"{name}-{uuid4().hex[:6]}.log"
        with log_file.open("ab") as log:
            process = spawn(command, {**self.environment, **environment}, log.fileno(), self.code)
        part = Part(name, process, log_file)
        self.parts.append(part)
        return part

    def start_web(self, port: int | None = None, **environment: str) -> Part:
        """Start a web server on the stack's port, or another; keyword arguments are its own environment variables."""
        options = ["-v", "0", "-b", "127.0.0.1", "-p", str(port or self.port), "--application-close-timeout", "5"]
        options += ["--websocket_timeout", "43200", "--websocket-max-message-size", "65536"]
        return self.start_part("web", self.python, "-m", "daphne", *options, "dominds.asgi:application", **environment)

    def start_worker(self, concurrency: int | None = None, **environment: str) -> Part:
        """Start one more worker; keyword arguments are environment variables of it alone."""
        name = f"worker-{uuid4().hex[:8]}"
        options = ["--pool", "threads", "--concurrency", str(concurrency or self.concurrency), "-n", f"{name}@%h"]
        options += ["--without-gossip", "--without-mingle"]
        command = [self.python, "-m", "celery", "-q", "-A", "dominds.celery", "worker", *options]
        return self.start_part("worker", *command, DOMINDS_WORKER=name, **environment)

    def start_sweeper(self, **environment: str) -> Part:
        return self.start_part("sweeper", self.python, "manage.py", "sweep", **environment)

    def parts_named(self, name: str) -> list[Part]:
        return [part for part in self.parts if part.name == name and part.running]

    @property
    def web(self) -> Part:
        return self.parts_named("web")[-1]

    @property
    def workers(self) -> list[Part]:
        return self.parts_named("worker")

    def logs(self, lines: int = 40) -> str:
        """Return the newest log lines of every part, for a failure message."""
        return "\n".join(f"--- {part.name} {part.pid}\n{part.log(lines)}" for part in self.parts)

    # -- people and requests -------------------------------------------------------------------------------------------
    def manage(self, *arguments: str, **environment: str) -> str:
        """Run a management command in the stack's environment and return what it printed."""
        done = subprocess.run(
            [self.python, "manage.py", *arguments],
            cwd=self.code,
            env={**self.environment, **environment},
            check=False,  # with its output in the message
            capture_output=True,
            text=True,
            timeout=300,  # prepare waits for locks for up to two minutes
        )
        if done.returncode != 0:
            raise StackFailed(f"manage.py {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def create_person(self, username: str, password: str = "correct horse battery") -> None:
        """Make a person with a real password, by the public command."""
        self.manage("createuser", username, DOMINDS_PASSWORD=password)

    def api(self, username: str) -> "Api":
        """Return a client that speaks as this person, with a new API key, by the public command."""
        return Api(self.base_url, self.manage("apikey", username).strip())

    def api_as(self, user: Any) -> "Api":
        """The same a second faster, through the ORM of this process: for a ``live_stack``."""
        from dialogs.accounts.api_keys import create_key

        return Api(self.base_url, create_key(user, name="test"))

    def place_minds(self, **files: object) -> None:
        """Write ``minds_dir/NAME.yaml`` from values (JSON is YAML)."""
        self.minds_dir.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (self.minds_dir / f"{name}.yaml").write_text(json.dumps(content))

    def write_minds(self, **files: object) -> None:
        """The same, and load them."""
        self.place_minds(**files)
        self.sync_agents()


class Api(httpx2.Client):
    """An HTTP client with the address and the key set."""

    def __init__(self, base_url: str, key: str) -> None:
        super().__init__(base_url=base_url, headers={"Authorization": f"Bearer {key}"}, timeout=30, trust_env=False)


@contextmanager
def running(stack: Stack, workers: int = 1) -> Iterator[Stack]:
    """Start a stack and stop it whatever happens."""
    try:
        yield stack.start(workers)
    finally:
        stack.stop()
