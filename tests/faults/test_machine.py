"""What the machines themselves do to a running product: disks that fill or fail, clocks that differ, new versions.

All of it only in ``make faults``, as root: a disk to fill is a mount, a failing one takes ``strace``, another clock
``cc``. Where one of these is missing the test fails and says so.
"""

import shutil
import signal
import sqlite3
import subprocess
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.faults.arena import Arena, Chatter
from tests.faults.effort import everything
from tests.harness.postgres import fill
from tests.harness.stack import ROOT, Stack, eventually, running

pytestmark = everything


# -- disks -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(django_db_blocker: Any) -> Iterator[Arena]:
    """An arena whose PostgreSQL lies on a disk of its own."""
    arena = Arena(disk_mb=160)
    try:
        with django_db_blocker.unblock(), arena.orm():
            arena.start()
            yield arena
    finally:
        arena.stop()


def test_a_full_disk_under_the_database(small_disk: Arena) -> None:
    arena = small_disk
    answers: list[tuple[int, str]] = []
    with Chatter(arena, 3, words=10, every=0.05) as people:
        time.sleep(3)
        ballast = fill(arena.postgres.folder)
        probe = arena.talks[0]
        deadline = time.monotonic() + 60
        while "No space left on device" not in arena.postgres.log or not any(code >= 500 for code, _ in answers):
            assert time.monotonic() < deadline, f"nobody noticed the full disk: {answers}"
            answer = arena.api.post(f"/api/dialogs/{probe.id}/messages", json={"text": f"{probe.mark} {'x' * 20_000}"})
            answers.append((answer.status_code, answer.json().get("error", {}).get("code", "")))
        time.sleep(5)
        ballast.unlink()
        arena.heal()  # PostgreSQL gives up when its log finds no room
        time.sleep(3)
    arena.settled(seconds=90)
    print(f"answers while the disk was full: {sorted(set(answers))}; PANIC: {'PANIC' in arena.postgres.log}")
    assert set(answers) <= {(202, ""), (503, "unavailable")}
    assert people.problems == []
    assert arena.breaches() == []
    assert {status for talk in arena.talks for status in talk.statuses} == {"answered"}


def test_a_disk_that_fails_to_sync(arena: Arena) -> None:
    """PostgreSQL trusts nothing after a failed sync: it panics and recovers from its log.
    Nothing accepted may be lost."""
    assert shutil.which("strace"), "This test needs Debian's strace."
    with Chatter(arena, 3, words=10, every=0.05) as people:
        time.sleep(2)
        with failing_syncs(arena):
            eventually(lambda: "PANIC" in arena.postgres.log, 30, every=0.02)
        time.sleep(3)
        arena.heal()
        time.sleep(3)
    arena.settled(seconds=90)
    assert people.problems == []
    assert arena.breaches() == []
    assert {status for talk in arena.talks for status in talk.statuses} == {"answered"}


