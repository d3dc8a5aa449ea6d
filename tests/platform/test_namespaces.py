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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from dominds.local.embedded_redis import free_port
from tests.harness.live import orm_on
from tests.harness.postgres import PostgresServer
from tests.harness.proxies import end, plain_nginx_command, program, snippet
from tests.harness.stack import Part, Stack, eventually

NET_ADMIN, SYS_ADMIN = 12, 21  # bits of CapEff, from capabilities(7)
WEB_PORT, DATABASE_PORT, REDIS_PORT = 8000, 15432, 16379
TAKEN_OVER_SECONDS = 20
OLD_PORTS, NEW_PORTS = (20_000, 29_999), (30_000, 39_999)  # of connections before, and after a firewall forgot
NOTICED_SECONDS = 10
ELSEWHERE_SECONDS = 2
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
        self._use_ports(OLD_PORTS)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(subprocess.CalledProcessError):  # there is a rule only after ``forget_connections``
            ip("rule", "delete", *self._replies())
        ip("link", "delete", self.cable)  # at once, where it goes with the namespace some time later
        ip("netns", "delete", self.name)

    def cut(self) -> None:
        """Pull the cable: nothing is refused, nothing arrives, since both ends send to a card that is not there.

        A link that is down would take its route with it, and packets would leave by another.
        """
        nobody = ("lladdr", "02:00:00:00:00:01", "nud", "permanent")
        ip("neigh", "replace", self.address, "dev", self.cable, *nobody)
        ip("-n", self.name, "neigh", "replace", self.gateway, "dev", "eth0", *nobody)

    def mend(self) -> None:
        ip("neigh", "delete", self.address, "dev", self.cable)
        ip("-n", self.name, "neigh", "delete", self.gateway, "dev", "eth0")

    def forget_connections(self) -> None:
        """Drop, both ways and without a word, all packets of open connections to the database; new ones pass."""
        self._use_ports(NEW_PORTS)
        ip("rule", "add", *self._replies())
        requests = ("ipproto", "tcp", "dport", str(DATABASE_PORT), "sport", "{}-{}".format(*OLD_PORTS))
        ip("-n", self.name, "rule", "add", *requests, "blackhole")

    def lose_database(self) -> None:
        """Drop all packets to the database, also of new connections."""
        ip("-n", self.name, "rule", "add", "ipproto", "tcp", "dport", str(DATABASE_PORT), "blackhole")

    def _replies(self) -> tuple[str, ...]:
        ports = ("sport", str(DATABASE_PORT), "dport", "{}-{}".format(*OLD_PORTS))
        return ("to", self.address, "ipproto", "tcp", *ports, "blackhole")

    def _use_ports(self, ports: tuple[int, int]) -> None:
        setting = "echo {} {} > /proc/sys/net/ipv4/ip_local_port_range".format(*ports)
        ip("netns", "exec", self.name, "sh", "-c", setting)

    def start(self, stack: Stack, name: str, *command: str, **environment: str) -> Part:
        addresses = {
            "DATABASE_URL": f"postgres://dominds@{self.gateway}:{DATABASE_PORT}/machines",
            "REDIS_URL": stack.redis.url.replace(f"127.0.0.1:{stack.redis.port}", f"{self.gateway}:{REDIS_PORT}"),
        }
        return stack.start_part(name, "ip", "netns", "exec", self.name, *command, **addresses, **environment)


class Gate:
    """Lets the machines reach the run's Redis, which is on loopback."""

    def __init__(self, hosts: list[str], redis_port: int) -> None:
        self.hosts, self.redis_port = hosts, redis_port
        ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self.thread.start()
        assert ready.wait(10)

    async def _serve(self, ready: threading.Event) -> None:
        self.loop, self.stopped = asyncio.get_running_loop(), asyncio.Event()
        await asyncio.start_server(self._join, self.hosts, REDIS_PORT)
        ready.set()
        await self.stopped.wait()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def one_way(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with suppress(OSError), closing(target):
                while piece := await source.read(65536):
                    target.write(piece)
                    await target.drain()

        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.redis_port)
        with suppress(asyncio.CancelledError):  # at the end of the test; Python 3.11 would complain of each
            await asyncio.gather(one_way(reader, inner_writer), one_way(inner_reader, writer))

    def close(self) -> None:
        time.sleep(0.5)  # connections that were being opened
        self.loop.call_soon_threadsafe(self.stopped.set)
        self.thread.join(10)


