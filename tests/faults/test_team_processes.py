"""A team of real processes, of which some die while three side dialogs work: each report arrives once."""

import signal
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from dialogs.extras.teams.models import SideDialog
from dialogs.models import Dialog, Generation, Turn
from tests.faults.arena import Arena, Talk
from tests.faults.effort import everything
from tests.faults.invariants import breaches
from tests.harness.stack import eventually

pytestmark = [everything, pytest.mark.extras]

READERS = 3
AT_REST_SECONDS = 90  # a lease of a dead worker ends after 20 s; the machine is shared
STOPPED_SECONDS = 2.0 + 5.0  # the promise, and slack for a machine that is shared with others


def ask(arena: Arena, *, waits: bool) -> tuple[Talk, list[Talk]]:
    """A lead that has asked its readers, each of which is in the middle of its answer."""
    lead = arena.open("lead")
    calls = [
        {"name": "ask_agent", "arguments": {"agent": "reader", "task": f"Part {part} of {lead.mark}", "wait": waits}}
        for part in range(READERS)
    ]
    arena.say(lead, calls=calls, words=3)
    sides = SideDialog.objects.filter(parent=UUID(lead.id))
    streaming = Generation.objects.filter(dialog__in=sides.values("pk"), outcome="running")
    eventually(lambda: streaming.count() == READERS, 60)
    return lead, [Talk(str(side.pk), lead.mark) for side in sides]


def kill_a_worker(arena: Arena, side: Talk) -> None:
    arena.driven_by(side).kill()


def end_a_worker(arena: Arena, side: Talk) -> None:
    arena.driven_by(side).signal(signal.SIGTERM)


def kill_all_workers(arena: Arena, side: Talk) -> None:
    for worker in arena.stack.workers:
        worker.kill()
    arena.heal()


def kill_redis(arena: Arena, side: Talk) -> None:
    arena.redis.kill()
    time.sleep(2)
    arena.redis.start()


def kill_redis_until_they_have_reported(arena: Arena, side: Talk) -> None:
    arena.redis.kill()
    eventually(lambda: not SideDialog.objects.filter(answered_at=None).exists(), 60)
    arena.redis.start()


def kill_a_worker_and_redis(arena: Arena, side: Talk) -> None:
    arena.redis.kill()
    arena.driven_by(side).kill()
    time.sleep(2)
    arena.redis.start()


def stop_the_database(arena: Arena, side: Talk) -> None:
    arena.postgres.stop(signal.SIGQUIT)
    time.sleep(3)
    arena.postgres.start()
    connection.close()  # the test's own one is lost as well


def freeze_a_worker(arena: Arena, side: Talk) -> None:
    worker = arena.driven_by(side)
    worker.freeze()
    time.sleep(25)
    worker.thaw()


def kill_redis_for_now(arena: Arena, side: Talk) -> None:
    arena.redis.kill()


def faults_of(arena: Arena, lead: Talk, sides: list[Talk], *, waits: bool) -> list[str]:
    result = [*arena.breaches([lead]), *breaches([side.row for side in sides])]
    tools = Turn.objects.filter(dialog=UUID(lead.id), role="tool")
    messages = Turn.objects.filter(dialog=UUID(lead.id), client_message_id__startswith="report of ")
    reports = tools if waits else messages
    said = [
        reports.filter(text__contains=Turn.objects.get(dialog=UUID(side.id), role="assistant").text) for side in sides
    ]
    if [one.count() for one in said] != [1] * READERS:
        result.append(f"the reports arrived {[one.count() for one in said]} times")
    if (tools.count(), messages.count()) != (READERS, 0 if waits else READERS):
        result.append(f"there are {tools.count()} results and {messages.count()} messages")
    asked = [Turn.objects.filter(dialog=UUID(side.id), role="user").count() for side in sides]
    if asked != [1] * READERS:
        result.append(f"the tasks were sent {asked} times")
    if set(lead.statuses) != {"answered"}:
        result.append(f"the lead's messages are {lead.statuses}")
    return result


def is_at_rest(lead: Talk, sides: list[Talk]) -> Callable[[], bool]:
    ids = [lead.id, *(side.id for side in sides)]
    busy = Dialog.objects.filter(pk__in=ids, state__in=["queued", "generating"])
    return lambda: not (SideDialog.objects.filter(parent=UUID(lead.id), answered_at=None).exists() or busy.exists())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("waits", [True, False], ids=["waits", "goes on"])
@pytest.mark.parametrize(
    "breaks",
    [
        kill_a_worker,
        end_a_worker,
        kill_all_workers,
        kill_redis,
        kill_redis_until_they_have_reported,
        kill_a_worker_and_redis,
        stop_the_database,
        freeze_a_worker,
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_each_report_arrives_once_whatever_process_dies(arena: Arena, breaks: Any, waits: bool) -> None:
    lead, sides = ask(arena, waits=waits)
    began = time.monotonic()
    breaks(arena, sides[-1])
    eventually(is_at_rest(lead, sides), AT_REST_SECONDS, every=0.2)
    lost = Generation.objects.filter(dialog__in=[side.id for side in sides]).exclude(outcome="kept").count()
    print(f"at rest {time.monotonic() - began:.1f} s later, {lost} attempts lost")
    assert faults_of(arena, lead, sides, waits=waits) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("breaks", [None, end_a_worker, kill_redis_for_now], ids=["idle", "TERM", "Redis killed"])
def test_after_stop_no_call_of_the_team_begins_or_goes_on(arena: Arena, breaks: Any) -> None:
    lead, sides = ask(arena, waits=True)
    if breaks:
        breaks(arena, sides[-1])
    pressed = time.time()
    arena.api.post(f"/api/dialogs/{lead.id}/stop").raise_for_status()
    calls = Generation.objects.filter(dialog__in=[UUID(one.id) for one in (lead, *sides)])
    eventually(lambda: not calls.filter(outcome="running").exists(), 30)
    arena.heal()
    eventually(lambda: not SideDialog.objects.filter(parent=UUID(lead.id), ended_at=None).exists(), 30)
    time.sleep(8)  # the sweeper looks every five seconds
    took = max(call.finished_at.timestamp() - pressed for call in calls if call.finished_at)
    print(f"the last call ended {took:.1f} s after stop")
    assert [call for call in calls if call.started_at.timestamp() > pressed + STOPPED_SECONDS] == []
    assert {side.row.state for side in sides} == {"closed"}
    assert breaks or took < STOPPED_SECONDS
    assert breaches([lead.row, *(side.row for side in sides)]) == []