@contextmanager
def failing_syncs(arena: Arena) -> Iterator[None]:
    pids = [word for pid in arena.postgres.pids() for word in ("-p", str(pid))]
    failing = ["-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:error=EIO"]
    tracer = subprocess.Popen(
        ["strace", "-f", "-qq", "-o", "/dev/null", *failing, *pids], stderr=subprocess.PIPE, text=True
    )
    try:
        yield
    finally:
        tracer.send_signal(signal.SIGINT)  # it lets go of them all
        print(f"strace: {tracer.communicate(timeout=20)[1][:300]!r}")


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Stack]:
    """A product on SQLite, as it comes, whose database lies on a disk of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "dominds-test", str(disk)], check=True)
    try:
        stack = Stack(f"sqlite:///{disk / 'dominds.sqlite3'}")
        with running(stack):
            model = {"name": "Slow", "script": "slow.yaml", "context_length": 128_000}
            stack.write_minds(
                slow={"chunk_chars": 5, "chunk_delay_ms": 50, "steps": [{"text": "word " * 20}] * 500},
                llm={"providers": {"test": {"name": "Test", "apiType": "scripted", "models": {"slow": model}}}},
                team={"members": {"slow": {"name": "Slow", "provider": "test", "model": "slow"}}},
            )
            stack.create_person("ada")
            yield stack
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


class Talkers:
    """Three dialogs with the embedded product, by its API alone."""

    def __init__(self, stack: Stack) -> None:
        self._api = stack.api("ada")
        self.dialogs = [self._api.post("/api/dialogs", json={"agent": "slow"}).json()["id"] for _ in range(3)]
        self.accepted: Counter[str] = Counter()
        self.answers: set[tuple[int, str]] = set()

    def say(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for dialog in self.dialogs:
                answer = self._api.post(f"/api/dialogs/{dialog}/messages", json={"text": "x" * 5_000})
                self.accepted[dialog] += answer.status_code == 202
                self.answers.add((answer.status_code, answer.json().get("error", {}).get("code", "")))
            time.sleep(0.3)

    def settle(self) -> None:
        """Each accepted message has its one answer, and the events have no gap."""
        eventually(lambda: {self._read(dialog)["state"] for dialog in self.dialogs} == {"idle"}, 150)
        print(f"{self.accepted.total()} messages; answers: {sorted(self.answers)}")
        for dialog in self.dialogs:
            ends = Counter((turn["role"], turn["status"]) for turn in self._read(dialog, "/turns?limit=1000"))
            number = self.accepted[dialog]
            assert ends == {("user", "answered"): number, ("assistant", "complete"): number}
            events = [event["seq"] for event in self._read(dialog, "/events?limit=1000")]
            assert events == list(range(1, len(events) + 1))

    def _read(self, dialog: str, more: str = "") -> Any:
        return self._api.get(f"/api/dialogs/{dialog}{more}").json()


def test_a_full_disk_under_sqlite(embedded: Stack) -> None:
    people = Talkers(embedded)
    people.say(2)
    ballast = fill(file_of(embedded).parent)
    people.say(8)
    ballast.unlink()
    people.say(2)
    people.settle()
    assert people.answers == {(202, ""), (503, "unavailable")}


def test_eight_other_writers_on_sqlite(embedded: Stack) -> None:
    people, ending = Talkers(embedded), threading.Event()
    with closing(sqlite3.connect(file_of(embedded))) as first:
        first.executescript("CREATE TABLE others (number INTEGER); INSERT INTO others VALUES (0)")
    written: Counter[int] = Counter()

    def write(number: int) -> None:
        with closing(sqlite3.connect(file_of(embedded), timeout=60, isolation_level=None)) as database:
            while not ending.is_set():
                database.execute("BEGIN IMMEDIATE")
                database.execute("UPDATE others SET number = ?", [number])
                database.execute("COMMIT")
                written[number] += 1

    writers = [threading.Thread(target=write, args=[number]) for number in range(8)]
    for writer in writers:
        writer.start()
    try:
        people.say(12)
        people.settle()
    finally:
        ending.set()
        for writer in writers:
            writer.join()
    print(f"{written.total()} transactions of others meanwhile")
    assert people.answers == {(202, "")}


def file_of(stack: Stack) -> Path:
    return Path(stack.database_url.removeprefix("sqlite://"))


# -- a standby ---------------------------------------------------------------------------------------------------------
def test_a_standby_promoted_in_place_of_a_database_that_died(django_db_blocker: Any) -> None:
    arena = Arena()
    first = arena.postgres
    try:
        with django_db_blocker.unblock():
            arena.start()
            second = first.start_standby()
            with Chatter(arena, 3, words=10, every=0.05) as people:
                time.sleep(4)
                first.stop(signal.SIGQUIT)
                died = time.monotonic()
                second.execute("SELECT pg_promote()")
                arena.postgres, arena.database_proxy.target = second, second.tcp_port or 0
                with arena.orm():
                    answered = sum(talk.statuses.count("answered") for talk in arena.talks)
                    eventually(lambda: sum(talk.statuses.count("answered") for talk in arena.talks) > answered + 3, 60)
                    print(f"answers go on {time.monotonic() - died:.1f} s after the first database died")
            with arena.orm():
                arena.settled(seconds=60)
                assert people.problems == []
                assert arena.breaches() == []
                assert {status for talk in arena.talks for status in talk.statuses} == {"answered"}
    finally:
        first.remove()
        arena.stop()


# -- clocks ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def other_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    assert compiler, "This test needs a C compiler."
    library = tmp_path_factory.mktemp("clock") / "other_clock.so"
    source = Path(__file__).with_name("other_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


@pytest.mark.parametrize("shift", [3600, -3600])
def test_a_worker_whose_clock_is_an_hour_off(arena: Arena, other_clock: Path, shift: int) -> None:
    usual = arena.stack.workers
    odd = arena.start_worker(LD_PRELOAD=str(other_clock), CLOCK_SHIFT=str(shift))
    for worker in usual:
        worker.kill()
    # Alone: it claims, renews past a whole lease, and backs off for seconds and not for an hour.
    long = arena.talk(words=150, every=0.1)
    busy = arena.talk(words=3, then="status", status=429, fails=2)
    patient = arena.talk(words=3, then="status", status=429, retry_after="12", fails=1)  # its row says when to wake it
    arena.settled(seconds=60)
    assert patient.outcomes == ["failed", "kept"]
    assert long.outcomes == ["kept"]
    assert busy.outcomes == ["failed", "failed", "kept"]
    # Beside others: nobody takes its dialogs away while it lives, and its dialogs are taken over when it dies.
    held = arena.talk(words=500, every=0.1)
    arena.streaming(held)
    for _ in usual:
        arena.start_worker()
    time.sleep(6)
    assert arena.driven_by(held) is odd
    odd.kill()
    arena.settled(seconds=100)
    assert held.outcomes == ["crashed", "kept"]
    first, second = held.row.generations.order_by("id")
    print(f"by their own clocks, the second attempt began {second.started_at - first.started_at} after the first")
    arena.say(busy)
    arena.settled()
    assert busy.statuses == ["answered", "answered"]
    assert arena.breaches() == []


# -- new versions ------------------------------------------------------------------------------------------------------

ADDITIONS = """
    from django.db import migrations, models

    class Migration(migrations.Migration):
        dependencies = [("dialogs", "{before}")]
        operations = [
            migrations.AddField("dialog", "arena_note", models.TextField(db_default="")),
            migrations.AddField("turn", "arena_note", models.TextField(null=True)),
            migrations.CreateModel("ArenaThing", [("id", models.BigAutoField(primary_key=True))]),
        ]
