"""What pages and turns cost in an installation that has grown: ``python -m tests.benchmarks.growth``.

Each size is seeded by statements that copy a few rows of the product's own, on a PostgreSQL of the benchmark's. In the long
dialog rewrites have taken all but the newest turns out of the model's sight. Cost is processor time, of the thread that answers and of
the connection's server process; wall times of a busy machine say little.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks.rig import NO_LIMITS, _llm_yaml, load, report, table
from tests.harness.postgres import PostgresServer
from tests.harness.redis_server import RedisServer
from tests.harness.stack import ROOT

IN_SIGHT = 100  # turns since the newest rewrite of the long dialog
REWRITTEN_EACH = 200  # turns that each of its rewrites took out of sight
DAYS = 180  # since the oldest of many dialogs
RUNS = 3
FLAT, LOGARITHMIC = 1.3, 2.0
TABLES = (
    "dialogs_dialog dialogs_turn dialogs_event dialogs_generation dialogs_round dialogs_question health_healthsnapshot "
    "remediation_remediationrun remediation_removedunit remediation_contextevent"
).split()
TOPIC = (
    "(ARRAY['parser','refund','customer','config','billing','invoice','ledger','worker','lease','queue'])[1 + n % 10]"
)


@dataclass(frozen=True, slots=True)
class Size:
    """``turns`` of the long dialog, and how many others there are."""

    turns: int
    dialogs: int
    people: int


SMALL, FULL = Size(1_000, 10_000, 10), Size(100_000, 1_000_000, 1_000)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one request: statements, milliseconds of processor time here and in the database, rows that the database touched."""

    statements: int
    here: float
    database: float
    rows: int
    wall: float

    @property
    def processor(self) -> float:
        return self.here + self.database


# -- Seeding --------------------------------------------------------------------------------------------------------------


class Seeder:
    """Copies rows inside the database."""

    def __init__(self) -> None:
        from django.db import connection

        self.connection = connection
        self.run("SET statement_timeout = 0")  # requests may take 30 s
        self.run(
            "SET session_replication_role = replica"
        )  # no foreign key is looked up: a minute of CPU a million rows

    def run(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    def copy(self, row: Any, numbers: str, **columns: str) -> None:
        """The stored row once for each ``n`` of ``numbers``, a set in SQL, but for these columns, which are SQL of ``n``."""
        named = {
            field.column: columns.get(str(field.column), f"t.{field.column}")
            for field in row._meta.concrete_fields
            if not field.primary_key or field.column in columns
        }
        key = row._meta.pk.column
        into, values = ", ".join(f'"{name}"' for name in named), ", ".join(named.values())
        of = f"{row._meta.db_table} t, {numbers} AS n WHERE t.{key} = '{row.pk}'"
        self.run(f"INSERT INTO {row._meta.db_table} ({into}) SELECT {values} FROM {of}")

    def number_on(self, model: Any) -> None:
        """The next row comes after those whose keys were given."""
        name = model._meta.db_table
        self.run(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), (SELECT max(id) FROM {name}))")

    def settle(self) -> None:
        for name in TABLES:
            self.run(f"VACUUM (ANALYZE) {name}")
        self.run("RESET session_replication_role")
        self.run("RESET statement_timeout")


def text_of(chars: int, n: str = "n") -> str:
    """SQL of a text that holds a topic and a word that no other has."""
    return f"left('Case ' || {n} || ' of ' || {TOPIC} || ' ' || md5(({n})::text) || repeat(' lorem ipsum dolor sit amet', {chars // 27}), {chars})"


def ago(days: str) -> str:
    return f"now() - ({days}) * interval '1 day'"