@contextmanager
def database_for(hosts: list[str]) -> Iterator[PostgresServer]:
    """A PostgreSQL server that machines reach by TCP: a proxy between would acknowledge what the server never got."""
    server = PostgresServer(tcp_port=DATABASE_PORT)
    rules = server.folder / "hba"
    rules.write_text("local all all trust\nhost all all 10.213.0.0/16 trust\n")
    server.options = (f"listen_addresses={','.join(hosts)}", f"hba_file={rules}")
    server.start()
    try:
        yield server
    finally:
        server.remove()


@dataclass
class Network:
    stack: Stack
    web: Machine
    workers: dict[str, Machine]  # by the name in their leases
    api: httpx2.Client

    def add_web(self) -> Machine:
        """Start a second web server, on the machine of a worker."""
        machine = next(iter(self.workers.values()))
        machine.start(self.stack, "web", *WEB)
        eventually(lambda: _is_ready(machine.address), 60)
        return machine

    def forget_connections(self) -> None:
        for machine in (self.web, *self.workers.values()):
            machine.forget_connections()


@pytest.fixture
def network(django_db_blocker: Any) -> Iterator[Network]:
    with ExitStack() as opened:
        machines = [opened.enter_context(Machine(number)) for number in (1, 2, 3)]
        hosts = ",".join(machine.address for machine in machines)
        gateways = [machine.gateway for machine in machines]
        url = opened.enter_context(database_for(gateways)).create_database("machines")
        stack = Stack(url, settings={"ALLOWED_HOSTS": hosts, "DOMINDS_HTTPS": "off"})
        stack.redis.start()
        opened.enter_context(closing(Gate(gateways, stack.redis.port)))
        opened.callback(stack.stop)  # before its gate closes
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
        web.start(stack, "web", *WEB)
        workers = {f"worker-{uuid4().hex[:8]}": machine for machine in hosts_of_workers}
        for name, machine in workers.items():
            options = ["--pool", "threads", "--concurrency", "8", "-n", f"{name}@%h"]
            celery = [sys.executable, "-m", "celery", "-q", "-A", "dominds.celery", "worker"]
            machine.start(stack, "worker", *celery, *options, DOMINDS_WORKER=name)
        web.start(stack, "sweeper", sys.executable, "manage.py", "sweep")
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
        eventually(lambda: _is_ready(web.address), 60)
        yield Network(stack, web, workers, api)


WEB = (sys.executable, "-m", "daphne", "-v", "0", "-b", "0.0.0.0", "-p", str(WEB_PORT), "dominds.asgi:application")


def _is_ready(host: str) -> bool:
    with suppress(httpx2.TransportError):
        return httpx2.get(f"http://{host}:{WEB_PORT}/readyz", trust_env=False, timeout=5).status_code == 200
    return False


@contextmanager
def proxy_before(hosts: list[str], kind: str, folder: Path) -> Iterator[int]:
    """Run the documented nginx or Caddy without TLS before some web hosts; give its port."""
    port, addresses = free_port(), [f"{host}:{WEB_PORT}" for host in hosts]
    if kind == "nginx":
        command = plain_nginx_command(addresses, port, folder)
    else:
        site = snippet(
            "Caddyfile",
            ("dominds.example.org {", f"http://127.0.0.1:{port} {{"),
            ("127.0.0.1:8000", " ".join(addresses)),
        )
        (folder / "Caddyfile").write_text("{\n\tadmin off\n}\n" + site)
        command = [program("caddy"), "run", "--config", str(folder / "Caddyfile")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "HOME": str(folder)})
    try:
        yield port
    finally:
        end(process)


