"""The driver under one seeded scheduler and a virtual clock: workers, people and a sweeper on one SQLite file.

``python -m tests.faults.simulation --seeds 1:20 [--hours 2]``. What runs is the product's own code: claim, renewal,
begin, store, stop, questions, tools, clears, sweep, and the scripted provider. Exchanged are clocks, threads and the
transport of wakes: names of the standard library in a few modules, Celery's ``send_task`` and SQLite's ``STRFTIME``.
Of all threads only one runs at a time: it hands over before each transaction, before each statement outside of one and
wherever it sleeps, and the seed says who goes on. So a seed that fails fails again.

A transaction happens at once here, as on SQLite, whose writers wait for each other. What two transactions of PostgreSQL
see of each other is left to ``dialogs/runtime/test_schedules.py``.
"""

import argparse
import heapq
import itertools
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import redis

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)
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
WORDS = ("hello", "hello", "tool", "tool", "remind", "ask", "clear", "fail", "slow")
PEOPLE, WORKERS = 8, 3
WAITS = (0.1, 0.5, 1, 2, 10, 60)  # seconds at most, between two things that a person does
TROUBLE_EVERY = 8.0  # seconds, on average
POLL_SECONDS = 1.0  # of the keeper, in place of 0.25: most of a world's processor time goes into its looks
SETTLING_SECONDS = 1_200.0  # after the last fault, for all that is owed; a failing model's waits are the longest


class Killed(BaseException):
    """The process is gone: whatever its threads would still do does not happen."""


def locked() -> "threading.Lock":
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class Process:
    name: str
    keeper: Any = None
    alive: bool = True
    thawed_at: float = 0.0
    clock_seconds: float = 0.0  # how far its own clock is off; the database's is right


@dataclass(eq=False)
class Actor:
    """A thread of a process."""

    process: Process
    work: Callable[[], object]
    turn: "threading.Lock"
    has_ended: bool = False
    is_parked: bool = False
    due: int = 0  # the number of its place in the schedule; what stands there under an older one is void

    def is_alive(self) -> bool:
        return self.process.alive and not self.has_ended


