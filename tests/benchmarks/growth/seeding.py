"""An installation of any size: a few rows of the product's own, copied inside PostgreSQL by statements.

In the long dialog rewrites have taken all but the newest turns out of the model's sight.
"""

from dataclasses import dataclass
from typing import Any

from tests.benchmarks.seeding import dialog_at

IN_SIGHT = 100  # turns since the newest rewrite of the long dialog
REWRITTEN_EACH = 200  # turns that each of its rewrites took out of sight
DAYS = 180  # since the oldest of many dialogs
TABLES = (
    "dialogs_dialog dialogs_turn dialogs_event dialogs_generation dialogs_round dialogs_question health_healthsnapshot "
    "remediation_remediationrun remediation_removedunit remediation_contextevent"
).split()
DIALOG = "md5('dialog ' || n)::uuid"  # the key of the n-th of many dialogs
TOPIC = (
    "(ARRAY['parser','refund','customer','config','billing','invoice','ledger','worker','lease','queue'])[1 + n % 10]"
)


@dataclass(frozen=True, slots=True)
class Size:
    """``turns`` of the long dialog, and how many others there are."""

    turns: int
    dialogs: int
    people: int


class Seeder:
    """Copies rows inside the database."""

    def __init__(self) -> None:
        from django.db import connection

        self.connection = connection
        self.run("SET statement_timeout = 0")  # requests may take 30 s
        # No foreign key is looked up, which takes a minute of CPU for a million rows.
        self.run("SET session_replication_role = replica")

    def run(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    def copy(self, row: Any, numbers: str, **columns: str) -> None:
        """The stored row once for each ``n`` of ``numbers``, a set in SQL, but for these columns,
        which are SQL of ``n``."""
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
    return (
        f"left('Case ' || {n} || ' of ' || {TOPIC} || ' ' || md5(({n})::text) || repeat(' lorem ipsum dolor sit "
        f"amet', {chars // 27}), {chars})"
    )


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
    from dialogs.store.events import _write_item
    from health.models import HealthSnapshot
    from remediation.models import RemediationRun, RemovedUnit

    dialog = dialog_at(1, agent, owner)
    Event.objects.filter(dialog=dialog, seq__gt=1).delete()
    event = Event.objects.get(dialog=dialog)
    steps: list[tuple[str, dict[str, Any]]] = [
        ("state", {"state": "generating", "failure": ""}),
        ("turn", {"turn": 1}),
        ("state", {"state": "idle", "failure": ""}),
    ]
    event.more = "".join(f"{_write_item(step)},12" for step in [*steps, *steps[:1]])
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
        dialog=dialog,
        round_number=1,
        policy="retention",
        reason="benchmark",
        est_before=20_000,
        est_after=8_000,
        base_position=REWRITTEN_EACH - IN_SIGHT,
        removed=[],
        view=[],
    )
    unit = RemovedUnit.objects.create(
        run=run, dialog=dialog, unit_id="t1", kind="user", role="user", est_tokens=25, text="x"
    )
    last = f"n * {REWRITTEN_EACH} - {IN_SIGHT}"
    view = (
        f"(SELECT jsonb_agg(jsonb_build_object('turns', jsonb_build_array(s))) FROM generate_series({last} - 39, "
        f"{last}) s)"
    )
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
    """Of a hundred dialogs ten have a folder, five are shared, twenty are archived."""
    from dialogs.extras.operations import costs
    from dialogs.models import Dialog, Event, Generation, Round

    first = dialog_at(1, agent, owner)
    Event.objects.filter(dialog=first, seq__gt=1).delete()
    numbers, when = f"generate_series(1, {size.dialogs})", ago(f"({size.dialogs} - n) * {DAYS}.0 / {size.dialogs}")
    seeder.copy(
        first,
        numbers,
        id=DIALOG,
        owner_id=f"{owner.pk} + CASE WHEN n % {size.people} = 0 THEN 0 ELSE n % {size.people} + 1 END",
        title=f"'Dialog ' || n || ' of ' || {TOPIC}",
        created_at=when,
        active_at=when,
        group_id=f"CASE WHEN n % 20 = 7 THEN {group.pk} + n % {size.people // 10 + 1} END",
        folder="CASE WHEN n % 10 = 3 THEN 'folder ' || n / 1000 % 7 END",
        pinned_at=f"CASE WHEN n % 1000 = 5 THEN {when} END",
        archived_at=f"CASE WHEN n % 5 = 4 THEN {when} END",
        expires_at="CASE WHEN n % 100 = 9 THEN now() + interval '30 days' END",
        origin="CASE WHEN n % 10 = 6 THEN 'key' ELSE 'person' END",
        state="CASE WHEN n % 1000 = 11 THEN 'failed' WHEN n % 1000 = 12 THEN 'waiting' ELSE 'idle' END",
    )
    seeder.copy(Round.objects.get(dialog=first), numbers, dialog_id=DIALOG, created_at=when)
    _their_exchanges(seeder, size, first, when)
    _their_rewrites_and_questions(seeder, size, first, when)
    seeder.number_on(Generation)
    costs.sum_up_days()  # as the sweeper does each hour
    assert Dialog.objects.count() == size.dialogs + 2