def seed(size: Size) -> None:
    from django.contrib.auth.models import Group, User

    from dialogs.models import Agent

    seeder = Seeder()
    agent = Agent.objects.create(
        id="bench",
        name="Bench",
        provider="bench",
        model="quick",
        instructions="Be brief.",
        context_policy="retention",
        recall=False,
    )
    owner = User.objects.create_user("bench-0", password=None)
    User.objects.create_superuser("operator", password=None)
    seeder.copy(owner, f"generate_series(1, {size.people - 1})", username="'bench-' || n")
    group = Group.objects.create(name="team-0")
    seeder.copy(group, f"generate_series(1, {size.people // 10})", name="'team-' || n")
    seeder.run(
        f"INSERT INTO auth_user_groups (user_id, group_id) SELECT u.id, {group.pk} + u.id % {size.people // 10 + 1} "
        "FROM auth_user u WHERE u.username LIKE 'bench-%'"
    )
    _long_dialog(seeder, size, agent, owner)
    _many_dialogs(seeder, size, agent, owner, group)
    seeder.settle()


def _long_dialog(seeder: Seeder, size: Size, agent: Any, owner: Any) -> None:
    """The first exchange is stored as the others are and then copied."""
    from dialogs.models import Dialog, Event, Generation, Turn
    from dialogs.store.events import _written
    from health.models import HealthSnapshot
    from remediation.models import RemediationRun, RemovedUnit
    from tests.benchmarks.seeding import dialog_at

    dialog = dialog_at(1, agent, owner)
    Event.objects.filter(dialog=dialog, seq__gt=1).delete()
    event = Event.objects.get(dialog=dialog)
    steps = [
        ("state", {"state": "generating", "failure": ""}),
        ("turn", {"turn": 1}),
        ("state", {"state": "idle", "failure": ""}),
    ]
    event.more = "".join(f"{_written(step)},12" for step in [*steps, *steps[:1]])
    event.save()
    exchanges, call = size.turns // 2, Generation.objects.get(dialog=dialog)
    snapshot, (asked, answered) = HealthSnapshot.objects.get(generation=call), Turn.objects.filter(dialog=dialog)
    numbers, number = f"generate_series(2, {exchanges})", f"{call.pk} + n - 1"
    when = ago(f"{DAYS * 2} - n * {DAYS}.0 / {exchanges}")
    seeder.copy(
        call,
        numbers,
        id=number,
        epoch="n",
        answers_seq="2 * n - 1",
        started_at=when,
        finished_at=f"{when} + interval '2 s'",
    )
    seeder.copy(snapshot, numbers, generation_id=number)
    seeder.copy(asked, numbers, seq="2 * n - 1", position="2 * n - 1", text=text_of(100), created_at=when)
    seeder.copy(
        answered, numbers, seq="2 * n", position="2 * n", text=text_of(400), generation_id=number, created_at=when
    )
    seeder.copy(event, numbers, seq="8 * n - 7", created_at=when)
    run = RemediationRun.objects.create(
        dialog=dialog, round_number=1, policy="retention", reason="benchmark", est_before=20_000, est_after=8_000,
        base_position=REWRITTEN_EACH - IN_SIGHT, removed=[], view=[],
    )  # fmt: skip
    unit = RemovedUnit.objects.create(
        run=run, dialog=dialog, unit_id="t1", kind="user", role="user", est_tokens=25, text="x"
    )
    last = f"n * {REWRITTEN_EACH} - {IN_SIGHT}"
    view = f"(SELECT jsonb_agg(jsonb_build_object('turns', jsonb_build_array(s))) FROM generate_series({last} - 39, {last}) s)"
    runs = size.turns // REWRITTEN_EACH
    seeder.copy(run, f"generate_series(2, {runs})", id=f"{run.pk} + n - 1", base_position=last, view=view)
    of_run = f"{run.pk} + LEAST({runs} - 1, n / {REWRITTEN_EACH})"
    seeder.copy(
        unit, f"generate_series(2, {size.turns - IN_SIGHT})", run_id=of_run, unit_id="'t' || n", text=text_of(250)
    )
    Dialog.objects.filter(pk=dialog.pk).update(
        last_turn_seq=size.turns, last_position=size.turns, last_event_seq=exchanges * 8 - 1, title="The long dialog"
    )
    for model in (Generation, RemediationRun):
        seeder.number_on(model)


