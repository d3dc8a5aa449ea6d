"""One seeded scheduler with a virtual clock, and what of the product it takes the place of.

Exchanged are clocks, threads and what goes to Redis: names of the standard library in a few modules, Celery's
``send_task`` and the database's clock. Threads are greenlets, of which one runs at a time: it hands over before
statements and wherever it sleeps, and the seed says who goes on. So a seed that fails fails again.
``virtual_databases.py`` says where a thread hands over on SQLite and on PostgreSQL.
"""

import heapq
import itertools
import os
import random
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from types import SimpleNamespace
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet  # Playwright brings it

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)
POLL_SECONDS = 1.0  # of the keeper, in place of 0.25: most of a world's processor time goes into its looks


class Killed(GreenletExit):  # type: ignore[misc]  # which has no types
    """The process is gone: whatever its threads would still do does not happen."""


@dataclass(eq=False)
class Process:
    name: str
    keeper: Any = None
    alive: bool = True
    thawed_at: float = 0.0
    clock_seconds: float = 0.0  # how far its own clock is off; the database's is right


class Actor(greenlet):  # type: ignore[misc]
    """A thread of a process."""

    def __init__(self, process: Process, work: Callable[[], object]) -> None:
        super().__init__(parent=world.scheduler)
        self.process, self._work = process, work
        self.is_parked = False
        self.due = 0  # the number of its place in the schedule; what stands there under an older one is void
        self.connections: dict[str, Any] = {}  # Django's, where each thread has its own

    def run(self) -> None:
        try:
            if self.process.alive:
                self._work()
        except Exception as error:  # noqa: BLE001  a bug of the simulation, or of the product
            world.failures.append(f"{self.process.name}: {type(error).__name__}: {error}")
        if self.process.alive:
            world.database.ended(self)

    def is_alive(self) -> bool:
        return self.process.alive and not self.dead


class World:
    """The scheduler. ``run`` and ``let_all_end`` give turns; the other methods are called by whose turn it is."""

    database: Any  # one of ``virtual_databases.py``

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
        self.scheduler = getcurrent()
        self.outside = Process("outside")
        self.actors: list[Actor] = []
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
                self.database.froze(actor)
                continue
            self.switches += 1
            self.current = actor
            os.environ["DOMINDS_WORKER"] = actor.process.name
            actor.switch()
        self.current = None

    def let_all_end(self) -> None:
        """Let the threads of processes that are gone come to their end."""
        for actor in self.actors:
            self.current = actor
            actor.throw(Killed)
        self.current = None

    def spawn(self, process: Process, work: Callable[[], object], after: float = 0.0) -> Actor:
        actor = Actor(process, work)
        self.actors.append(actor)
        self._later(actor, self.now + after)
        return actor

    def sleep(self, seconds: float) -> None:
        """Hand over for so long. Raises ``Killed`` where the process died meanwhile."""
        assert not self.is_in_transaction(), "somebody waits within a transaction"
        self._give_way(seconds)

    def perhaps_give_way(self, longest: float = 0.01) -> None:
        """Let others go on first, in three of ten cases."""
        if self.current is not None and self.random.random() < 0.3:
            self._give_way(self.random.random() * longest)

    def _give_way(self, seconds: float) -> None:
        self.look_alive()
        self._later(self.me(), self.now + seconds)
        self._hand_over()

    def park(self, seconds: float | None = None, *, holds: bool = False) -> None:
        """Hand over until another thread unparks this one, or so long. ``holds`` allows an open transaction."""
        assert holds or not self.is_in_transaction(), "somebody waits within a transaction"
        actor = self.me()
        actor.is_parked = True
        if seconds is not None:
            self._later(actor, self.now + seconds)
        self._hand_over()
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
        self.database.died(process)

    def _later(self, actor: Actor, at: float) -> None:
        actor.due = next(self._number)
        heapq.heappush(self._due, (at, actor.due, actor))

    def _hand_over(self) -> None:
        self.scheduler.switch()
        self.look_alive()

    def look_alive(self) -> None:
        """Raise ``Killed`` where the process whose turn it is has died."""
        if self.current is not None and not self.current.process.alive:
            raise Killed

    @staticmethod
    def is_in_transaction() -> bool:
        from django.db import connections

        return connections["default"].in_atomic_block


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


class Nowhere:
    """What goes to pages by Redis, when there is none: they miss what is new, and answers are none the worse for it."""

    losses = 0

    def add(self, *_: object) -> None: ...

    def wait_for(self, text: object) -> None: ...


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
    from django.utils import timezone

    from dialogs.context.tool_calls import Result
    from dialogs.runtime import auxiliary_calls, live_text, stream_reply
    from dialogs.store import lease, wakeups
    from dialogs.tools.registry import builtin_tools
    from dialogs.tools.tool import Tool
    from dominds.llm.messages import ToolSpec
    from dominds.llm.providers import scripted

    clock = SimpleNamespace(monotonic=lambda: world.now, sleep=_sleep_of_keeper)
    for module in (lease, stream_reply):
        vars(module)["time"] = clock
    vars(lease)["POLL_SECONDS"] = POLL_SECONDS
    vars(lease)["threading"] = SimpleNamespace(Thread=Thread, Lock=Lock)
    vars(scripted)["threading"] = SimpleNamespace(Event=Event)
    vars(lease)["keeper"] = vars(auxiliary_calls)["keeper"] = Keepers()
    vars(wakeups)["_wakes"] = AtOnce()
    vars(wakeups)["_publisher"] = vars(live_text)["_writer"] = Nowhere()
    vars(wakeups)["_send"] = lambda task, row_id: send(row_id)
    vars(timezone)["now"] = lambda: (
        BEGAN + timedelta(seconds=world.now + (world.current.process.clock_seconds if world.current else 0.0))
    )
    stamina.set_testing(True, attempts=4)

    def charge(call: Any) -> Any:
        runs[str(call.dialog_id), call.call_id] += 1
        world.sleep(world.random.random() * 4)
        return Result("charged")

    spec = ToolSpec("charge", "Charge a card, which must happen once.", {"type": "object", "properties": {}})
    builtin_tools()["charge"] = Tool(spec, outside=charge, repeatable=False)  # type: ignore[index]  # a dict, in truth


runs: Counter[tuple[str, str]] = Counter()  # of the tool, by dialog and call
ids = random.Random(0)


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
