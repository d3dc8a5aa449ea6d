"""Workers that die, pause or go in the middle of an answer: another one takes over,
and nothing of the first remains."""

import signal
import time

from dialogs.models import Generation
from tests.faults.arena import SETTLED_SECONDS, Arena
from tests.faults.effort import everything
from tests.harness.stack import eventually

RECOVERY_SECONDS = 20.0
SLACK_SECONDS = 5.0  # for a machine that is shared with others


def test_a_killed_worker_is_replaced_within_20_seconds(arena: Arena) -> None:
    talks = [arena.talk(words=60, every=0.1) for _ in range(4)]
    for talk in talks:
        arena.streaming(talk)
    victim = arena.driven_by(talks[-1])  # which has longest to go, however long it took to open them
    victim.kill()
    took = arena.settled(seconds=RECOVERY_SECONDS + 60 * 0.1 + SLACK_SECONDS)
    assert arena.breaches() == []
    assert {status for talk in talks for status in talk.statuses} == {"answered"}
    lost = [talk for talk in talks if "crashed" in talk.outcomes]
    assert lost, "nobody was driven by the victim"
    for talk in lost:
        assert talk.outcomes == ["crashed", "kept"]
        first, second = talk.row.generations.order_by("id")
        gap = (second.started_at - first.started_at).total_seconds()
        assert gap < RECOVERY_SECONDS, f"taken over after {gap:.1f} s"
    print(f"all answered {took:.1f} s after the kill")


@everything
def test_all_workers_killed_and_started_again(arena: Arena) -> None:
    talks = [arena.talk(words=30, every=0.1) for _ in range(3)]
    for talk in talks:
        arena.streaming(talk)
    for worker in arena.stack.workers:
        worker.kill()
    talks.append(arena.talk(words=5))  # accepted while nobody works
    arena.heal()
    arena.settled()
    assert arena.breaches() == []
    assert {status for talk in talks for status in talk.statuses} == {"answered"}


@everything
def test_a_silent_stream_is_tried_again_after_a_minute(arena: Arena) -> None:
    talk = arena.talk(words=20, then="stall", fails=1)
    others = [arena.talk(words=20, every=0.1) for _ in range(4)]
    arena.settled(others, seconds=30)
    took = arena.settled([talk], seconds=120)
    print(f"answered {took:.0f} s after the others")
    assert talk.outcomes == ["failed", "kept"]
    assert talk.row.generations.order_by("id").values_list("error_kind", flat=True)[0] == "timeout"
    assert arena.breaches() == []


@everything
def test_a_worker_paused_past_its_lease_writes_nothing_later(arena: Arena) -> None:
    talk = arena.talk(words=40, every=0.1)
    arena.streaming(talk)
    slow = arena.driven_by(talk)
    slow.freeze()
    arena.settled(seconds=RECOVERY_SECONDS + 4 + SLACK_SECONDS)
    ended = list(talk.row.turns.order_by("seq").values())
    slow.thaw()
    time.sleep(3)
    assert list(talk.row.turns.order_by("seq").values()) == ended
    assert talk.outcomes == ["crashed", "kept"]
    assert arena.breaches() == []
    assert slow.running


def test_a_worker_that_is_asked_to_go_hands_over_at_once(arena: Arena) -> None:
    talks = [arena.talk(words=100, every=0.1) for _ in range(4)]
    for talk in talks:
        arena.streaming(talk)
    leaving = arena.driven_by(talks[-1])
    asked_at = time.monotonic()
    leaving.signal(signal.SIGTERM)
    try:
        leaving.process.wait(6 + SLACK_SECONDS)
    finally:
        took = time.monotonic() - asked_at
        print(f"ended {took:.1f} s after TERM")
    mine = [talk for talk in talks if len(talk.outcomes) > 1 or "crashed" in talk.outcomes]
    arena.settled(seconds=SETTLED_SECONDS)
    assert arena.breaches() == []
    assert {status for talk in talks for status in talk.statuses} == {"answered"}
    assert mine, "nobody was driven by the worker that left"
    for talk in mine:
        first, second = talk.row.generations.order_by("id")
        assert (first.outcome, second.outcome) == ("crashed", "kept")
        assert talk.row.crashes == 0


def test_a_hundred_wakes_for_each_dialog_cost_nothing(arena: Arena) -> None:
    from celery import Celery

    talks = [arena.talk(words=10, every=0.1) for _ in range(3)]
    sender = Celery("sender", broker=arena.redis.url)
    for _ in range(100):
        for talk in talks:
            sender.send_task("dialogs.drive_dialog", [talk.id])
    arena.settled()
    time.sleep(1)
    assert arena.breaches() == []
    assert [talk.outcomes for talk in talks] == [["kept"]] * 3
    assert [len(arena.provider.asked(talk.mark)) for talk in talks] == [1, 1, 1]


def test_a_worker_killed_in_a_forced_attempt_counts_no_refusal(arena: Arena) -> None:
    full = {"prompt_tokens": 120_000, "completion_tokens": 1}
    talk = arena.talk(words=2, usage=full)
    arena.settled()
    arena.say(talk, every=2.0, forced="text")
    forced = Generation.objects.filter(dialog_id=talk.id, purpose="forced_clear")

    def asked() -> list[bool]:
        return [entry["forced"] for entry in arena.provider.log() if entry.get("dialog") == talk.mark]

    eventually(lambda: forced.filter(outcome="running").exists() and asked() == [False, True, True])
    arena.driven_by(talk).kill()
    arena.settled(seconds=RECOVERY_SECONDS + 6 + SLACK_SECONDS)
    assert sorted(forced.values_list("outcome", flat=True)) == ["crashed", "discarded", "discarded", "discarded"]
    assert (talk.row.state, talk.statuses) == ("suspended", ["answered", "suspended"])
    assert asked() == [False, True, True, True, True]
    assert arena.breaches() == []
    refused = arena.api.post(f"/api/dialogs/{talk.id}/messages", json={"text": "hello?"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "dialog_suspended")
