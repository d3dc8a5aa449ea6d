"""The driver in a virtual world: workers, people and a sweeper on one database, with faults.

``python -m tests.faults.simulation --seeds 1:20 [--hours 2] [--database postgresql]``. What runs is the product's own
code: claim, renewal, begin, store, stop, questions, tools, clears, sweep, and the scripted provider.
``virtual_world.py`` says what does not.
"""

import argparse
import gc
import itertools
import os
import random
import sys
import tempfile
import time
import traceback
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tests.faults.virtual_databases import Database, PostgreSQL, SQLite
from tests.faults.virtual_world import BEGAN, POLL_SECONDS, Process, exchange, ids, runs, world

STEPS: list[dict[str, Any]] = [
    {"match": r"^\d+ tool$", "tool_calls": [{"name": "charge", "arguments": {}}], "delay_ms": 900},
    {
        "match": r"^\d+ remind$",
        "tool_calls": [{"name": "add_reminder", "arguments": {"content": "keep"}}],
        "delay_ms": 300,
    },
    {
        "match": r"^\d+ ask$",
        "tool_calls": [{"name": "ask_human", "arguments": {"question": "Which?"}}],
        "delay_ms": 500,
    },
    {"match": r"^\d+ clear$", "tool_calls": [{"name": "clear_mind", "arguments": {"reminder_content": "Go on"}}]},
    {"match": r"^\d+ fail$", "error": {"kind": "network", "message": "Gone.", "retry_after": 2}, "delay_ms": 200},
    {"match": r"^\d+ slow$", "text": "word " * 40, "chunk_delay_ms": 900},
    {"text": "Done.", "delay_ms": 700},
]
DATABASES: dict[str, type[Database]] = {"sqlite": SQLite, "postgresql": PostgreSQL}
WORDS = ("hello", "hello", "tool", "tool", "remind", "ask", "clear", "fail", "slow")
PEOPLE, WORKERS = 8, 3
WAITS = (0.1, 0.5, 1, 2, 10, 60)  # seconds at most, between two things that a person does
TROUBLE_EVERY = 8.0  # seconds, on average
KINDS = ("kill", "kill", "freeze", "conflicts", "wakes", "clock")
SETTLING_SECONDS = 1_200.0  # after the last fault, for all that is owed; a failing model's waits are the longest


def start_worker(number: int) -> Process:
    from django.db import DatabaseError

    from dialogs.runtime import sweeping
    from dialogs.store.lease import Keeper

    process = Process(f"worker-{number}", Keeper())

    def sweeps() -> None:
        while True:
            world.sleep(sweeping.SWEEP_SECONDS)
            try:
                sweeping.sweep()
            except DatabaseError:
                continue

    world.spawn(process, sweeps)
    return process


def trouble(
    start: Callable[[int], Process] = start_worker, every: float = TROUBLE_EVERY, kinds: Sequence[str] = KINDS
) -> None:
    """Break something every few seconds, mostly where work is under way, and mend it again."""
    number = itertools.count(WORKERS)
    while True:
        world.sleep(world.random.expovariate(1 / every))
        busy = [process for process in world.workers if process.keeper._leases]
        process = world.random.choice(busy or world.workers)
        at = world.workers.index(process)
        kind = world.random.choice(kinds)
        world.done[kind] += 1
        match kind:
            case "kill":
                world.end(process)
                world.workers[at] = start(next(number))
            case "freeze":
                process.thawed_at = world.now + world.random.choice((0.5, 3, 11, 14, 60))
            case "conflicts":
                world.conflicts = 0.5
                world.sleep(world.random.random() * 5)
                world.conflicts = 0.0
            case "wakes":
                world.lost, world.doubled = world.random.random(), world.random.random()
                world.sleep(world.random.random() * 60)
                world.lost = world.doubled = 0.0
            case "clock":
                process.clock_seconds = world.random.choice((-3600, 3600, 0))
        if not world.is_troubled:
            return


