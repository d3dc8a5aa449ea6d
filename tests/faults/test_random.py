"""A random loop of kills, pauses and broken lines while people talk. The seed is printed;
DOMINDS_FAULT_SEED repeats it.

``make faults`` runs it for ten minutes and at least 200 faults; ``make test`` for half a minute.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable

import pytest

from tests.faults.arena import Arena, Chatter
from tests.faults.pages import all_right, pages_on
from tests.faults.proxy import Toxics
from tests.harness.stack import eventually

SECONDS = int(os.environ.get("DOMINDS_FAULT_SECONDS", "12"))
LEAST = int(os.environ.get("DOMINDS_FAULT_COUNT", "0"))
PEOPLE = 4  # each with a page open
SHOWN_SECONDS = 60  # for pages to come back and be right
SEED = int(os.environ.get("DOMINDS_FAULT_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)


class Loop:
    """One fault after another, each ended before the next begins."""

    def __init__(self, arena: Arena, seed: int) -> None:
        self.arena = arena
        self.random = random.Random(seed)
        self.faults: dict[str, Callable[[], None]] = {
            "kill a worker": self.kill_worker,
            "pause a worker": self.pause_worker,
            "end a worker": self.end_worker,
            "kill the sweeper": self.kill_sweeper,
            "kill the web server": self.kill_web,
            "kill redis": self.kill_redis,
            "freeze redis": self.freeze_redis,
            "break redis connections": arena.redis_proxy.reset_all,
            "slow redis": lambda: self.poison("redis_proxy", Toxics(latency=0.1)),
            "break database connections": arena.database_proxy.reset_all,
            "slow database": lambda: self.poison("database_proxy", Toxics(latency=0.02)),
            "restart the database": self.restart_database,
            "break provider connections": arena.provider_proxy.reset_all,
            "provider in single bytes": lambda: self.poison("provider_proxy", Toxics(slice_bytes=1)),
            "refuse provider connections": lambda: self.poison("provider_proxy", Toxics(refuse=True)),
        }
        self.done: Counter[str] = Counter()

    def step(self) -> None:
        name = self.random.choice(sorted(self.faults))
        self.faults[name]()
        self.done[name] += 1
        time.sleep(self.random.uniform(0.2, 1.5))

    def kill_worker(self) -> None:
        self.random.choice(self.arena.stack.workers).kill()
        self.arena.stack.start_worker()

    def pause_worker(self) -> None:
        worker = self.random.choice(self.arena.stack.workers)
        worker.freeze()
        time.sleep(self.random.choice([0.5, 3, 14]))
        worker.thaw()

    def end_worker(self) -> None:
        self.random.choice(self.arena.stack.workers).signal(signal.SIGTERM)
        self.arena.stack.start_worker()

    def kill_sweeper(self) -> None:
        self.arena.stack.parts_named("sweeper")[0].kill()
        self.arena.stack.start_sweeper()

    def kill_web(self) -> None:
        self.arena.stack.web.kill()
        self.arena.stack.start_web()

    def kill_redis(self) -> None:
        self.arena.redis.kill()
        self.arena.redis.start()

    def freeze_redis(self) -> None:
        self.arena.redis.freeze()
        time.sleep(self.random.uniform(0.5, 4))
        self.arena.redis.thaw()

    def restart_database(self) -> None:
        self.arena.postgres.stop(signal.SIGQUIT)
        time.sleep(self.random.uniform(0, 1))
        self.arena.postgres.start()

    def poison(self, proxy: str, toxics: Toxics) -> None:
        getattr(self.arena, proxy).toxics = toxics
        time.sleep(self.random.uniform(0.5, 2))
        getattr(self.arena, proxy).heal()


@pytest.mark.timeout(SECONDS * 4 + 600)
def test_whatever_is_broken_no_invariant_is(arena: Arena) -> None:
    print(f"DOMINDS_FAULT_SEED={SEED}")
    loop = Loop(arena, SEED)
    started = time.monotonic()
    with Chatter(arena, PEOPLE, words=12, every=0.1) as people:
        eventually(lambda: len(arena.talks) == PEOPLE, 30)
        with pages_on(arena, arena.talks) as pages:
            while time.monotonic() - started < SECONDS or loop.done.total() < LEAST:
                loop.step()
            arena.heal()
            people.stop()
            arena.settled(seconds=120)
            all_right(pages, SHOWN_SECONDS)
    ends = Counter(status for talk in arena.talks for status in talk.statuses)
    print(f"{loop.done.total()} faults: {dict(loop.done)}; messages ended as {dict(ends)}")
    assert people.problems == []
    assert arena.breaches() == [], f"seed {SEED}"
    assert ends["answered"] > 0
    assert set(ends) <= {"answered", "failed"}, f"seed {SEED}"
