"""Messages that are sent and answered, here or on a thread as a worker does."""

import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import connection

from dialogs.actions import messages
from dialogs.models import Dialog
from dialogs.runtime.driver import drive

ASK = {"tool_calls": [{"name": "ask_human", "arguments": {"question": "Which?"}}]}
SLOW = {"text": "one two three four five six seven eight nine ten " * 20, "chunk_delay_ms": 50}


class Driving:
    """``drive`` on a thread, as a worker runs it."""

    def __init__(self, dialog_id: UUID) -> None:
        self._thread = threading.Thread(target=self._run, args=(dialog_id,))
        self._thread.start()

    def _run(self, dialog_id: UUID) -> None:
        try:
            drive(dialog_id)
        finally:
            connection.close()

    def end(self, seconds: float = 30) -> None:
        self._thread.join(seconds)
        assert not self._thread.is_alive()


def send(dialog: Dialog, *texts: str) -> Dialog:
    for text in texts:
        messages.post_message(dialog.pk, text)
    drive(dialog.pk)
    return refreshed(dialog)


def answers(dialog: Dialog) -> list[tuple[str, str]]:
    return list(dialog.turns.filter(role="assistant").order_by("position").values_list("text", "status"))


def conversation(dialog: Dialog) -> list[str]:
    placed = dialog.turns.filter(position__isnull=False).order_by("position")
    return [f"{turn.role}: {turn.text}" for turn in placed]


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run ``work`` on so many threads that start together; return what they answered, or the exceptions."""
    barrier = threading.Barrier(count)
    answers: list[Any] = [None] * count

    def run(number: int) -> None:
        barrier.wait(60)
        try:
            answers[number] = work(number)
        except Exception as error:  # noqa: BLE001  the test looks at it
            answers[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    return answers


def refreshed(dialog: Dialog) -> Dialog:
    return Dialog.objects.get(pk=dialog.pk)


def user_turns(dialog: Dialog) -> list[tuple[str, str]]:
    return list(dialog.turns.filter(role="user").order_by("seq").values_list("text", "status"))
