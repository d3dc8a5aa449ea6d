"""Who drives a dialog: one worker at a time, and another one when it vanishes."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction
from redis import Redis

from dialogs.actions import messages
from dialogs.models import Dialog, Generation, Turn
from dialogs.runtime.driver import drive
from dialogs.runtime.stream_reply import Ending, Reply
from dialogs.store.change import LeaseLost
from dialogs.store.lease import MAX_CRASHES, RENEW_SECONDS, Lease, claim, free_leases_of, keeper, worker_name
from tests.dialogs.actions.driving import Driving, in_threads, refreshed, user_turns
from tests.dialogs.conftest import Script
from tests.dialogs.event_lists import events_of
from tests.dialogs.factories import make_dialog, send
from tests.dialogs.vanishing import call_and_vanish, expire, take_and_vanish
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def asked(script: Script) -> Dialog:
    """A dialog that owes an answer."""
    dialog = make_dialog()
    messages.post_message(dialog.pk, "Hi")
    return dialog


@pytest.fixture
def draining() -> Iterator[None]:
    """Let a test drain this process's keeper, and have it back afterwards."""
    yield
    keeper.draining = False


def test_of_many_workers_that_are_woken_one_drives(asked: Dialog) -> None:
    everybody_has_tried = threading.Barrier(6)

    def work(_: int) -> int:
        with claim(asked.pk) as lease:
            everybody_has_tried.wait(60)
            return lease.epoch if lease else 0

    assert Counter(in_threads(6, work)) == {0: 5, 1: 1}


def test_a_worker_overtaken_while_giving_back_leaves_the_dialog_alone(asked: Dialog) -> None:
    def overtake_behind_the_look(execute: Any, sql: str, *given: Any) -> Any:
        looked = execute(sql, *given)
        if sql.startswith('SELECT %s AS "a"'):  # what ``exists`` asks
            Dialog.objects.filter(pk=asked.pk).update(epoch=7, lease_owner="another")
        return looked

    with connection.execute_wrapper(overtake_behind_the_look), claim(asked.pk) as lease:
        assert lease is not None
        lease.release_later()
    assert (refreshed(asked).epoch, refreshed(asked).lease_owner) == (7, "another")


def test_a_hundred_wakes_make_one_generation(asked: Dialog) -> None:
    def drive_ten_times(_: int) -> None:
        for _ in range(10):
            drive(asked.pk)

    in_threads(10, drive_ten_times)
    assert user_turns(asked) == [("Hi", "answered")]
    assert (asked.generations.count(), refreshed(asked).epoch) == (1, 1)


def test_epochs_grow_with_every_claim(asked: Dialog) -> None:
    epochs = [take_and_vanish(asked).epoch for _ in range(2)]
    drive(asked.pk)
    send(asked, "again")
    assert [*epochs, refreshed(asked).epoch] == [1, 2, 4]


def test_nothing_is_claimed_that_owes_nothing(asked: Dialog) -> None:
    drive(asked.pk)
    with claim(asked.pk) as lease:
        assert lease is None
    assert refreshed(asked).epoch == 1


def test_a_worker_that_was_passed_over_can_commit_nothing(asked: Dialog) -> None:
    slow = take_and_vanish(asked)
    drive(asked.pk)
    before = Dialog.objects.filter(pk=asked.pk).values().get()
    with pytest.raises(LeaseLost, match="epoch 2, this worker holds 1"), slow.change() as change:
        change.turn(Turn.Role.ASSISTANT, Turn.Status.COMPLETE, text="stale")
    assert Dialog.objects.filter(pk=asked.pk).values().get() == before
    assert not asked.turns.filter(text="stale").exists()


def test_a_paused_worker_goes_on_if_nobody_took_over(asked: Dialog) -> None:
    slow = take_and_vanish(asked)
    with slow.change() as change:
        change.event("notice", text="still mine")
    assert len(events_of(asked, "notice")) == 1


def test_an_attempt_that_was_lost_is_marked_and_the_message_answered(asked: Dialog) -> None:
    call_and_vanish(asked)
    drive(asked.pk)
    assert list(asked.generations.order_by("id").values_list("outcome", "epoch")) == [("crashed", 1), ("kept", 2)]
    assert user_turns(asked) == [("Hi", "answered")]
    assert list(asked.turns.filter(role="assistant").values_list("text", flat=True)) == ["Hello."]


def test_the_third_loss_fails_the_message_visibly_and_only_it(asked: Dialog) -> None:
    messages.post_message(asked.pk, "and then?")
    for _ in range(MAX_CRASHES):
        call_and_vanish(asked)
    drive(asked.pk)
    assert user_turns(asked) == [("Hi", "failed"), ("and then?", "answered")]
    assert [row.outcome for row in asked.generations.order_by("id")] == ["crashed"] * 3 + ["kept"]


