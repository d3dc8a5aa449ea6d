"""The watchdog says what holds an event loop up, and does not take a frozen process for one."""

import asyncio
import gc
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from dominds.web.watchdog import STILL_SECONDS, still, watch
from tests.harness.stack import ROOT, eventually

pytestmark = pytest.mark.slow  # loops that stand still for seconds


@pytest.fixture(autouse=True)
def _no_garbage_of_others() -> Iterator[None]:
    """A collection of what thousands of tests left holds all threads up for a second,
    which the watchdog rightly tells of."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def a_slow_thing(seconds: float) -> None:
    time.sleep(seconds)


async def serve(*work: float) -> None:
    """Answer one request, then sleep on the loop for each of so many seconds, with a moment between."""

    async def application(scope: object, receive: object, send: object) -> None:
        await asyncio.sleep(0.5)
        for seconds in work:
            a_slow_thing(seconds)
            await asyncio.sleep(0.6)

    await watch(application)({}, None, None)


def lines(caplog: pytest.LogCaptureFixture, event: str) -> list[str]:
    return [line for line in caplog.text.splitlines() if event in line]


def stalls() -> float:
    [metric] = still.collect()
    return next(sample.value for sample in metric.samples if sample.name.endswith("_total"))


def test_a_stalled_loop_is_logged_once_with_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = stalls()
    asyncio.run(serve(STILL_SECONDS * 3))
    assert len(lines(caplog, "event_loop_stands_still")) == len(lines(caplog, "event_loop_goes_on")) == 1
    assert "a_slow_thing(seconds)" in caplog.text
    [goes_on] = lines(caplog, "event_loop_goes_on")
    message = float(re.findall(r"seconds\D+([\d.]+)", goes_on)[0])
    assert message == pytest.approx(STILL_SECONDS * 3, abs=0.7)
    assert stalls() == before + 1


def test_short_pauses_are_not_told_of_however_many_they_are(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(serve(*[STILL_SECONDS / 4] * 6))
    assert not lines(caplog, "event_loop")


def numbers_to_add() -> int:
    """Adding so many takes four times as long as a loop may stand still: a shared machine may be
    faster in the next second."""
    started = time.thread_time()
    sum(range(5_000_000))
    return int(5_000_000 * STILL_SECONDS * 4 / (time.thread_time() - started))


def test_a_loop_that_is_over_does_not_stand_still(caplog: pytest.LogCaptureFixture) -> None:
    enough = numbers_to_add()
    asyncio.run(serve())
    sum(range(enough))  # keeps the watchdog out, which has not seen yet that the loop has stopped
    eventually(lambda: "watchdog" not in {thread.name for thread in threading.enumerate()})
    assert not lines(caplog, "event_loop")


def test_a_loop_that_was_only_stopped_does_not_stand_still(caplog: pytest.LogCaptureFixture) -> None:
    """Twisted leaves its loop open, and the process then waits for its other threads."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(serve())
    eventually(lambda: "watchdog" not in {thread.name for thread in threading.enumerate()})
    loop.close()
    assert not lines(caplog, "event_loop")


def test_a_long_c_call_that_blocks_all_threads_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    enough = numbers_to_add()

    async def application(scope: object, receive: object, send: object) -> None:
        await asyncio.sleep(0.5)
        sum(range(enough))  # the interpreter hands over to other threads only between two steps of Python
        over = time.monotonic() + 0.3
        while time.monotonic() < over:  # so that the look finds this function, whichever thread is handed over to first
            pass
        await asyncio.sleep(0.6)

    async def run() -> None:
        await watch(application)({}, None, None)

    asyncio.run(run())
    assert len(lines(caplog, "event_loop_stands_still")) == 1
    assert "in application" in caplog.text


@pytest.mark.server
def test_a_process_that_was_frozen_was_not_held_up() -> None:
    program = textwrap.dedent("""
        import asyncio
        from dominds.web.watchdog import watch
        async def application(scope, receive, send):
            print("here", flush=True)
            await asyncio.sleep(4)
        async def run():
            await watch(application)({}, None, None)
        asyncio.run(run())
    """)
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        frozen = psutil.Process(process.pid)
        time.sleep(0.6)
        for _ in range(2):
            frozen.suspend()
            eventually(lambda: frozen.status() == psutil.STATUS_STOPPED, 5)
            time.sleep(STILL_SECONDS * 2)
            frozen.resume()
            time.sleep(0.3)
        rest = process.stdout.read().decode()
    assert process.returncode == 0
    assert "event_loop" not in rest
