"""The queue only wakes, so it may fail in every way but one: it must not block who sends,
and a worker must hear again."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dominds.worker.canary import MAX_UNHEARD, Canary
from tests.harness import services
from tests.harness.redis_server import RedisServer
from tests.harness.stack import ROOT, Part, Stack, eventually

pytestmark = pytest.mark.server

SEND = """
import time
from dominds.celery import canary
begun = time.monotonic()
try:
    canary.delay()
    print("sent", time.monotonic() - begun)
except Exception as error:
    print("failed", time.monotonic() - begun)
"""


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    server = RedisServer().start()
    yield server
    server.thaw()
    server.remove()


@pytest.fixture
def stack(redis: RedisServer, tmp_path: Path) -> Iterator[Stack]:
    """Only a worker is started from it: no task here needs a database."""
    made = Stack(services.postgres.url(), redis=redis, concurrency=2)
    yield made
    made.stop()


def send(stack: Stack) -> tuple[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", SEND],
        cwd=ROOT,
        env=stack.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    word, seconds = done.stdout.split()
    return word, float(seconds)


def consumes(stack: Stack, redis: RedisServer, seconds: float) -> None:
    """Assert that the worker takes a message within the time."""
    assert send(stack)[0] == "sent"
    with redis.client() as client:
        eventually(lambda: client.llen("celery") == 0, seconds)


def worker(stack: Stack) -> Part:
    started = stack.start_worker()
    eventually(lambda: " ready." in started.log(), 30)
    return started


def test_sending_to_a_dead_redis_fails_soon(stack: Stack, redis: RedisServer) -> None:
    redis.kill()
    word, seconds = send(stack)
    assert (word, seconds < 5) == ("failed", True)


def test_sending_to_a_frozen_redis_does_not_block_for_ever(stack: Stack, redis: RedisServer) -> None:
    redis.freeze()
    word, seconds = send(stack)
    assert (word, seconds < 15) == ("failed", True)


def test_a_message_is_not_stored_until_it_is_acknowledged(stack: Stack, redis: RedisServer) -> None:
    worker(stack)
    consumes(stack, redis, 5)
    with redis.client() as client:
        used = set(client.info("commandstats"))
    assert "cmdstat_lpush" in used
    assert not used & {"cmdstat_hset", "cmdstat_hdel"}, "kombu keeps messages in a hash until they are acknowledged"


def test_a_worker_hears_again_after_redis_came_back_empty(stack: Stack, redis: RedisServer) -> None:
    started = worker(stack)
    consumes(stack, redis, 5)
    redis.kill()
    time.sleep(2)
    redis.start()
    consumes(stack, redis, 30)
    assert started.running


def test_a_worker_hears_again_after_redis_was_frozen(stack: Stack, redis: RedisServer) -> None:
    worker(stack)
    redis.freeze()
    time.sleep(6)
    redis.thaw()
    consumes(stack, redis, 60)


def test_a_worker_says_no_word_about_root_or_secrets(stack: Stack, redis: RedisServer) -> None:
    text = worker(stack).log()
    assert "superuser privileges" not in text
    assert redis.place is not None
    assert redis.place.password not in text


def canary(**options: Any) -> tuple[Canary, list[str]]:
    happened: list[str] = []
    made = Canary(
        **{
            "send": lambda: happened.append("sent"),
            "full": lambda: False,
            "end": lambda code: happened.append(f"ended {code}"),
            **options,
        }
    )
    return made, happened


def test_a_deaf_worker_ends_itself_after_about_a_minute() -> None:
    deaf, happened = canary()
    for _ in range(MAX_UNHEARD):
        deaf.check()
    assert happened == ["sent"] * MAX_UNHEARD
    deaf.check()
    assert happened[MAX_UNHEARD] == "ended 75"


def test_any_message_shows_that_it_listens() -> None:
    hearing, happened = canary()
    for _ in range(MAX_UNHEARD * 3):
        hearing.check()
        hearing.note_received()
    assert set(happened) == {"sent"}


def test_a_worker_without_a_broker_is_not_deaf() -> None:
    def refuse() -> None:
        raise ConnectionError("away")

    cut_off, happened = canary(send=refuse)
    for _ in range(MAX_UNHEARD * 3):
        cut_off.check()
    assert happened == []


def test_a_worker_that_is_full_rightly_takes_no_more() -> None:
    full, happened = canary(full=lambda: True)
    for _ in range(MAX_UNHEARD * 3):
        full.check()
    assert set(happened) == {"sent"}