class World:
    """The scheduler. Its methods but ``run`` are called by the one thread whose turn it is."""

    def __init__(self) -> None:
        self.begin(0)

    def begin(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.current: Actor | None = None
        self.failures: list[str] = []
        self.conflicts = self.lost = self.doubled = 0.0  # how likely: a busy database, a wake lost or come twice
        self.is_troubled = True
        self.workers: list[Process] = []
        self.switches = 0
        self.done: Counter[str] = Counter()  # troubles, by kind
        self._back = locked()
        self._actors: list[Actor] = []
        self._idle: list[Hand] = []
        self._due: list[tuple[float, int, Actor]] = []
        self._number = itertools.count()

    def told(self) -> str:
        """Return figures of what happened. Those of one seed are always the same."""
        from dialogs.models import Event, Generation, Turn

        messages = Turn.objects.filter(role="user").count()
        return (
            f"{messages} messages, {Generation.objects.count()} calls, {Event.objects.count()} rows of events, "
            f"{dict(self.done)}, {self.switches} turns of threads"
        )

    def run(self, until: Callable[[], bool]) -> None:
        """Give turns until nobody is left, or ``until`` holds."""
        while self._due and not until():
            due, number, actor = heapq.heappop(self._due)
            if number != actor.due:
                continue
            self.now = max(self.now, due)
            if actor.process.alive and actor.process.thawed_at > self.now:
                self._later(actor, actor.process.thawed_at)
                continue
            self.switches += 1
            self.current = actor
            os.environ["DOMINDS_WORKER"] = actor.process.name
            actor.turn.release()
            self._back.acquire()

    def let_all_end(self) -> None:
        """Let the threads of processes that are gone come to their end."""
        for actor in self._actors:
            if not actor.has_ended:
                self.current = actor
                actor.turn.release()
                self._back.acquire()
        self.current = None
        for hand in self._idle:
            hand.actor = None
            hand.turn.release()

    def spawn(self, process: Process, work: Callable[[], object], after: float = 0.0) -> Actor:
        hand = self._idle.pop() if self._idle else Hand(self)
        hand.actor = actor = Actor(process, work, hand.turn)
        self._actors.append(actor)
        self._later(actor, self.now + after)
        return actor

    def sleep(self, seconds: float) -> None:
        """Hand over for so long. Raises ``Killed`` where the process died meanwhile."""
        actor = self.me()
        if not actor.process.alive:
            raise Killed
        self._later(actor, self.now + seconds)
        self._hand_over(actor)

    def park(self, seconds: float | None = None) -> None:
        """Hand over until another thread unparks this one, or so long."""
        actor = self.me()
        actor.is_parked = True
        if seconds is not None:
            self._later(actor, self.now + seconds)
        self._hand_over(actor)
        actor.is_parked = False

    def unpark(self, actor: Actor) -> None:
        if actor.is_parked:
            actor.is_parked = False
            self._later(actor, self.now)

    def me(self) -> Actor:
        assert self.current is not None
        return self.current

    def end(self, process: Process) -> None:
        process.alive = False

    def _later(self, actor: Actor, at: float) -> None:
        actor.due = next(self._number)
        heapq.heappush(self._due, (at, actor.due, actor))

    def _hand_over(self, actor: Actor) -> None:
        self._back.release()
        actor.turn.acquire()
        if not actor.process.alive:
            raise Killed

    def live(self, hand: "Hand") -> None:
        """Do what one actor after another does, in a thread that keeps its connection: opening one costs the most."""
        from django.db import connection

        connection.execute_wrappers.append(self._before_statement)
        while True:
            hand.turn.acquire()
            if (actor := hand.actor) is None:
                break
            try:
                if actor.process.alive:
                    actor.work()
            except Killed:
                pass
            except Exception as error:  # noqa: BLE001  a bug of the simulation, or of the product
                self.failures.append(f"{actor.process.name}: {type(error).__name__}: {error}")
            actor.has_ended = True
            self._idle.append(hand)
            self._back.release()
        close_connection(connection)

    def before_transaction(self) -> None:
        from django.db import OperationalError

        if self.current is not None:
            self.sleep(self.random.random() * 0.01)
            if self.random.random() < self.conflicts:
                raise OperationalError("database is locked")

    def _before_statement(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        from django.db import connection

        if not self.me().process.alive:
            raise Killed
        if not connection.in_atomic_block and not sql.startswith("BEGIN") and self.random.random() < 0.3:
            self.sleep(self.random.random() * 0.01)
        return execute(sql, params, many, context)


class Hand:
    """A thread that lends itself to actors, one after another."""

    def __init__(self, world: World) -> None:
        self.turn = locked()
        self.actor: Actor | None = None
        threading.Thread(target=world.live, args=(self,), daemon=True).start()


def close_connection(connection: Any) -> None:
    """Really close a connection: the product's ``close`` only gives it back here."""
    connection.close_at_last()


world = World()


class Event:
    """``threading.Event`` of a scripted answer, by the virtual clock."""

    def __init__(self) -> None:
        self._is_set = False
        self._waits: Actor | None = None

    def set(self) -> None:
        self._is_set = True
        if self._waits is not None:
            world.unpark(self._waits)

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float) -> bool:
        self._waits = world.me()
        if not self._is_set:
            world.park(seconds)
        return self._is_set


class Keepers:
    """The keeper of the process whose turn it is."""

    def __getattr__(self, name: str) -> Any:
        return getattr(world.me().process.keeper, name)

    def add(self, lease: Any) -> None:
        process = world.me().process
        for other in world.workers:
            if other is not process and any(_is_at_work_on(lease.dialog_id, held) for held in other.keeper._leases):
                world.failures.append(f"{process.name} took {lease.dialog_id} from {other.name}, which works on it")
        lease.renewed_at = world.now  # whose default is bound to the real clock
        process.keeper.add(lease)
        world.unpark(process.keeper._thread.actor)


def _is_at_work_on(dialog_id: uuid.UUID, held: Any) -> bool:
    """Check whether a call of a model or a tool runs under a lease that its worker may rely on."""
    return bool(held.dialog_id == dialog_id and held.holds and held._interrupt is not None)


def _sleep_of_keeper(seconds: float) -> None:
    keeper = world.me().process.keeper
    thread = keeper._thread if keeper is not None else None
    if thread is not None and thread.actor is world.me() and not keeper._leases:
        world.park()
    world.sleep(seconds)


class NoRedis:
    """A client of a Redis that is gone: pages miss what is new, and answers are none the worse for it."""

    def pipeline(self, **_: Any) -> "NoRedis":
        return self

    def __enter__(self) -> "NoRedis":
        return self

    def __exit__(self, *_: object) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None

    def execute(self) -> None:
        raise redis.ConnectionError


class AtOnce:
    """An executor of the thread that sends wakes."""

    _work_queue = SimpleNamespace(qsize=lambda: 0)

    def submit(self, function: Callable[..., object], *given: Any) -> "Future[object]":
        result: Future[object] = Future()
        result.set_result(function(*given))
        return result


def exchange() -> None:
    """Put the virtual clock, threads and transport in the place of the real ones. Once, before anything runs."""
    import stamina
    from django.db.backends.signals import connection_created
    from django.utils import timezone

    from dialogs.context.tool_calls import Result
    from dialogs.runtime import auxiliary_calls, live_text, stream_reply
    from dialogs.store import lease, wakeups
    from dialogs.tools.registry import builtin_tools
    from dialogs.tools.tool import Tool
    from dominds.celery import app
    from dominds.db.sqlite3.base import DatabaseWrapper
    from dominds.llm.messages import ToolSpec
    from dominds.llm.providers import scripted

    clock = SimpleNamespace(monotonic=lambda: world.now, sleep=_sleep_of_keeper)
    for module in (lease, stream_reply):
        vars(module)["time"] = clock
    vars(lease)["POLL_SECONDS"] = POLL_SECONDS
    vars(lease)["threading"] = SimpleNamespace(Thread=Thread, Lock=threading.Lock)
    vars(scripted)["threading"] = SimpleNamespace(Event=Event)
    vars(lease)["keeper"] = vars(auxiliary_calls)["keeper"] = Keepers()
    vars(wakeups)["_wakes"] = AtOnce()
    vars(wakeups)["client"] = vars(live_text)["client"] = NoRedis
    vars(app)["send_task"] = lambda task, given: send(*given)
    vars(timezone)["now"] = lambda: (
        BEGAN + timedelta(seconds=world.now + (world.current.process.clock_seconds if world.current else 0.0))
    )
    connection_created.connect(_by_virtual_clock, weak=False)
    begin: Any = DatabaseWrapper._start_transaction_under_autocommit

    def begin_when_it_is_its_turn(connection: Any) -> None:
        world.before_transaction()
        begin(connection)

    setattr(DatabaseWrapper, begin.__name__, begin_when_it_is_its_turn)
    vars_of = {"close_at_last": DatabaseWrapper.close, "close": lambda connection: None}
    for name, function in vars_of.items():
        setattr(DatabaseWrapper, name, function)
    stamina.set_testing(True, attempts=4)

    def charge(call: Any) -> Any:
        runs[str(call.dialog_id), call.call_id] += 1
        world.sleep(world.random.random() * 4)
        return Result("charged")

    spec = ToolSpec("charge", "Charge a card, which must happen once.", {"type": "object", "properties": {}})
    builtin_tools()["charge"] = Tool(spec, outside=charge, repeatable=False)  # type: ignore[index]  # a dict, in truth


runs: Counter[tuple[str, str]] = Counter()  # of the tool, by dialog and call
ids = random.Random(0)


def _by_virtual_clock(connection: Any, **_: Any) -> None:
    def strftime(shape: str, when: str) -> str:
        assert when.upper() == "NOW", when
        return (BEGAN + timedelta(seconds=world.now)).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]

    connection.connection.create_function("STRFTIME", 2, strftime)