def _many_dialogs(seeder: Seeder, size: Size, agent: Any, owner: Any, group: Any) -> None:
    """Of a hundred dialogs twenty hold two exchanges, ten a folder, five are shared, twenty put away, five rewritten."""
    from dialogs.models import Dialog, Event, Generation, Question, Round, Turn
    from dialogs.operations import costs
    from health.models import HealthSnapshot
    from remediation.models import ContextEvent, RemediationRun
    from tests.benchmarks.seeding import dialog_at

    first = dialog_at(1, agent, owner)
    Event.objects.filter(dialog=first, seq__gt=1).delete()
    numbers, key = f"generate_series(1, {size.dialogs})", "md5('dialog ' || n)::uuid"
    when = ago(f"({size.dialogs} - n) * {DAYS}.0 / {size.dialogs}")
    seeder.copy(
        first, numbers, id=key, owner_id=f"{owner.pk} + CASE WHEN n % {size.people} = 0 THEN 0 ELSE n % {size.people} + 1 END",
        title=f"'Dialog ' || n || ' of ' || {TOPIC}", created_at=when, active_at=when,
        group_id=f"CASE WHEN n % 20 = 7 THEN {group.pk} + n % {size.people // 10 + 1} END",
        folder="CASE WHEN n % 10 = 3 THEN 'folder ' || n / 1000 % 7 END",
        pinned_at=f"CASE WHEN n % 1000 = 5 THEN {when} END", archived_at=f"CASE WHEN n % 5 = 4 THEN {when} END",
        expires_at="CASE WHEN n % 100 = 9 THEN now() + interval '30 days' END",
        origin="CASE WHEN n % 10 = 6 THEN 'key' ELSE 'person' END",
        state="CASE WHEN n % 1000 = 11 THEN 'failed' WHEN n % 1000 = 12 THEN 'waiting' ELSE 'idle' END",
    )  # fmt: skip
    seeder.copy(Round.objects.get(dialog=first), numbers, dialog_id=key, created_at=when)
    call = Generation.objects.get(dialog=first)
    snapshot, (asked, answered) = HealthSnapshot.objects.get(generation=call), Turn.objects.filter(dialog=first)
    spoken = f"generate_series(5, {size.dialogs}, 5)"
    for part in (0, 1):
        number = f"{call.pk} + n / 5 * 2 - 1 + {part}"
        seeder.copy(
            call, spoken, id=number, dialog_id=key, started_at=when, finished_at=f"{when} + interval '2 s'",
            cost_usd="0.001", first_token_ms="300",
        )  # fmt: skip
        seeder.copy(snapshot, spoken, generation_id=number)
        seeder.copy(
            asked,
            spoken,
            dialog_id=key,
            seq=f"{2 * part + 1}",
            position=f"{2 * part + 1}",
            text=text_of(100),
            created_at=when,
        )
        seeder.copy(
            answered, spoken, dialog_id=key, seq=f"{2 * part + 2}", position=f"{2 * part + 2}", text=text_of(400),
            generation_id=number, created_at=when,
        )  # fmt: skip
    seeder.copy(Event.objects.get(dialog=first), spoken, dialog_id=key, created_at=when)
    run = RemediationRun.objects.create(
        dialog=first, round_number=1, policy="retention", reason="benchmark", est_before=900, est_after=700,
        base_position=2, removed=[], view=[{"turns": [1]}, {"turns": [2]}],
    )  # fmt: skip
    seeder.copy(run, f"generate_series(20, {size.dialogs}, 20)", dialog_id=key, created_at=when)
    met = ContextEvent.objects.create(dialog=first, code="CONTEXT_WARNING", message="It fills up.")
    seeder.copy(met, f"generate_series(20, {size.dialogs}, 20)", dialog_id=key, created_at=when)
    asks = Question.objects.create(dialog=first, kind="question", state="answered", text="Which one?")
    asking = "md5('question ' || n)::uuid"
    seeder.copy(asks, f"generate_series(50, {size.dialogs}, 50)", id=asking, dialog_id=key, created_at=when)
    seeder.copy(
        asks, f"generate_series(12, {size.dialogs}, 1000)", id=asking, dialog_id=key, created_at=when, state="'open'"
    )
    seeder.number_on(Generation)
    costs.sum_up_days()  # as the sweeper does each hour
    assert Dialog.objects.count() == size.dialogs + 2


