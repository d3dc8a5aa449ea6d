"""A whole Dominds to break: real processes on a PostgreSQL, a Redis and a provider of its own, each behind a proxy."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
from django.contrib.auth.models import User

from dialogs.models import Dialog
from dominds.local.embedded_redis import free_port
from dominds.local.processes import spawn
from tests.faults import watch
from tests.faults.invariants import Asked, Evidence, breaches
from tests.faults.proxy import Proxy
from tests.harness.live import orm_at
from tests.harness.postgres import PostgresServer
from tests.harness.redis_server import RedisServer
from tests.harness.stack import ROOT, Part, Stack, eventually

KEY = "canary-key-4f1a9c77d2"  # the provider's; must be seen nowhere
WORKERS = int(os.environ.get("DOMINDS_FAULT_WORKERS", "2"))
SETTLED_SECONDS = 60  # generous: this machine is shared


@dataclass
class Talk:
    """One dialog as its person sees it, and what that person was promised."""

    id: str
    mark: str
    accepted: dict[str, str] = field(default_factory=dict)

    @property
    def row(self) -> Dialog:
        row: Dialog = Dialog.objects.get(pk=self.id)
        return row

    @property
    def statuses(self) -> list[str]:
        return list(self.row.turns.filter(role="user").order_by("seq").values_list("status", flat=True))

    @property
    def outcomes(self) -> list[str]:
        return list(self.row.generations.order_by("id").values_list("outcome", flat=True))


class ProviderProcess:
    def __init__(self, folder: Path) -> None:
        self.log_file = folder / "provider.jsonl"
        command = [sys.executable, "-m", "tests.faults.provider", str(self.log_file)]
        self.process = spawn(command, os.environ, subprocess.PIPE, ROOT)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log_file.read_text().splitlines()] if self.log_file.exists() else []

    def asked(self, mark: str = "") -> tuple[Asked, ...]:
        entries = [entry for entry in self.log() if "asked" in entry]
        return tuple(
            Asked(entry["asked"], entry["dialog"], entry["at"]) for entry in entries if mark in ("", entry["dialog"])
        )


class WatchedStack(Stack):
    """One whose parts report transactions that do what has no place in one."""

    def start_part(self, name: str, *command: str, **environment: str) -> Part:
        return super().start_part(name, *command, **{**watch.environment(self.folder), **environment})


class Arena:
    def __init__(self, *, disk_mb: int | None = None) -> None:
        self.postgres = PostgresServer(durable=True, tcp_port=free_port(), disk_mb=disk_mb).start()
        self.postgres.create_database("arena")
        self.redis = RedisServer().start()
        self.database_proxy = Proxy(self.postgres.tcp_port or 0, "database")
        self.redis_proxy = Proxy(self.redis.port, "redis")
        self.stack = WatchedStack(
            self.postgres.tcp_url(self.database_proxy.port, "arena"),
            settings={
                "REDIS_URL": self.redis.url.replace(f":{self.redis.port}", f":{self.redis_proxy.port}"),
                "DOMINDS_MESSAGES_PER_MINUTE": "0",
                "DOMINDS_RUNNING_DIALOGS": "0",
                "STUB_KEY": KEY,
            },
            redis=self.redis,
        )
        self.provider = ProviderProcess(self.stack.folder)
        self.provider_proxy = Proxy(self.provider.port, "provider")
        self.talks: list[Talk] = []

    def start(self) -> None:
        model = {"name": "Stub", "context_length": 128_000, "supports_tool_choice": True}
        address = f"http://127.0.0.1:{self.provider_proxy.port}/v1"
        stub = {"name": "Stub", "apiType": "openai-compatible", "baseUrl": address, "apiKeyEnvVar": "STUB_KEY"}
        self.stack.minds_dir.mkdir(parents=True)
        (self.stack.minds_dir / "llm.yaml").write_text(
            json.dumps({"providers": {"stub": {**stub, "models": {"model": model}}}})
        )
        tester = {"name": "Tester", "provider": "stub", "model": "model", "instructions": "Be brief."}
        slow = 'play({"words": 60, "every": 0.1})'  # how a reader answers, whose task says nothing about that
        members = {
            "tester": tester,
            "lead": {**tester, "name": "Lead", "colleagues": ["reader"]},
            "reader": {**tester, "name": "Reader", "instructions": slow},
        }
        (self.stack.minds_dir / "team.yaml").write_text(json.dumps({"members": members}))
        self.start_parts()
        with self.orm():
            owner, _ = User.objects.get_or_create(username="arena", is_superuser=True)
            self.api = self.stack.api_as(owner)

    def start_parts(self) -> None:
        self.stack.start(WORKERS)

    def stop(self) -> None:
        for proxy in (self.database_proxy, self.redis_proxy, self.provider_proxy):
            proxy.heal()
        self._thaw()
        self.stack.stop()
        self.provider.process.kill()
        self.postgres.remove()

    def orm(self) -> AbstractContextManager[None]:
        """Let the ORM of this process see the arena's rows, past the proxy."""
        return orm_at(self.postgres.url("arena"))

    def heal(self) -> None:
        """Everything runs and nothing misbehaves."""
        for proxy in (self.database_proxy, self.redis_proxy, self.provider_proxy):
            proxy.heal()
        self._thaw()
        self.postgres.revive()
        if self.redis.process is None or self.redis.process.poll() is not None:
            self.redis.start()
        for part in self.stack.parts:
            part.thaw()
        self.stack.parts = [part for part in self.stack.parts if part.running]
        self.start_missing()

    def start_missing(self) -> None:
        for name, count, start in (
            ("web", 1, self.stack.start_web),
            ("sweeper", 1, self.stack.start_sweeper),
            ("worker", WORKERS, self.start_worker),
        ):
            for _ in range(count - len(self.stack.parts_named(name))):
                start()

    def _thaw(self) -> None:
        self.postgres.thaw()
        self.redis.thaw()

    def start_worker(self, **environment: Any) -> Part:
        worker = self.stack.start_worker(**environment)
        try:
            eventually(lambda: " ready." in worker.log(200), 60)
        except AssertionError as error:
            raise AssertionError(f"a worker did not start: {worker.log(200)}") from error
        return worker

    # -- people --------------------------------------------------------------------------------------------------------
    def open(self, agent: str = "tester") -> Talk:
        answer = self._insist("POST", "/api/dialogs", json={"agent": agent})
        talk = Talk(answer.json()["id"], f"dlg-{uuid4().hex[:8]}")
        self.talks.append(talk)
        return talk

    def say(self, talk: Talk, seconds: float = SETTLED_SECONDS, **play: Any) -> str:
        """Send a message until it is accepted, always with the same client id."""
        client_id = uuid4().hex
        text = f"{talk.mark} {client_id[:6]} play({json.dumps(play)})"
        body = {"text": text, "client_message_id": client_id}
        answer = self._insist("POST", f"/api/dialogs/{talk.id}/messages", seconds, json=body)
        assert answer.status_code == 202, answer.text
        talk.accepted[client_id] = text
        return client_id

    def _insist(self, method: str, path: str, seconds: float = SETTLED_SECONDS, **options: Any) -> httpx2.Response:
        deadline = time.monotonic() + seconds
        while True:
            try:
                answer = self.api.request(method, path, **options)
                if answer.status_code < 500:
                    return answer
                problem = f"{answer.status_code} {answer.text[:200]}"
            except httpx2.TransportError as error:
                problem = repr(error)
            assert time.monotonic() < deadline, f"{method} {path} never succeeded: {problem}"
            time.sleep(0.3)

    def talk(self, **play: Any) -> Talk:
        """A new dialog with one message on its way."""
        talk = self.open()
        self.say(talk, **play)
        return talk

    def busy(self, talk: Talk) -> bool:
        """Whether the person still waits, as the API tells them."""
        return self._insist("GET", f"/api/dialogs/{talk.id}").json()["state"] in ("queued", "generating")

    # -- looking -------------------------------------------------------------------------------------------------------
    def driven_by(self, talk: Talk) -> Part:
        """The worker that drives the dialog now."""
        owner = eventually(lambda: talk.row.lease_owner, 30)
        return next(part for part in self.stack.workers if owner in part.log_file.name or self._is(part, owner))

    @staticmethod
    def _is(part: Part, owner: str) -> bool:
        environment = Path(f"/proc/{part.pid}/environ").read_bytes().decode(errors="replace")
        return f"DOMINDS_WORKER={owner}\0" in environment + "\0"

    def streaming(self, talk: Talk) -> None:
        """Wait until the provider has been asked on the dialog's behalf."""
        eventually(lambda: self.provider.asked(talk.mark), 30)

    def settled(self, talks: list[Talk] | None = None, seconds: float = SETTLED_SECONDS) -> float:
        """Wait until nothing is owed; return how long that took."""
        started = time.monotonic()
        ids = [talk.id for talk in talks or self.talks]
        busy = Dialog.objects.filter(pk__in=ids, state__in=["queued", "generating"])
        try:
            eventually(lambda: not busy.exists(), seconds, every=0.2)
        except AssertionError as error:
            rows = list(busy.values("id", "state", "epoch", "lease_owner", "lease_until", "wake_at", "crashes"))
            raise AssertionError(f"still busy after {seconds} s: {rows}\n{self.stack.logs(25)}") from error
        return time.monotonic() - started

    def breaches(self, talks: list[Talk] | None = None) -> list[str]:
        talks = talks or self.talks
        accepted = {client_id: text for talk in talks for client_id, text in talk.accepted.items()}
        logs = tuple(self.stack.folder.glob("*.log"))
        evidence = Evidence(accepted, self.provider.asked(), (KEY,), logs)
        return [*breaches([talk.row for talk in talks], evidence), *watch.found_in(self.stack.folder)]


class Chatter:
    """People who keep talking, two messages at a time, from threads of their own, until the block ends."""

    def __init__(self, arena: Arena, people: int, **play: Any) -> None:
        self._arena, self._play = arena, play
        self._ending = threading.Event()
        self.problems: list[str] = []
        self._threads = [threading.Thread(target=self._chat, daemon=True) for _ in range(people)]

    def __enter__(self) -> "Chatter":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join(90)

    def _chat(self) -> None:
        try:
            talk = self._arena.open()
            while not self._ending.wait(0.5):
                for _ in range(2):
                    self._arena.say(talk, **self._play)
                while self._arena.busy(talk) and not self._ending.wait(0.5):
                    pass
        except Exception as error:  # noqa: BLE001  the test looks at them
            self.problems.append(repr(error))