@dataclass
class Asked:
    """A request through a proxy: when it began, in seconds since something broke, how long it took, what came."""

    began: float
    took: float
    status: int | str


def ask_while(breaks: Callable[[], None], port: int, headers: dict[str, str]) -> list[Asked]:
    """Ask four times a second, each request for itself, for four seconds before something breaks and twelve after."""
    asked: list[Asked] = []
    broken = time.monotonic() + 4

    def ask(client: httpx2.Client) -> None:
        began = time.monotonic()
        try:
            status: int | str = client.get("/api/dialogs?limit=1").status_code
        except httpx2.TransportError as error:
            status = repr(error)
        asked.append(Asked(began - broken, time.monotonic() - began, status))

    site = httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, trust_env=False, timeout=20)
    with site as client, ThreadPoolExecutor(64) as pool:
        breaking = threading.Timer(4, breaks)
        breaking.start()
        for _ in range(64):
            pool.submit(ask, client)
            time.sleep(0.25)
        breaking.join()
    return asked


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

    def test_work_goes_on_after_a_firewall_forgot_connections(network: Network) -> None:
        from dialogs.models import Dialog, Generation, Turn

        def begin() -> str:
            dialog = str(network.api.post("/api/dialogs", json={"agent": "slow"}).json()["id"])
            accepted = network.api.post(f"/api/dialogs/{dialog}/messages", json={"text": "Hi"})
            assert accepted.status_code == 202, accepted.text
            return dialog

        def begin_again() -> str | None:
            with suppress(httpx2.TransportError, KeyError):  # too late, or a 503, which has no id
                return begin()
            return None

        before = [begin() for _ in range(4)]
        eventually(lambda: Generation.objects.filter(dialog_id__in=before, outcome="running").count() == 4, 20)
        network.forget_connections()
        forgotten = time.monotonic()
        after = [eventually(begin_again, NOTICED_SECONDS + 10)]
        noticed = time.monotonic() - forgotten
        assert noticed < NOTICED_SECONDS, f"{noticed:.1f} s"
        after += [begin() for _ in range(3)]
        dialogs = Dialog.objects.filter(pk__in=before + after)
        eventually(lambda: not dialogs.exclude(state="idle").exists(), TAKEN_OVER_SECONDS + WORDS * WORD_MS / 1000)
        ended = time.monotonic() - forgotten
        for dialog in dialogs:
            turns = list(Turn.objects.filter(dialog=dialog).order_by("seq").values_list("role", "status"))
            assert turns == [("user", "answered"), ("assistant", "complete")]
            assert Generation.objects.filter(dialog=dialog, outcome="kept").count() == 1
        print(f"a message was accepted after {noticed:.1f} s, all were answered after {ended:.1f} s")

    @pytest.mark.parametrize(
        ("kind", "fault"), [("nginx", "vanishes"), ("caddy", "vanishes"), ("caddy", "loses its database")]
    )
    def test_requests_go_elsewhere_when_a_web_host(network: Network, kind: str, fault: str, tmp_path: Path) -> None:
        second = network.add_web()
        headers = {"Host": f"{network.web.address}:{WEB_PORT}", "Authorization": network.api.headers["Authorization"]}
        breaks = second.cut if fault == "vanishes" else second.lose_database
        with proxy_before([network.web.address, second.address], kind, tmp_path) as port:
            time.sleep(3)  # Caddy asks whether its hosts are ready
            asked = ask_while(breaks, port, headers)
        before = [each for each in asked if each.began < -1]
        assert {each.status for each in before} == {200}
        bearable = max(each.took for each in before) + ELSEWHERE_SECONDS
        slow = [each for each in asked if each.status != 200 or each.took > bearable]
        print(f"{kind}, a host {fault}: {len(slow)} of {len(asked)} over {bearable:.1f} s or failed: {slow[:3]}")
        seen_later = ELSEWHERE_SECONDS if fault == "loses its database" else 0
        assert [each for each in slow if each.began > seen_later] == []