def test_a_message_that_failed_so_can_be_tried_again(asked: Dialog) -> None:
    for _ in range(MAX_CRASHES):
        call_and_vanish(asked)
    drive(asked.pk)
    dialog = refreshed(asked)
    assert (dialog.state, dialog.lease_owner) == ("failed", "")
    assert "lost 3 times" in dialog.failure
    messages.retry(asked.pk)
    drive(asked.pk)
    assert user_turns(asked) == [("Hi", "answered")]


def test_a_worker_lost_before_its_call_counts_as_well(asked: Dialog) -> None:
    """What kills a worker may lie before the call: a history that is too large to count, say."""
    for _ in range(MAX_CRASHES):
        take_and_vanish(asked)
    drive(asked.pk)
    assert user_turns(asked) == [("Hi", "failed")]
    assert asked.generations.count() == 0


def test_losses_are_counted_in_a_row(script: Script, asked: Dialog) -> None:
    script(*[{"tool_calls": [{"name": "add_reminder", "arguments": {"content": "x"}}]}] * 3, {"text": "done"})
    for _ in range(MAX_CRASHES):
        for _ in range(MAX_CRASHES - 1):
            call_and_vanish(asked)
        with claim(asked.pk) as lease:
            assert lease is not None
            _generate_once(lease)
    drive(asked.pk)
    assert user_turns(asked) == [("Hi", "answered")]


def _generate_once(lease: Lease) -> None:
    from dialogs.runtime.driver import pending_work, step
    from dialogs.runtime.tool_runs import pending_calls, run

    dialog = pending_work(lease)
    assert dialog is not None
    step(lease, dialog)
    dialog = pending_work(lease)
    if dialog is not None and (work := pending_calls(dialog)):
        run(lease, dialog, work)


def test_a_tool_call_that_kills_workers_is_not_run_forever(script: Script, asked: Dialog) -> None:
    script({"match": "^Hi$", "tool_calls": [{"name": "list_files", "arguments": {}}]}, {"text": "done"})
    with claim(asked.pk) as lease:
        from dialogs.runtime.driver import pending_work, step

        assert lease is not None
        dialog = pending_work(lease)
        assert dialog is not None
        step(lease, dialog)
    for _ in range(MAX_CRASHES):
        take_and_vanish(asked)
    drive(asked.pk)
    assert user_turns(asked) == [("Hi", "failed")]
    assert list(asked.turns.filter(role="tool").values_list("status", flat=True)) == ["error"]
    send(asked, "what now?")
    assert user_turns(asked)[-1] == ("what now?", "answered")


def test_a_worker_that_lets_go_leaves_no_attempt_behind(asked: Dialog, draining: None) -> None:
    """A deploy is no crash: three of them within one answer fail nothing."""
    for _ in range(MAX_CRASHES + 1):
        with claim(asked.pk) as lease:
            assert lease is not None
            _begin(lease)
            keeper.drain()
            assert not lease.holds
        keeper.draining = False
    dialog = refreshed(asked)
    assert (dialog.state, dialog.lease_owner, dialog.crashes) == ("queued", "", 0)
    drive(asked.pk)
    assert [row.outcome for row in asked.generations.order_by("id")] == ["crashed"] * 4 + ["kept"]


def _begin(lease: Any) -> None:
    from dialogs.context.model_calls import Answer
    from dialogs.context.request import prepare
    from dialogs.runtime import attempts
    from dialogs.runtime.materials import materials_of

    dialog = Dialog.objects.select_related("agent").get(pk=lease.dialog_id)
    served, view, _, _ = materials_of(dialog)
    call = Answer(view)
    attempts.begin(lease, dialog, served, call, prepare(dialog, served.model, call))


def test_a_draining_worker_claims_nothing(asked: Dialog, draining: None) -> None:
    keeper.drain()
    drive(asked.pk)
    assert refreshed(asked).epoch == 0


def test_an_error_of_our_own_fails_the_message_after_three_tries(script: Script, asked: Dialog) -> None:
    """A dialog that always raises neither loops at full speed nor hangs for ever."""
    asked.rounds.all().delete()  # a row that must be there
    for _ in range(MAX_CRASHES):
        with pytest.raises(Exception, match="round finds nothing"):
            drive(asked.pk)
        dialog = refreshed(asked)
        assert (dialog.state, dialog.lease_owner) == ("queued", "")
    drive(asked.pk)
    assert user_turns(asked) == [("Hi", "failed")]