def _their_exchanges(seeder: Seeder, size: Size, first: Any, when: str) -> None:
    """Two exchanges in each fifth dialog."""
    from dialogs.models import Event, Generation, Turn
    from health.models import HealthSnapshot

    call, (asked, answered) = Generation.objects.get(dialog=first), Turn.objects.filter(dialog=first)
    snapshot, spoken = HealthSnapshot.objects.get(generation=call), f"generate_series(5, {size.dialogs}, 5)"
    of_dialog = {"dialog_id": DIALOG, "created_at": when}
    for part in (0, 1):
        number = f"{call.pk} + n / 5 * 2 - 1 + {part}"
        seeder.copy(
            call,
            spoken,
            id=number,
            dialog_id=DIALOG,
            started_at=when,
            finished_at=f"{when} + interval '2 s'",
            cost_usd="0.001",
            first_token_ms="300",
        )
        seeder.copy(snapshot, spoken, generation_id=number)
        first_seq, second_seq = f"{2 * part + 1}", f"{2 * part + 2}"
        seeder.copy(asked, spoken, seq=first_seq, position=first_seq, text=text_of(100), **of_dialog)
        seeder.copy(
            answered, spoken, seq=second_seq, position=second_seq, text=text_of(400), generation_id=number, **of_dialog
        )
    seeder.copy(Event.objects.get(dialog=first), spoken, **of_dialog)


def _their_rewrites_and_questions(seeder: Seeder, size: Size, first: Any, when: str) -> None:
    """A rewrite and a warning in each twentieth dialog, an answered question in each fiftieth,
    an open one in each thousandth."""
    from dialogs.models import Question
    from remediation.models import ContextEvent, RemediationRun

    run = RemediationRun.objects.create(
        dialog=first,
        round_number=1,
        policy="retention",
        reason="benchmark",
        est_before=900,
        est_after=700,
        base_position=2,
        removed=[],
        view=[{"turns": [1]}, {"turns": [2]}],
    )
    met = ContextEvent.objects.create(dialog=first, code="CONTEXT_WARNING", message="It fills up.")
    asks = Question.objects.create(dialog=first, kind="question", state="answered", text="Which one?")
    of_dialog, asking = {"dialog_id": DIALOG, "created_at": when}, "md5('question ' || n)::uuid"
    for row in (run, met):
        seeder.copy(row, f"generate_series(20, {size.dialogs}, 20)", **of_dialog)
    seeder.copy(asks, f"generate_series(50, {size.dialogs}, 50)", id=asking, **of_dialog)
    seeder.copy(asks, f"generate_series(12, {size.dialogs}, 1000)", id=asking, state="'open'", **of_dialog)