# -- Measuring ------------------------------------------------------------------------------------------------------------


class Meter:
    """Processor time of the connection's server process, and what its database counted."""

    def __init__(self) -> None:
        from django.db import connection

        self.connection = connection
        with connection.cursor() as cursor:  # what parallel workers do would count nowhere
            cursor.execute("SET max_parallel_workers_per_gather = 0")

    def _asked(self, statement: str) -> tuple[int, ...]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return tuple(int(value) for value in cursor.fetchone())

    def _now(self) -> tuple[int, float]:
        self._asked("SELECT 1 FROM pg_stat_force_next_flush()")
        rows, pid = self._asked(
            "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read + n_tup_ins + n_tup_upd), pg_backend_pid() FROM pg_stat_user_tables"
        )
        return rows, int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6

    def measured(self, act: Callable[[], object], runs: int = RUNS) -> Cost:
        statements = []

        def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            statements.append(sql)
            return execute(sql, params, many, context)

        act()
        with self.connection.execute_wrapper(note):
            act()
        results = []
        idle_before, (_, at) = self._now(), self._now()
        probe = at - idle_before[1]  # what asking itself costs
        for _ in range(runs):
            rows, server = self._now()
            here, wall = time.thread_time(), time.perf_counter()  # threads that index texts meanwhile count elsewhere
            act()
            wall, here = time.perf_counter() - wall, time.thread_time() - here
            rows_after, server_after = self._now()
            results.append((here * 1000, max(0.0, server_after - server - probe), rows_after - rows, wall * 1000))
        here, server, touched, wall = (median(column) for column in zip(*results, strict=True))
        return Cost(len(statements), here, server, int(touched), wall)


# Name, address and, where it is not "person", who asks. ``page`` is the long dialog's, ``api`` the same below /api.
PAGES = (
    ("look at the long dialog", "{page}"),
    ("its transcript, deep", "{page}older?before={half}"),
    ("its panel and context", "{page}context/"),
    ("its time-line", "{page}timeline/"),
    ("its calls", "{page}health/"),
    ("its calls, last page", "{page}health/?page=999999"),
    ("its archive", "{page}archive/"),
    ("its archive, last page", "{page}archive/?page=999999"),
    ("find in its archive", "{page}archive/?q=refund"),
    ("find in it, common word", "{page}find/?q=refund"),
    ("one call", "{page}calls/{newest}/"),
    ("its statistics, /api", "{api}/statistics"),
    ("its turns, /api, deep", "{api}/turns?after={half}&limit=100"),
    ("its events, /api, deep", "{api}/events?after={double}&limit=100"),
    ("find everywhere, common word", "/find/?q=refund"),
    ("find everywhere, rare word", "/find/?q={rare}"),
    ("find everywhere, no such word", "/find/?q=zyzzyvas"),
    ("find everywhere, all, no such word", "/find/?q=zyzzyvas&all=1"),
    ("home with navigation", "/"),
    ("list of dialogs", "/dialogs/"),
    ("list of dialogs, page 20", "/dialogs/?page=20"),
    ("list, words", "/dialogs/?q=refund"),
    ("list, everybody's", "/dialogs/", "operator"),
    ("list, everybody's, last page", "/dialogs/?page=999999", "operator"),
    ("list, everybody's, words of a title", "/dialogs/?q=Dialog+77", "operator, by htmx"),
    ("list, everybody's, words of all titles and texts", "/dialogs/?q=Dialog+77&all=1", "operator, by htmx"),
    ("questions", "/q4h/"),
    ("questions, everybody's", "/q4h/", "operator"),
    ("/api/dialogs", "/api/dialogs?limit=100"),
    ("/api/dialogs, after 500", "/api/dialogs?limit=100&after={middle}"),
    ("/api/dialogs, everybody's, after 500", "/api/dialogs?limit=100&after={middle}", "operator"),
    ("statistics", "/statistics/", "operator"),
    ("statistics, a person's", "/statistics/"),
    ("operations", "/ops/", "operator"),
)
ADMIN_PAGES = (
    *((f"admin, {name.partition('_')[2]}", f"/admin/{name.replace('_', '/')}/") for name in TABLES),
    ("admin, dialog, last page", "/admin/dialogs/dialog/?p={last}"),
    ("admin, dialog, found by its id", "/admin/dialogs/dialog/?q={long}"),
    ("admin, dialog, found by words", "/admin/dialogs/dialog/?q=long"),
    ("admin, turn, of one dialog", "/admin/dialogs/turn/?q={long}"),
    ("admin, call, of one dialog", "/admin/dialogs/generation/?q={long}"),
    ("admin, snapshot, of one dialog", "/admin/health/healthsnapshot/?q={long}"),
    ("admin, snapshot, by level", "/admin/health/healthsnapshot/?level__exact=critical"),
)