class Thread:
    """``threading.Thread`` of the keeper, as one of the virtual process."""

    def __init__(self, target: Callable[[], object], **_: Any) -> None:
        self._process, self._work = world.me().process, target

    def start(self) -> None:
        self.actor = world.spawn(self._process, self._work)

    def is_alive(self) -> bool:
        return self.actor.is_alive()


def send(dialog_id: str) -> None:
    """Deliver a wake to some worker, late, twice or never."""
    if world.random.random() < world.lost:
        return
    for _ in range(2 if world.random.random() < world.doubled else 1):
        process = world.random.choice(world.workers)
        world.spawn(process, lambda: _drive(dialog_id), after=world.random.random() * 0.2)


def _drive(dialog_id: str) -> None:
    from django.db import DatabaseError

    from dialogs.runtime.driver import drive

    with suppress(DatabaseError):  # as Celery does: it is logged, and the sweeper comes by
        drive(uuid.UUID(dialog_id))


# -- who lives in it ---------------------------------------------------------------------------------------------------


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


def trouble() -> None:
    """Break something every few seconds, mostly where work is under way, and mend it again."""
    number = itertools.count(WORKERS)
    while True:
        world.sleep(world.random.expovariate(1 / TROUBLE_EVERY))
        busy = [process for process in world.workers if process.keeper._leases]
        process = world.random.choice(busy or world.workers)
        at = world.workers.index(process)
        kind = world.random.choice(("kill", "kill", "freeze", "conflicts", "wakes", "clock"))
        world.done[kind] += 1
        match kind:
            case "kill":
                world.end(process)
                world.workers[at] = start_worker(next(number))
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

        dialog = type(self.dialog).objects.get(pk=self.dialog.pk)
        question = dialog.questions.filter(state="open").first()
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
                if dialog.answering_seq is not None:
                    self.stops[dialog.answering_seq] = world.now
            case "retry":
                messages.retry(dialog.pk)
                self.stops.clear()
            case "clear":
                rewrite_requests.clear(dialog.pk, "Goal: go on", dialog.owner)

    def broken_promises(self) -> Iterator[str]:
        from dialogs.models import Generation, Turn
        from tests.faults.invariants import OF_DIALOGS, nothing_is_owed

        dialog = type(self.dialog).objects.get(pk=self.dialog.pk)
        for check in (*OF_DIALOGS, nothing_is_owed):
            yield from check(dialog)
        for name, text in self.accepted.items():
            stored = list(Turn.objects.filter(client_message_id=name).values_list("text", flat=True))
            if stored != [text]:
                yield f"message {name} was accepted, its turns are {stored}"
        for seq, at in self.stops.items():
            late = BEGAN + timedelta(seconds=at + 2 * POLL_SECONDS)
            calls = Generation.objects.filter(dialog=dialog, answers_seq=seq, started_at__gt=late)
            if dialog.turns.get(seq=seq).status == "stopped" and calls.exists():
                yield f"message {seq} was stopped at {at:.1f} s, and a call began later"


