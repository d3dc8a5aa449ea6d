"""Teams in a virtual world: a lead, four side dialogs and four below each of them, while workers die, freeze and lose
their wakes (``simulation.py``).

``python -m tests.faults.team_worlds --seeds 1:20``. A seed decides who waits for whom, whether a person is asked and
whether the person presses stop.
"""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from tests.faults import simulation
from tests.faults.simulation import start_world
from tests.faults.virtual_world import Process, world

CHILDREN = range(4)
WAITS = {"all": CHILDREN, "none": (), "some": (0, 2)}  # for which of its four reports a dialog waits
TROUBLED_SECONDS, TROUBLE_EVERY = 30.0, 1.5
KINDS = ("kill",) * 6 + ("freeze", "conflicts", "wakes", "clock")
SETTLING_SECONDS = 1_200.0
LOOKS_EVERY = 5.0  # seconds, between two looks whether everybody rests
ERASED_SECONDS = 90.0  # after the last fault, for whoever may still write for a person who is gone: freezes last 60


def asks(agent: str, waits: str, task: str) -> list[dict[str, Any]]:
    return [
        {"name": "ask_agent", "arguments": {"agent": agent, "task": task.format(i), "wait": i in WAITS[waits]}}
        for i in CHILDREN
    ]


STEPS: list[dict[str, Any]] = [
    *(
        {"match": rf"\Aplan {upper} {lower}\Z", "tool_calls": asks("middle", upper, f"part {{}} {lower}")}
        for upper in WAITS
        for lower in WAITS
    ),
    *(
        {"match": rf"\Apart \d {lower}\b", "tool_calls": asks("leaf", lower, "page {}"), "delay_ms": 300}
        for lower in WAITS
    ),
    {"match": r"\Apage 3\b", "tool_calls": [{"name": "ask_human", "arguments": {"question": "Which?"}}]},
    {"match": r"\Apage \d", "text": "Read, word for word.", "chunk_delay_ms": 400},
    {"text": "Done.", "delay_ms": 700},
]
# A call whose transaction overlaps that of a stop is under way at the stop. So that "later" is later on PostgreSQL, the
# moment of a call is when its transaction began, and that of an end when its transaction committed.
WATCH = """
    CREATE FUNCTION call_began() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        NEW.started_at = current_setting('world.began'); RETURN NEW;
    END $$;
    CREATE TRIGGER call_began BEFORE INSERT ON dialogs_generation FOR EACH ROW EXECUTE FUNCTION call_began();
    CREATE TABLE moment_of_end (side uuid, at timestamptz);
    CREATE FUNCTION side_ended() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO moment_of_end VALUES (NEW.dialog_id, now()); RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER side_ended AFTER UPDATE OF ended_at ON teams_sidedialog DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL) EXECUTE FUNCTION side_ended();
"""


def start_worker(number: int) -> Process:
    """Start a worker that also sweeps what side dialogs owe."""
    from django.db import DatabaseError

    from dialogs.extras.teams import side_dialogs

    process = simulation.start_worker(number)

    def sweeps() -> None:
        while True:
            world.sleep(LOOKS_EVERY)
            try:
                side_dialogs.sweep()
            except DatabaseError:
                continue

    world.spawn(process, sweeps)
    return process


def simulate(seed: int) -> list[str]:
    """Return what was broken in the team of this seed, by sentences."""
    from django.contrib.auth.models import User
    from django.db import OperationalError

    from dialogs.accounts import erasure
    from dialogs.actions import messages, questions
    from dialogs.errors import Refusal
    from dialogs.models import Dialog, Question
    from tests.dialogs.factories import AgentFactory

    start_world(seed)
    bounds = {"side_dialogs": {"at_work": 64}}
    for name, colleagues in (("leaf", []), ("middle", ["leaf"]), ("lead", ["middle"])):
        AgentFactory.create(id=name, recall=False, extras={"colleagues": colleagues, **bounds})
    ada = User.objects.create(username="ada")
    root = messages.create_dialog(ada, "lead")
    chance = random.Random(seed)
    upper, lower = chance.choice(list(WAITS)), chance.choice(list(WAITS))
    stops_at = chance.random() * TROUBLED_SECONDS if chance.random() < 0.3 else None
    erased_at = chance.random() * TROUBLED_SECONDS if chance.random() < 0.15 else None
    accepted: list[float] = []
    rests: list[float] = []
    erased: list[Any] = []

    def live() -> None:
        """Ask, answer questions, perhaps press stop, and look whether everybody rests."""
        while not rests:
            world.sleep(chance.random() * LOOKS_EVERY)
            try:
                if not accepted:
                    messages.post_message(root.pk, f"plan {upper} {lower}", "plan")
                    accepted.append(world.now)
                if stops_at is not None and world.now > stops_at and len(accepted) == 1:
                    messages.stop(root.pk)
                    accepted.append(world.now)
                if erased_at is not None and world.now > erased_at and not erased:
                    erasure.erase(ada)
                    erased.append(ada)
                for question in Question.objects.filter(state="open"):
                    questions.answer(question.pk, ada, "The red one")
            except (Refusal, OperationalError):
                continue
            if world.is_troubled or Dialog.objects.filter(state__in=("queued", "generating")).exists():
                continue
            if world.now > TROUBLED_SECONDS + ERASED_SECONDS if erased else not owed():
                rests.append(world.now)

    world.workers = [start_worker(number) for number in range(simulation.WORKERS)]
    world.spawn(world.outside, live)
    world.spawn(world.outside, partial(simulation.trouble, start_worker, TROUBLE_EVERY, KINDS))
    world.run(lambda: world.now > TROUBLED_SECONDS)
    simulation.end_troubles()
    world.run(lambda: bool(rests) or world.now > TROUBLED_SECONDS + SETTLING_SECONDS)
    for process in (*world.workers, world.outside):
        world.end(process)
    world.let_all_end()
    if erased:
        return [*world.failures, *remains()]
    return [*world.failures, *broken_promises(root, has_stopped=len(accepted) > 1 or has_given_up())]


