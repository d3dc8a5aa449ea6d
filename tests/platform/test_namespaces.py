"""Several machines, as far as a network can tell: web server and workers in network namespaces of their own.

Needs root and the right to make namespaces; where that is missing, and in `make test`, there is nothing to collect.
`DOMINDS_FAULTS=1 pytest tests/platform/test_namespaces.py` runs it, and `make faults`.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.harness.live import orm_on
from tests.harness.postgres import PostgresServer
from tests.harness.stack import Part, Stack, eventually

NET_ADMIN, SYS_ADMIN = 12, 21  # bits of CapEff, from capabilities(7)
WEB_PORT, DATABASE_PORT, REDIS_PORT = 8000, 15432, 16379
TAKEN_OVER_SECONDS = 20
WORDS, WORD_MS = 60, 100


def may_make_namespaces() -> bool:
    status = Path("/proc/self/status").read_text()
    rights = int(next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1], 16)
    return bool(shutil.which("ip") and rights >> NET_ADMIN & 1 and rights >> SYS_ADMIN & 1)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@dataclass
class Machine:
    """A network namespace on a cable of its own. ``gateway`` is this end of the cable, ``address`` the other."""

    number: int

    def __post_init__(self) -> None:
        self.name, self.cable = f"dominds-{os.getpid()}-{self.number}", f"dm{os.getpid() % 100_000}n{self.number}"
        self.gateway, self.address = f"10.213.{self.number}.1", f"10.213.{self.number}.2"

    def __enter__(self) -> "Machine":
        ip("netns", "add", self.name)
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        ip("addr", "add", f"{self.gateway}/30", "dev", self.cable)
        ip("link", "set", self.cable, "up")
        for words in (("addr", "add", f"{self.address}/30", "dev", "eth0"), ("link", "set", "eth0", "up")):
            ip("-n", self.name, *words)
        ip("-n", self.name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_: object) -> None:
        ip("netns", "delete", self.name)

    def cut(self) -> None:
        """Pull the cable: nothing is refused, nothing arrives."""
        ip("link", "set", self.cable, "down")

    def mend(self) -> None:
        ip("link", "set", self.cable, "up")

    def start(self, stack: Stack, name: str, *command: str, **environment: str) -> Part:
        addresses = {
            "DATABASE_URL": f"postgres://dominds@{self.gateway}:{DATABASE_PORT}/machines",
            "REDIS_URL": stack.redis.url.replace(f"127.0.0.1:{stack.redis.port}", f"{self.gateway}:{REDIS_PORT}"),
        }
        return stack.start_part(name, "ip", "netns", "exec", self.name, *command, **addresses, **environment)


class Gates:
    """Lets the machines reach the run's PostgreSQL (a Unix socket) and Redis (on loopback)."""

    def __init__(self, hosts: list[str], database: Path, redis_port: int) -> None:
        self.hosts, self.database, self.redis_port = hosts, database, redis_port
        ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self.thread.start()
        assert ready.wait(10)

    async def _serve(self, ready: threading.Event) -> None:
        self.loop, self.stopped = asyncio.get_running_loop(), asyncio.Event()
        await asyncio.start_server(self._to_database, self.hosts, DATABASE_PORT)
        await asyncio.start_server(self._to_redis, self.hosts, REDIS_PORT)
        ready.set()
        await self.stopped.wait()

    async def _to_database(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._join(reader, writer, *await asyncio.open_unix_connection(self.database))

    async def _to_redis(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._join(reader, writer, *await asyncio.open_connection("127.0.0.1", self.redis_port))

    async def _join(self, reader: Any, writer: Any, inner_reader: Any, inner_writer: Any) -> None:
        async def one_way(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with suppress(OSError), closing(target):
                while piece := await source.read(65536):
                    target.write(piece)
                    await target.drain()

        with suppress(asyncio.CancelledError):  # at the end of the test; Python 3.11 would complain of each
            await asyncio.gather(one_way(reader, inner_writer), one_way(inner_reader, writer))

    def close(self) -> None:
        time.sleep(0.5)  # connections that were being opened
        self.loop.call_soon_threadsafe(self.stopped.set)
        self.thread.join(10)


@dataclass
class Network:
    stack: Stack
    web: Machine
    workers: dict[str, Machine]  # by the name in their leases
    api: httpx2.Client


@pytest.fixture
def network(postgres: PostgresServer, django_db_blocker: Any) -> Iterator[Network]:
    with ExitStack() as opened:
        machines = [opened.enter_context(Machine(number)) for number in (1, 2, 3)]
        hosts = ",".join(machine.address for machine in machines)
        url = postgres.create_database("machines")
        stack = Stack(url, settings={"ALLOWED_HOSTS": hosts, "DOMINDS_HTTPS": "off"})
        stack.redis.start()
        opened.enter_context(
            closing(
                Gates([machine.gateway for machine in machines], postgres.folder / ".s.PGSQL.5432", stack.redis.port)
            )
        )
        opened.callback(stack.stop)  # before its gates close
        stack.minds_dir.mkdir(parents=True)
        slow = {"chunk_chars": 5, "chunk_delay_ms": WORD_MS, "steps": [{"text": "word " * WORDS}]}
        model = {"name": "Slow", "script": "slow.yaml", "context_length": 128_000}
        stack.manage("prepare")
        stack.write_minds(
            slow=slow,
            llm={"providers": {"test": {"name": "Test", "apiType": "scripted", "models": {"slow": model}}}},
            team={"members": {"slow": {"name": "Slow", "provider": "test", "model": "slow"}}},
        )
        stack.create_person("ada")
        web, *hosts_of_workers = machines
        web.start(stack, "web", sys.executable, "-m", "daphne", "-v", "0", "-b", "0.0.0.0", "-p", str(WEB_PORT), ASGI)
        workers = {f"worker-{uuid4().hex[:8]}": machine for machine in hosts_of_workers}
        for name, machine in workers.items():
            options = ["--pool", "threads", "--concurrency", "8", "-n", f"{name}@%h"]
            celery = [sys.executable, "-m", "celery", "-q", "-A", "dominds.celery", "worker"]
            machine.start(stack, "worker", *celery, *options, DOMINDS_WORKER=name)
        stack.start_sweeper()
        key = stack.manage("apikey", "ada").strip()
        api = opened.enter_context(
            httpx2.Client(
                base_url=f"http://{web.address}:{WEB_PORT}",
                headers={"Authorization": f"Bearer {key}"},
                timeout=20,
                trust_env=False,
            )
        )
        opened.enter_context(orm_on(url, django_db_blocker))
        eventually(lambda: _is_ready(api), 60)
        yield Network(stack, web, workers, api)


ASGI = "dominds.asgi:application"


def _is_ready(api: httpx2.Client) -> bool:
    with suppress(httpx2.TransportError):
        return api.get("/readyz").status_code == 200
    return False


if may_make_namespaces() and os.environ.get("DOMINDS_FAULTS"):

    def test_a_worker_whose_cable_is_pulled_writes_nothing(network: Network) -> None:
        from dialogs.models import Dialog, Generation, Turn

        api = network.api
        dialog = api.post("/api/dialogs", json={"agent": "slow"}).json()["id"]
        api.post(f"/api/dialogs/{dialog}/messages", json={"text": "Hi"})

        def owner() -> str:
            return str(Dialog.objects.values_list("lease_owner", flat=True).get(pk=dialog))

        first = eventually(owner, 20)
        eventually(lambda: Generation.objects.filter(dialog=dialog, outcome="running").exists(), 10)
        time.sleep(1)  # somewhere in the middle
        lost = network.workers[first]
        lost.cut()
        pulled = time.monotonic()
        second = eventually(lambda: (name := owner()) != first and name, TAKEN_OVER_SECONDS + 10)
        taken_over = time.monotonic() - pulled
        assert second in network.workers
        assert taken_over < TAKEN_OVER_SECONDS, f"{taken_over:.1f} s"
        lost.mend()
        eventually(lambda: api.get(f"/api/dialogs/{dialog}").json()["state"] == "idle", 30)
        time.sleep(3)  # the mended worker has had its chance to write

        turns = list(Turn.objects.filter(dialog=dialog).order_by("seq").values_list("role", "status"))
        assert turns == [("user", "answered"), ("assistant", "complete")]
        outcomes = list(Generation.objects.filter(dialog=dialog).order_by("pk").values_list("outcome", flat=True))
        assert outcomes == ["crashed", "kept"]
        events = [event["seq"] for event in api.get(f"/api/dialogs/{dialog}/events").json()]
        assert events == list(range(1, len(events) + 1))

        again = api.post("/api/dialogs", json={"agent": "slow"}).json()["id"]
        api.post(f"/api/dialogs/{again}/messages", json={"text": "And now?"})
        eventually(lambda: api.get(f"/api/dialogs/{again}").json()["state"] == "idle", 40)
        assert api.get(f"/api/dialogs/{again}/turns").json()[-1]["role"] == "assistant"
        print(f"taken over after {taken_over:.1f} s")