def end_troubles() -> None:
    world.is_troubled, world.conflicts, world.lost, world.doubled = False, 0.0, 0.0, 0.0
    for process in world.workers:
        process.thawed_at = 0.0


@dataclass
class Person:
    """Somebody with one dialog, and what was promised to them. This is the model: accepted messages, and stops."""

    dialog: Any
    accepted: dict[str, str] = field(default_factory=dict)
    stops: dict[int, float] = field(default_factory=dict)  # when the answer to a message was to stop, by its seq

    def live(self, until: float) -> None:
        from django.db import OperationalError

        from dialogs.errors import Refusal

        for number in itertools.count():
            world.sleep(world.random.choice(WAITS) * world.random.random())
            if world.now > until:
                return
            try:
                self.act(number)
            except (Refusal, OperationalError):
                continue

    def act(self, number: int) -> None:
        from dialogs.actions import messages, questions, rewrite_requests

        dialog = self.dialog
        state, answering_seq = type(dialog).objects.values_list("state", "answering_seq").get(pk=dialog.pk)
        has_question = state in ("waiting", "suspended")
        question = dialog.questions.filter(state="open").first() if has_question else None
        if question is not None and world.random.random() < 0.7:
            if question.kind != "question":
                questions.resolve(question.pk, dialog.owner, world.random.choice(("retry", "give_up", "clear")))
            elif world.random.random() < 0.5:
                questions.answer(question.pk, dialog.owner, "The red one")
            else:
                questions.cancel(question.pk, dialog.owner)
            return
        match world.random.choice(("post", "post", "post", "post", "stop", "retry", "clear")):
            case "post":
                name, text = f"{dialog.pk}-{number}", f"{number} {world.random.choice(WORDS)}"
                messages.post_message(dialog.pk, text, name)
                self.accepted[name] = text
            case "stop":
                messages.stop(dialog.pk)
                if answering_seq is not None:
                    self.stops[answering_seq] = world.now
            case "retry":
                messages.retry(dialog.pk)
                self.stops.clear()
            case "clear":
                rewrite_requests.clear(dialog.pk, "Goal: go on", dialog.owner)

    def broken_promises(self) -> Iterator[str]:
        from dialogs.models import Generation, Turn
        from tests.faults.invariants import of_dialog

        dialog = type(self.dialog).objects.get(pk=self.dialog.pk)
        yield from of_dialog(dialog)
        stored = defaultdict[str, list[str]](list)
        for name, text in Turn.objects.filter(client_message_id__in=self.accepted).values_list(
            "client_message_id", "text"
        ):
            stored[name or ""].append(text)
        for name, text in self.accepted.items():
            if stored[name] != [text]:
                yield f"message {name} was accepted, its turns are {stored[name]}"
        for seq, at in self.stops.items():
            late = BEGAN + timedelta(seconds=at + 2 * POLL_SECONDS)
            calls = Generation.objects.filter(dialog=dialog, answers_seq=seq, started_at__gt=late)
            if dialog.turns.get(seq=seq).status == "stopped" and calls.exists():
                yield f"message {seq} was stopped at {at:.1f} s, and a call began later"


# -- one seed ----------------------------------------------------------------------------------------------------------


def start_world(seed: int) -> None:
    """Begin with an empty database, and with everything that is left to chance as the seed says."""
    gc.collect()
    world.begin(seed)
    world.database.begin()
    ids.seed(seed)
    random.seed(seed)
    runs.clear()


