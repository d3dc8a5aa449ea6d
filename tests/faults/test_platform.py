"""A platform of many processes: six web servers behind nginx, four workers, a sweeper, and PgBouncer before PostgreSQL.

``make platform`` runs it, where Debian's ``pgbouncer`` is installed; nothing else collects it. Each part in turn is
killed, frozen and cut off while people talk: what was accepted is answered once.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from django.db import connection

from dominds.local.embedded_redis import free_port
from tests.faults.arena import Arena, Chatter
from tests.faults.proxy import Proxy, Toxics
from tests.harness.live import close_pool
from tests.harness.postgres import SUPERUSER
from tests.harness.proxies import plain_nginx_command, program
from tests.harness.stack import Part, eventually

WEBS, WORKERS, PEOPLE = 6, 4, 6
HELD_SECONDS = 12  # that a part stays frozen or cut off: longer than a lease
GONE_SECONDS = 2  # until a part that was killed is started again
ANSWERED_SECONDS = 60  # until everybody has had another answer; 20 are promised, and this machine is shared


@dataclass
class Cables:
    """The ways of one process to the database and to Redis."""

    database: Proxy
    redis: Proxy

    def cut(self) -> None:
        self.database.toxics = self.redis.toxics = Toxics(blackhole=True)

    def mend(self) -> None:
        self.database.heal()
        self.redis.heal()


class Platform(Arena):
    """An arena of many processes, one web server, one worker and the sweeper of which have cables of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.ports = [free_port() for _ in range(WEBS)]
        self.pooler_port = free_port()
        self.pooler_proxy = Proxy(self.pooler_port, "pooler")
        self.stack.database_url = self.postgres.tcp_url(self.pooler_proxy.port, "arena")
        self.cables = {
            name: Cables(Proxy(self.pooler_port, f"{name}-database"), Proxy(self.redis.port, f"{name}-redis"))
            for name in ("web", "worker", "sweeper")
        }
        self.cabled: dict[str, Part] = {}
        self.webs: dict[int, Part] = {}
        for setting in ("lock_timeout = '2s'", "statement_timeout = '30s'"):
            self.postgres.execute(f"ALTER ROLE {SUPERUSER} SET {setting}")

    def start_parts(self) -> None:
        self.start_pooler()
        self.stack.prepare()
        self.start_missing()
        eventually(self.stack.is_ready, 120)

    def heal(self) -> None:
        self.pooler_proxy.heal()
        for cables in self.cables.values():
            cables.mend()
        super().heal()
        connection.close()
        close_pool(connection)  # whose connections a database that was killed has ended

    def start_missing(self) -> None:
        if not self.stack.parts_named("pooler"):
            self.start_pooler()
        starts: dict[str, Callable[..., Part]] = {
            "web": lambda **addresses: self.stack.start_web(self.ports[0], **addresses),
            "worker": self.start_worker,
            "sweeper": self.stack.start_sweeper,
        }
        for name, start in starts.items():
            if name not in self.cabled or not self.cabled[name].running:
                self.cabled[name] = start(**self._addresses(self.cables[name]))
        for port in self.ports[1:]:
            if port not in self.webs or not self.webs[port].running:
                self.webs[port] = self.stack.start_web(port)
        for _ in range(WORKERS - len(self.stack.workers)):
            self.start_worker()
        if not self.stack.parts_named("nginx"):
            self.start_nginx()

    def _addresses(self, cables: Cables) -> dict[str, str]:
        return {
            "DATABASE_URL": self.postgres.tcp_url(cables.database.port, "arena"),
            "REDIS_URL": self.redis.url.replace(f":{self.redis.port}", f":{cables.redis.port}"),
        }

    def start_pooler(self) -> None:
        """Start PgBouncer as docs/operations.md says: whole sessions, and the timeouts given to the role."""
        settings = self.stack.folder / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\narena = host=127.0.0.1 port={self.database_proxy.port} dbname=arena user={SUPERUSER}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.pooler_port}\nunix_socket_dir =\n"
            "auth_type = any\npool_mode = session\nmax_client_conn = 1000\ndefault_pool_size = 250\n"
            "ignore_startup_parameters = options\n"
        )
        self.stack.folder.chmod(0o755)
        whom = ["-u", "nobody"] if os.geteuid() == 0 else []  # PgBouncer refuses to be root
        self.stack.start_part("pooler", program("pgbouncer"), *whom, str(settings))

    def start_nginx(self) -> None:
        folder = self.stack.folder / "nginx"
        folder.mkdir(exist_ok=True)
        addresses = [f"127.0.0.1:{port}" for port in self.ports]
        self.stack.start_part("nginx", *plain_nginx_command(addresses, self.stack.port, folder))

    def signal(self, name: str, number: signal.Signals) -> None:
        (self.cabled.get(name) or self.stack.parts_named(name)[-1]).signal(number)

    def answers(self) -> list[int]:
        return [talk.statuses.count("answered") for talk in self.talks]

    def wait_for_answers(self) -> float:
        """Wait until everybody has had another answer, and return the seconds that it took."""
        began, before = time.monotonic(), self.answers()
        eventually(lambda: all(now > then for now, then in zip(self.answers(), before, strict=True)), ANSWERED_SECONDS)
        return time.monotonic() - began

    def faults(self) -> dict[str, tuple[Callable[[], object], float]]:
        """Each fault by name, and how many seconds it lasts until ``heal``."""
        result: dict[str, tuple[Callable[[], object], float]] = {}
        for name in ("web", "worker", "sweeper", "pooler", "nginx"):
            result[f"{name} killed"] = (partial(self.signal, name, signal.SIGKILL), GONE_SECONDS)
            result[f"{name} frozen"] = (partial(self.signal, name, signal.SIGSTOP), HELD_SECONDS)
        for name, cables in self.cables.items():
            result[f"{name} cut off"] = (cables.cut, HELD_SECONDS)
        for name, server, proxy in (
            ("redis", self.redis, self.redis_proxy),
            ("database", self.postgres, self.database_proxy),
        ):
            result[f"{name} frozen"] = (server.freeze, HELD_SECONDS)
            result[f"{name} cut off"] = (partial(self.cut, proxy), HELD_SECONDS)
        result["redis killed"] = (self.redis.kill, GONE_SECONDS)
        result["database killed"] = (partial(self.postgres.stop, signal.SIGQUIT), GONE_SECONDS)
        result["pooler cut off"] = (partial(self.cut, self.pooler_proxy), HELD_SECONDS)
        return result

    @staticmethod
    def cut(proxy: Proxy) -> None:
        proxy.toxics = Toxics(blackhole=True)


@pytest.fixture
def platform(django_db_blocker: Any) -> Iterator[Platform]:
    with django_db_blocker.unblock():
        made = Platform()
        try:
            made.start()
            with made.orm():
                yield made
        finally:
            made.stop()


if os.environ.get("DOMINDS_PLATFORM"):

    @pytest.mark.timeout(3600)
    def test_all_is_answered_once_whichever_part_of_a_platform_fails(platform: Platform) -> None:
        with Chatter(platform, PEOPLE, words=12, every=0.1) as people:
            eventually(lambda: len(platform.talks) == PEOPLE, ANSWERED_SECONDS)
            for name, (fault, seconds) in platform.faults().items():
                fault()
                time.sleep(seconds)
                platform.heal()
                print(f"{name}: everybody had another answer {platform.wait_for_answers():.1f} s after it was mended")
            people.stop()
            platform.settled(seconds=120)
        assert people.problems == []
        assert platform.breaches() == []
        assert {status for talk in platform.talks for status in talk.statuses} == {"answered"}
        print(f"{sum(platform.answers())} messages, all answered")