"""
INDEX = """
    from django.contrib.postgres.operations import AddIndexConcurrently
    from django.db import migrations, models

    class Migration(migrations.Migration):
        atomic = False
        dependencies = [("dialogs", "9998_additions")]
        operations = [
            AddIndexConcurrently("turn", models.Index(fields=["created_at"], name="arena_turn_created")),
        ]
"""


@pytest.fixture
def next_version(tmp_path: Path) -> dict[str, str]:
    """The environment of a version with two more migrations, which only add."""
    migrations = tmp_path / "next_version" / "migrations"
    shutil.copytree(ROOT / "dialogs" / "migrations", migrations, ignore=shutil.ignore_patterns("__pycache__"))
    newest = max(file.stem for file in migrations.glob("0*.py"))
    (migrations / "9998_additions.py").write_text(textwrap.dedent(ADDITIONS).format(before=newest))
    (migrations / "9999_index.py").write_text(textwrap.dedent(INDEX))
    (migrations.parent / "__init__.py").touch()
    settings = 'from dominds.settings import *\n\nMIGRATION_MODULES = {"dialogs": "next_version.migrations"}\n'
    (migrations.parent / "settings.py").write_text(settings)
    return {"DJANGO_SETTINGS_MODULE": "next_version.settings", "PYTHONPATH": str(tmp_path)}


def test_a_new_version_is_deployed_while_people_talk(arena: Arena, next_version: dict[str, str]) -> None:
    """As docs/operations.md has it: migrate, then replace workers, web server and sweeper, one by one, by TERM."""
    streams = [arena.talk(words=600, every=0.1) for _ in range(6)]
    for talk in streams:
        arena.streaming(talk)
    with Chatter(arena, 3, words=8, every=0.05) as people:
        started = time.monotonic()
        with a_long_look_at_the_rows(arena, seconds=12):
            arena.stack.manage("prepare", **next_version)
        print(f"migrated in {time.monotonic() - started:.1f} s")
        assert [talk.outcomes for talk in streams] == [["running"]] * 6, "a migration must not disturb an answer"
        for old in arena.stack.workers:
            arena.start_worker(**next_version)
            ended = time.monotonic()
            old.signal(signal.SIGTERM)
            old.process.wait(30)
            print(f"a worker was gone {time.monotonic() - ended:.1f} s after TERM")
        arena.stack.web.terminate()
        arena.stack.wait_until_ready(arena.stack.start_web())
        arena.stack.parts_named("sweeper")[0].terminate()
        arena.stack.start_sweeper()
        time.sleep(2)
    arena.settled(seconds=150)
    assert people.problems == []
    assert arena.breaches() == []
    assert {status for talk in arena.talks for status in talk.statuses} == {"answered"}
    assert {talk.row.crashes for talk in arena.talks} == {0}
    with psycopg.connect(address_of(arena)) as session:
        valid = session.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = 'arena_turn_created'::regclass")
        assert valid.fetchone() == (True,)


@contextmanager
def a_long_look_at_the_rows(arena: Arena, seconds: float) -> Iterator[None]:
    """Somebody reads in a transaction meanwhile, as a backup does: ALTER TABLE has to wait for it."""
    with psycopg.connect(address_of(arena)) as session:
        session.execute("SELECT count(*) FROM dialogs_dialog")
        threading.Timer(seconds, session.rollback).start()
        yield


def address_of(arena: Arena) -> str:
    return arena.postgres.tcp_url(arena.postgres.tcp_port or 0, "arena").replace("postgres:", "postgresql:")