# -- one seed ----------------------------------------------------------------------------------------------------------


def simulate(folder: Path, seed: int, hours: float) -> list[str]:
    """Return what was broken in a world of this seed, by sentences."""
    from django.contrib.auth.models import User
    from django.db import connection

    from tests.dialogs.factories import AgentFactory

    close_connection(connection)
    for old in folder.glob("lite.sqlite3*"):
        old.unlink()
    shutil.copy(folder / "laid.sqlite3", folder / "lite.sqlite3")
    world.begin(seed)
    ids.seed(seed)
    random.seed(seed)
    runs.clear()
    agent = AgentFactory.create(id="one", tools=["charge"], recall=False)
    people = [
        Person(_dialog_of(User.objects.create(username=f"p{i}", is_superuser=True), agent)) for i in range(PEOPLE)
    ]
    world.workers = [start_worker(number) for number in range(WORKERS)]
    outside = Process("outside")
    until = hours * 3600
    for person in people:
        world.spawn(outside, partial(person.live, until))
    world.spawn(outside, trouble)
    world.run(lambda: world.now > until)
    world.is_troubled, world.conflicts, world.lost, world.doubled = False, 0.0, 0.0, 0.0
    for process in world.workers:
        process.thawed_at = 0.0
    world.run(lambda: world.now > until + SETTLING_SECONDS)
    for process in (*world.workers, outside):
        world.end(process)
    world.let_all_end()
    broken = [*world.failures, *(f"call {call} ran {times} times" for call, times in runs.items() if times > 1)]
    return broken + [f"{person.dialog.owner}: {promise}" for person in people for promise in person.broken_promises()]


def _dialog_of(user: Any, agent: Any) -> Any:
    from dialogs.actions.messages import create_dialog

    return create_dialog(user, agent.pk)


def prepare(folder: Path) -> None:
    """Configure Django on an SQLite file in this folder, with ids that the seed decides."""
    vars(uuid)["uuid4"] = lambda: uuid.UUID(int=ids.getrandbits(128), version=4)
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "dominds.settings",
        "DATABASE_URL": f"sqlite:///{folder / 'lite.sqlite3'}",
        "DOMINDS_DATA_DIR": str(folder / "data"),
        "DOMINDS_MINDS_DIR": str(folder / "minds"),
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "DOMINDS_MESSAGES_PER_MINUTE": "0",
        "DOMINDS_LOG_LEVEL": "ERROR",
    }
    (folder / "data").mkdir()
    import django

    django.setup()
    from django.db import connections

    connections.settings["default"]["CONN_MAX_AGE"] = None  # of each thread: to open one is half of what a poll costs

    from dominds.db import fresh
    from tests.dialogs.factories import write_minds

    exchange()
    write_minds(folder / "minds", STEPS)
    fresh.lay()
    with connections["default"].cursor() as cursor:
        cursor.execute(f"VACUUM INTO '{folder / 'laid.sqlite3'}'")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", default="1:5", help="the first one, and the one behind the last")
    options.add_argument("--hours", type=float, default=0.05, help="of each world")
    options.add_argument("--seconds", type=float, default=float("inf"), help="begin no world later than this")
    given = options.parse_args()
    first, behind = (int(number) for number in given.seeds.split(":"))
    folder = Path(tempfile.mkdtemp(prefix="dominds-sim-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    prepare(folder)
    began, failed, seed = time.monotonic(), 0, first
    try:
        for seed in range(first, behind):
            if time.monotonic() - began > given.seconds:
                break
            broken = simulate(folder, seed, given.hours)
            failed += bool(broken)
            for sentence in broken:
                print(f"seed {seed}: {sentence}")
            print(f"seed {seed}: {world.told()}, {time.monotonic() - began:.1f} s", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