def test_losing_the_lease_in_the_middle_is_no_error(script: Script, asked: Dialog) -> None:
    script({"text": "Hello.", "delay_ms": 6_000})
    driving = Driving(asked.pk)
    eventually(lambda: asked.generations.filter(outcome="running").exists())
    script({"text": "Hello."})

    def taken_over() -> bool:
        expire(asked)  # again and again: the thread that renews leases may come in between
        drive(asked.pk)
        return refreshed(asked).epoch > 1

    eventually(taken_over)
    driving.end()
    assert [row.outcome for row in asked.generations.order_by("id")] == ["crashed", "kept"]
    assert asked.turns.filter(role="assistant").count() == 1


def test_a_lease_is_renewed_while_the_model_thinks(script: Script, asked: Dialog) -> None:
    script({"text": "Hello.", "delay_ms": 6_000})
    driving = Driving(asked.pk)
    first = eventually(lambda: refreshed(asked).lease_until)
    assert eventually(lambda: refreshed(asked).lease_until > first, seconds=10)
    messages.stop(asked.pk)
    driving.end()


def test_a_row_that_is_held_keeps_no_other_lease_from_its_renewal(asked: Dialog) -> None:
    """Else the keeper, with the locks of the others, and a report that goes from one of them to another wait for each
    other."""
    other = make_dialog()
    messages.post_message(other.pk, "Ho")
    with claim(asked.pk) as lease, claim(other.pk) as free:
        assert lease is not None
        assert free is not None
        before = refreshed(other).lease_until
        with connection.cursor() as cursor, transaction.atomic():
            cursor.execute("SELECT 1 FROM dialogs_dialog WHERE id = %s FOR UPDATE", [asked.pk])
            due = time.monotonic() - RENEW_SECONDS
            lease.renewed_at = free.renewed_at = due
            eventually(lambda: free.renewed_at > due)
            assert lease.renewed_at == due
        assert Dialog.objects.filter(pk=other.pk, lease_until__gt=before).exists()
        eventually(lambda: lease.renewed_at > due)


def test_the_supervisor_frees_what_a_dead_worker_held_and_wakes_it(asked: Dialog, redis_client: Redis) -> None:
    def wakes() -> int:
        return sum(str(asked.pk).encode() in message for message in redis_client.lrange("celery", 0, -1))

    eventually(lambda: wakes() == 1)  # its message's own
    claimed = claim(asked.pk)
    lease = claimed.__enter__()
    assert lease is not None
    keeper.remove(lease)
    drive(asked.pk)
    assert user_turns(asked) == [("Hi", "answering")]
    with connection.cursor() as cursor, transaction.atomic():
        cursor.execute("SELECT 1 FROM dialogs_dialog WHERE id = %s FOR UPDATE", [asked.pk])
        with ThreadPoolExecutor(1) as elsewhere:
            assert elsewhere.submit(free_on_a_connection_of_its_own).result() == 0, (
                "nobody waits for a row that is held"
            )
    assert wakes() == 1
    assert free_leases_of(worker_name()) == 1
    eventually(lambda: wakes() == 2)
    drive(asked.pk)
    assert user_turns(asked) == [("Hi", "answered")]


def free_on_a_connection_of_its_own() -> int:
    try:
        return free_leases_of(worker_name())
    finally:
        connection.close()


def test_a_stream_that_lost_its_lease_ends_for_good(asked: Dialog) -> None:
    """Else a renewal that comes late would let the worker begin a second attempt beside the first."""
    from dialogs.runtime.outcomes import store_outcome

    with claim(asked.pk) as lease:
        assert lease is not None
        lease.renewed_at = time.monotonic() - 60
        store_outcome(lease, None, Reply(ending=Ending.LOST))  # type: ignore[arg-type]
        lease.renewed_at = time.monotonic()
        assert not lease.holds


def test_a_repeated_commit_does_not_log_what_was_said(asked: Dialog, caplog: pytest.LogCaptureFixture) -> None:
    """The helper that repeats it would log its arguments: request and reply."""
    from django.db import OperationalError

    from dialogs.store.db_retry import commits

    failures = [OperationalError("the database was away")]

    @commits
    def store(text: str) -> str:
        if failures:
            raise failures.pop()
        return text

    assert store("SENTINEL") == "SENTINEL"
    assert "SENTINEL" not in caplog.text


def test_only_one_generation_can_run_at_a_time(asked: Dialog) -> None:
    call_and_vanish(asked)
    row = Generation.objects.get(dialog=asked)
    from django.db import IntegrityError, transaction

    with pytest.raises(IntegrityError, match="one_running_generation"), transaction.atomic():
        Generation.objects.create(dialog=asked, round_number=1, purpose="reply", epoch=row.epoch)