def simulate(seed: int, hours: float) -> list[str]:
    """Return what was broken in a world of this seed, by sentences."""
    from django.contrib.auth.models import User

    from tests.dialogs.factories import AgentFactory

    start_world(seed)
    agent = AgentFactory.create(id="one", tools=["charge"], recall=False)
    people = [
        Person(_dialog_of(User.objects.create(username=f"p{i}", is_superuser=True), agent)) for i in range(PEOPLE)
    ]
    world.workers = [start_worker(number) for number in range(WORKERS)]
    until = hours * 3600
    for person in people:
        world.spawn(world.outside, partial(person.live, until))
    world.spawn(world.outside, trouble)
    world.run(lambda: world.now > until)
    end_troubles()
    world.run(lambda: world.now > until + SETTLING_SECONDS)
    for process in (*world.workers, world.outside):
        world.end(process)
    world.let_all_end()
    broken = [*world.failures, *(f"call {call} ran {times} times" for call, times in runs.items() if times > 1)]
    return broken + [f"{person.dialog.owner}: {promise}" for person in people for promise in person.broken_promises()]


def _dialog_of(user: Any, agent: Any) -> Any:
    from dialogs.actions.messages import create_dialog

    return create_dialog(user, agent.pk)


def prepare(folder: Path, steps: list[dict[str, Any]], database: Database, watch: str) -> None:
    """Configure Django on this database, with ids that the seed decides."""
    vars(uuid)["uuid4"] = lambda: uuid.UUID(int=ids.getrandbits(128), version=4)
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "dominds.settings",
        "DATABASE_URL": database.prepare(folder),
        "DOMINDS_DATA_DIR": str(folder / "data"),
        "DOMINDS_MINDS_DIR": str(folder / "minds"),
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "SECRET_KEY": "only-for-worlds-" + "0123456789abcdef" * 3,
        "DOMINDS_MESSAGES_PER_MINUTE": "0",
        "DOMINDS_LOG_LEVEL": "ERROR",
    }
    (folder / "data").mkdir()
    import django

    django.setup()
    from tests.dialogs.factories import write_minds

    exchange()
    write_minds(folder / "minds", steps)
    world.database = database
    database.lay(watch)
    gc.freeze()
    gc.disable()  # a fifth of the time; ``start_world`` collects


def main(
    about: str | None,
    steps: list[dict[str, Any]],
    simulate: Callable[..., list[str]],
    watch: str = "",
    **more: float,
) -> int:
    """Play the worlds that the command line asks for. ``more`` are further options, with their defaults."""
    options = argparse.ArgumentParser(description=about)
    options.add_argument("--seeds", default="1:5", help="the first one, and the one behind the last")
    for name, default in more.items():
        options.add_argument(f"--{name}", type=float, default=default, help="of each world")
    options.add_argument("--seconds", type=float, default=float("inf"), help="begin no world later than this")
    options.add_argument("--database", choices=DATABASES, default="sqlite")
    given = options.parse_args()
    first, behind = (int(number) for number in given.seeds.split(":"))
    failed = 0

    def play(seed: int) -> int:
        broken = simulate(seed, **{name: getattr(given, name) for name in more})
        for sentence in broken:
            print(f"seed {seed}: {sentence}")
        print(f"seed {seed}: {world.told()}, {time.process_time():.1f} s of processor time")
        return 1 if broken else 0

    with tempfile.TemporaryDirectory(prefix="dominds-sim-") as folder:
        prepare(Path(folder), steps, DATABASES[given.database](), watch)
        simulate(0, **dict.fromkeys(more, 0.01))  # fills the caches, for all worlds alike
        world.database.leave()
        gc.collect()
        gc.freeze()
        began = time.monotonic()
        for seed in range(first, behind):
            if time.monotonic() - began > given.seconds:
                break
            failed += in_a_process_of_its_own(partial(play, seed)) != 0
    return 1 if failed else 0


def in_a_process_of_its_own(work: Callable[[], int]) -> int:
    """Return what the work returns in a fork, so that no world finds what another left in a cache or a counter."""
    sys.stdout.flush()
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        ended = work()
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001  the child never goes on as its parent
        traceback.print_exc()
        ended = 2
    os._exit(ended)


if __name__ == "__main__":
    sys.exit(main(__doc__, STEPS, simulate, hours=0.05))