def requests(turns: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is measured, by its name."""
    from django.contrib.auth.models import User
    from django.test import Client

    from dialogs.actions.messages import post_message
    from dialogs.models import Dialog, Generation, Turn
    from dialogs.operations import dashboard, expiry, sweeping
    from dialogs.runtime.driver import drive

    person, operator = User.objects.get(username="bench-0"), User.objects.get(username="operator")
    long = Dialog.objects.get(title="The long dialog")
    clients = {"person": Client(), "operator": Client(), "operator, by htmx": Client(headers={"HX-Request": "true"})}
    for who, client in clients.items():
        client.force_login(person if who == "person" else operator)
    others_words = Turn.objects.exclude(dialog=long).filter(dialog__owner=person).order_by("-pk")[0].text.split()
    names = {
        "long": long.pk, "page": f"/d/{long.pk}/", "api": f"/api/dialogs/{long.pk}", "half": turns // 2, "double": turns * 2,
        "newest": Generation.objects.filter(dialog=long).order_by("-pk")[0].pk, "rare": others_words[4],
        "middle": Dialog.objects.filter(owner=person).order_by("created_at")[500].pk, "last": 20_000 if turns > 10_000 else 200,
    }  # fmt: skip

    def get(address: str, who: str = "person") -> None:
        answer = clients[who].get(address)
        assert answer.status_code == 200, (address, answer.status_code, answer.content[:500])

    def turn() -> None:
        post_message(long.pk, "What now?", author=person)
        drive(long.pk)
        assert Dialog.objects.get(pk=long.pk).state == "idle"

    yield "turn, message to idle", turn
    for name, address, *who in (*PAGES, *((*page, "operator") for page in ADMIN_PAGES)):
        yield name, partial(get, address.format(**names), *who)
    yield "sweep of dialogs that are owed", sweeping.sweep
    yield "sweep of notices", sweeping.notify
    yield "sweep of what expired", expiry.remove_expired
    yield "stuck dialogs", dashboard.stuck_dialogs


def sizes() -> dict[str, int]:
    """Bytes of each table with its indexes."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relname = ANY(%s)", [TABLES])
        return dict(cursor.fetchall())