def owed() -> bool:
    from dialogs.extras.teams.models import SideDialog
    from dialogs.models import Question

    waiting = Question.objects.filter(state="open")
    unheard = SideDialog.objects.filter(answered_at=None, ended_at=None)
    return unheard.exists() or SideDialog.objects.exclude(owes="").exists() or waiting.exists()


def has_given_up() -> bool:
    """Check whether a message failed because its worker died three times in a row: what works below it is ended."""
    from dialogs.models import Turn

    if given_up := Turn.objects.filter(role="user", status="failed").count():
        world.done["given up"] = given_up
    return given_up > 0


def remains() -> Iterator[str]:
    """Say what is left of the words of a person who was erased while their team was at work."""
    from dialogs.extras.teams.models import SideDialog
    from dialogs.models import Dialog, Event, Question, Turn

    for model in (Turn, Question, Event):
        if left := model.objects.count():
            yield f"{left} rows of {model.__name__} are left of a person who was erased"
    if words := [side.task for side in SideDialog.objects.all() if side.task]:
        yield f"tasks are left of a person who was erased: {words}"
    for dialog in Dialog._base_manager.filter(removed_at=None):
        yield f"a dialog with {dialog.agent_id} is left of a person who was erased, {dialog.state}"


def broken_promises(root: Any, *, has_stopped: bool) -> Iterator[str]:
    from dialogs.extras.teams.models import SideDialog
    from dialogs.models import Dialog, Generation, Turn
    from tests.faults.invariants import of_dialog

    for dialog in Dialog.objects.all():
        yield from (f"{dialog.agent_id}: {sentence}" for sentence in of_dialog(dialog))
    sides = list(SideDialog.objects.select_related("dialog", "parent"))
    names = Counter(side.dialog.agent_id for side in sides)
    if not has_stopped and names != {"middle": 4, "leaf": 16}:
        yield f"the team is {dict(names)}"
    for side in sides:
        who, parent = f"{side.dialog.agent_id} {side.name}", Turn.objects.filter(dialog=side.parent_id)
        if side.owes or not (side.answered_at or side.ended_at):
            yield f"{who} is still at work, and owes {side.owes!r}"
        results = list(parent.filter(role="tool", tool_call_id=side.call_id).values_list("text", flat=True))
        later = parent.filter(client_message_id=f"report of {side.call_id}").count()
        is_message = results[:1] == [f"Asked in the side dialog {side.name}. Its report comes as a message."]
        is_unheard = has_stopped and side.parent.state == "closed"  # a dialog that is closed for good answers no calls
        is_answered = len(results) == 1 or (is_unheard and not results)
        if not is_answered or later > is_message or (later < is_message and not has_stopped):
            yield f"{who}: its call has the results {results}, and {later} messages"
        sent = Turn.objects.filter(dialog=side.pk, client_message_id=side.call_id).count()
        if sent > 1 or (sent < 1 and not has_stopped):
            yield f"{who} was sent its task {sent} times"
        if side.ended_at is None:
            continue
        since = moment_of_end(side) + timedelta(milliseconds=1)  # what SQLite's clock tells apart
        if late := Generation.objects.filter(dialog=side.pk, started_at__gt=since).count():
            yield f"{who} ended, and {late} calls began later"


def moment_of_end(side: Any) -> datetime:
    from django.db import connection

    result: datetime = side.ended_at
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT at FROM moment_of_end WHERE side = %s", [side.pk])
            (result,) = cursor.fetchone()
    return result


if __name__ == "__main__":
    raise SystemExit(simulation.main(__doc__, STEPS, simulate, WATCH))
