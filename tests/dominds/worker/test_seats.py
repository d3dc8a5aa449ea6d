"""Seats of a worker: so many dialogs are at work at once, and those that wait for their model are not among them."""

import threading
import time
from collections.abc import Callable

import pytest

from dominds.worker.seats import Seats


class Dialog:
    """A thread that takes a seat, gives it back while its model talks, and ends."""

    def __init__(self, seats: Seats, log: list[str], name: str = "") -> None:
        self.seated, self.talks, self.may_talk, self.answered, self.may_end = (threading.Event() for _ in range(5))
        self.back = threading.Event()
        self._seats, self._log, self._name = seats, log, name
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with self._seats.take():
            self._log.append(f"{self._name} begins")
            self.seated.set()
            self.may_talk.wait(10)
            with self._seats.without_seat():
                self.talks.set()
                self.answered.wait(10)
            self._log.append(f"{self._name} goes on")
            self.back.set()
            self.may_end.wait(10)


@pytest.fixture
def begun() -> "Callable[..., Dialog]":
    seats, log = Seats(1), list[str]()

    def begin(name: str) -> Dialog:
        dialog = Dialog(seats, log, name)
        dialog.log = log  # type: ignore[attr-defined]
        return dialog

    return begin


def test_no_more_are_at_work_than_there_are_seats(begun: Callable[..., Dialog]) -> None:
    first, second = begun("first"), None
    assert first.seated.wait(10)
    second = begun("second")
    assert not second.seated.wait(0.1)
    for step in (first.may_talk, first.answered, first.may_end):
        step.set()
    assert second.seated.wait(10)


def test_whose_model_talks_has_given_its_seat_back(begun: Callable[..., Dialog]) -> None:
    talking = [begun(str(number)) for number in range(20)]
    for dialog in talking:
        dialog.may_talk.set()
    assert all(dialog.talks.wait(10) for dialog in talking)


def test_a_finished_answer_goes_before_a_new_dialog(begun: Callable[..., Dialog]) -> None:
    first = begun("first")
    assert first.seated.wait(10)
    first.may_talk.set()
    assert first.talks.wait(10)
    second = begun("second")
    assert second.seated.wait(10)
    third = begun("third")
    time.sleep(0.05)  # it waits
    first.answered.set()
    assert not first.back.wait(0.05)
    second.may_talk.set()
    assert first.back.wait(10)
    assert not third.seated.is_set()


def test_a_thread_without_a_seat_just_waits() -> None:
    seats = Seats(1)
    with seats.without_seat(), seats.take():
        pass
    with seats.take(), seats.without_seat():
        pass
    with seats.take():
        pass
