"""Stop: what it ends, when, and what it leaves alone."""

import time

import pytest

from dialogs.actions import messages
from dialogs.models import Dialog, Turn
from dialogs.runtime.driver import drive, pending_work, step
from dialogs.store.lease import claim, keeper
from dialogs.store.wakeups import client, live_text_key
from tests.dialogs.actions.driving import SLOW, Driving, answers, in_threads, refreshed, send, user_turns
from tests.dialogs.conftest import Script
from tests.dialogs.vanishing import call_and_vanish
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def await_words(dialog: Dialog) -> None:
    """Wait until the model has begun to answer."""
    called = eventually(dialog.generations.first)
    eventually(lambda: client().exists(live_text_key(called.pk)))


def test_stop_before_any_worker_came_ends_the_message(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Hi")
    assert messages.stop(dialog.pk) == "idle"
    drive(dialog.pk)
    assert user_turns(dialog) == [("Hi", "stopped")]
    assert dialog.generations.count() == 0


def test_stop_before_any_worker_came_leaves_the_next_message(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Hi")
    messages.post_message(dialog.pk, "Ho")
    assert messages.stop(dialog.pk) == "queued"
    drive(dialog.pk)
    assert user_turns(dialog) == [("Hi", "stopped"), ("Ho", "answered")]


def test_stop_before_the_first_token(script: Script, dialog: Dialog) -> None:
    script({"text": "late", "delay_ms": 20_000})
    messages.post_message(dialog.pk, "Hi")
    driving = Driving(dialog.pk)
    eventually(dialog.generations.exists)
    pressed = time.monotonic()
    messages.stop(dialog.pk)
    driving.end()
    assert time.monotonic() - pressed < 3
    assert (user_turns(dialog), answers(dialog)) == ([("Hi", "stopped")], [])
    assert (refreshed(dialog).state, refreshed(dialog).stop_requested) == ("idle", False)


def test_stop_in_the_middle_keeps_what_was_said_once(script: Script, dialog: Dialog) -> None:
    script(SLOW)
    messages.post_message(dialog.pk, "Hi")
    driving = Driving(dialog.pk)
    await_words(dialog)
    messages.stop(dialog.pk)
    driving.end()
    ((text, status),) = answers(dialog)
    assert status == "stopped"
    assert 0 < len(text) < len(SLOW["text"])  # type: ignore[arg-type]
    assert str(SLOW["text"]).startswith(text)
    assert user_turns(dialog) == [("Hi", "stopped")]
    assert dialog.generations.get().outcome == "stopped"


def test_stop_ends_the_present_message_and_not_the_queue(script: Script, dialog: Dialog) -> None:
    script({"match": "first", **SLOW}, {"text": "second"})
    messages.post_message(dialog.pk, "the first")
    driving = Driving(dialog.pk)
    await_words(dialog)
    messages.post_message(dialog.pk, "the next")
    messages.stop(dialog.pk)
    driving.end()
    assert user_turns(dialog) == [("the first", "stopped"), ("the next", "answered")]
    assert answers(dialog)[-1] == ("second", "complete")


def test_stop_that_comes_too_late_stops_nothing_else(script: Script, dialog: Dialog) -> None:
    script({"text": "done", "delay_ms": 500})
    messages.post_message(dialog.pk, "the first")
    messages.post_message(dialog.pk, "the next")
    with claim(dialog.pk) as lease:
        assert lease is not None
        keeper.remove(lease)  # which would see the flag within a quarter of a second

        def work_or_stop(number: int) -> None:
            if number == 0:
                while (work := pending_work(lease)) is not None:
                    step(lease, work)
            else:
                eventually(dialog.generations.exists)
                messages.stop(dialog.pk)

        assert in_threads(2, work_or_stop) == [None, None]
    assert user_turns(dialog) == [("the first", "answered"), ("the next", "answered")]


def test_stop_between_a_reply_and_its_tools_runs_none_of_them(script: Script, dialog: Dialog) -> None:
    script({"tool_calls": [{"name": "add_reminder", "arguments": {"content": "x"}}]}, {"text": "done"})
    messages.post_message(dialog.pk, "Hi")
    with claim(dialog.pk) as lease:
        assert lease is not None
        step(lease, pending_work(lease))  # type: ignore[arg-type]
    messages.stop(dialog.pk)
    drive(dialog.pk)
    assert user_turns(dialog) == [("Hi", "stopped")]
    assert dialog.reminders.count() == 0
    (result,) = dialog.turns.filter(role="tool")
    assert (result.status, result.text) == ("error", "Not run: a person pressed stop.")
    script({"text": "hello"})
    send(dialog, "and now?")
    assert (dialog.reminders.count(), answers(dialog)[-1][0]) == (0, "hello")


def test_stop_ends_a_waiting_retry_and_frees_the_next_message(script: Script, dialog: Dialog) -> None:
    busy = {"kind": "rate_limit", "message": "Slow down.", "retry_after": 50}
    script({"error": busy})
    messages.post_message(dialog.pk, "Hi")
    driving = Driving(dialog.pk)
    eventually(lambda: refreshed(dialog).wake_at)
    messages.stop(dialog.pk)
    driving.end()
    drive(dialog.pk)  # whom stopping woke, where the driving had ended already
    assert user_turns(dialog) == [("Hi", "stopped")]
    script({"text": "Hello."})
    send(dialog, "Ho")
    assert user_turns(dialog)[-1] == ("Ho", "answered")


def test_stop_of_a_dialog_at_rest_does_nothing(dialog: Dialog) -> None:
    send(dialog, "Hi")
    assert messages.stop(dialog.pk) == "idle"
    assert send(dialog, "Ho").state == "idle"
    assert user_turns(dialog) == [("Hi", "answered"), ("Ho", "answered")]


def test_stop_when_the_worker_has_vanished_is_obeyed_by_the_next(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Hi")
    call_and_vanish(dialog)
    messages.stop(dialog.pk)
    drive(dialog.pk)
    assert user_turns(dialog) == [("Hi", "stopped")]
    assert [row.outcome for row in dialog.generations.all()] == ["crashed"]


def test_stop_in_a_forced_attempt_keeps_nothing_of_it(script: Script, dialog: Dialog) -> None:
    script({"text": "full", "usage": {"prompt_tokens": 120_000, "completion_tokens": 1}})
    send(dialog, "fill it")
    script({**SLOW, "text": "SENTINEL " * 100})
    messages.post_message(dialog.pk, "and now?")
    driving = Driving(dialog.pk)
    eventually(lambda: dialog.generations.filter(purpose="forced_clear").exists())
    time.sleep(0.4)
    messages.stop(dialog.pk)
    driving.end()
    assert user_turns(dialog)[-1] == ("and now?", "stopped")
    assert not Turn.objects.filter(dialog=dialog, text__contains="SENTINEL").exists()