@contextmanager
def surroundings(database: str) -> Iterator[None]:
    """Redis, a provider and Django in this process."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(TemporaryDirectory()))
        redis = RedisServer().start()
        opened.callback(redis.remove)
        command = [sys.executable, "-m", "tests.benchmarks.model_server", "--tokens", "100", "--answer-chars", "400"]
        model = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        opened.callback(model.wait)
        opened.callback(model.kill)
        assert model.stdout is not None
        (folder / "minds").mkdir()
        (folder / "minds" / "llm.yaml").write_text(_llm_yaml(f"http://127.0.0.1:{int(model.stdout.readline())}"))
        os.environ |= {
            **NO_LIMITS, "DJANGO_SETTINGS_MODULE": "dominds.settings", "DATABASE_URL": database, "REDIS_URL": redis.url,
            "DOMINDS_DATA_DIR": str(folder / "data"), "DOMINDS_MINDS_DIR": str(folder / "minds"), "DOMINDS_LOG_LEVEL": "ERROR",
            "ALLOWED_HOSTS": "testserver,localhost", "DOMINDS_HTTPS": "false",
        }  # fmt: skip
        import django

        django.setup()
        yield


def measure(database: str, size: Size, only: str) -> dict[str, Any]:
    """Run in a process of its own."""
    with surroundings(database):
        from django.core.management import call_command
        from django.db import DatabaseError

        from dialogs.models import Dialog

        call_command("migrate", verbosity=0)
        if not Dialog.objects.exists():
            begun = time.monotonic()
            seed(size)
            print(f"{size} seeded in {time.monotonic() - begun:.0f} s", file=sys.stderr)
        meter, result = Meter(), {}
        for name, act in requests(size.turns):
            if re.search(only, name):
                try:
                    result[name] = asdict(meter.measured(act))
                except (AssertionError, DatabaseError) as error:  # what takes longer than any request may
                    print(f"{name}: {error}"[:300], file=sys.stderr)
                    continue
                print(f"{name}: {result[name]}", file=sys.stderr)
        return {"costs": result, "sizes": sizes()}


def verdict(small: Cost, full: Cost) -> str:
    times = full.processor / small.processor
    return "flat" if times <= FLAT else "logarithmic" if times <= LOGARITHMIC else "**grows**"


def rows_of(small: Mapping[str, Cost], full: Mapping[str, Cost]) -> list[list[str]]:
    def cells(cost: Cost) -> list[str]:
        return [f"{cost.statements}", f"{cost.here:.1f} + {cost.database:.1f}", f"{cost.rows:,}"]

    return [
        [
            name,
            *cells(small[name]),
            *cells(cost),
            f"{cost.processor / small[name].processor:.1f}",
            verdict(small[name], cost),
        ]
        for name, cost in full.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", choices=["small", "full"], help="measure one size in this process, as JSON")
    parser.add_argument("--database", default="", help="address of an empty database, or of one that was seeded before")
    parser.add_argument("--only", default="", help="what has this expression in its name")
    parser.add_argument("--full", default="", help="TURNS,DIALOGS,PEOPLE in place of 100000,1000000,1000")
    asked = parser.parse_args()
    sized = {"small": SMALL, "full": Size(*map(int, asked.full.split(","))) if asked.full else FULL}
    if asked.one:
        print(json.dumps(measure(asked.database, sized[asked.one], asked.only)))
        return
    server = PostgresServer().start()
    figures: dict[str, Any] = {}
    try:
        for name in sized:
            address = server.create_database(name)
            command = [sys.executable, "-m", "tests.benchmarks.growth", "--one", name, "--database", address]
            options = ["--only", asked.only, "--full", asked.full]
            done = subprocess.run([*command, *options], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            figures[name] = json.loads(done.stdout.splitlines()[-1])
            server.execute(f'DROP DATABASE "{name}"')
    finally:
        server.remove()
    costs = [{name: Cost(**cost) for name, cost in figures[size]["costs"].items()} for size in sized]
    head = ["what", *["statements", "ms here + in the database", "rows"] * 2, "times", "verdict"]
    report(f"## Growth ({load()}; {sized['small']} and {sized['full']})\n\n" + table(head, rows_of(*costs)))
    megabytes = [[name, *(f"{figures[size]['sizes'].get(name, 0) / 1e6:,.1f}" for size in sized)] for name in TABLES]
    report(table(["table, MB", "small", "full"], megabytes))


if __name__ == "__main__":
    main()
