"""What a page gets of the live text, and when."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dialogs.live.live_queue import MOST_FRAMES, LiveQueue, State


def piece(generation: int, position: int = 0, **more: Any) -> dict[str, Any]:
    return {"generation": generation, "pos": position, **more}


def opened(generation: int = 7) -> LiveQueue:
    """The queue of a page that has all events, up to the start of this generation, and no live text."""
    queue = LiveQueue()
    queue.note_start(generation)
    queue.open()
    queue.restart(None)
    return queue


def taken(queue: LiveQueue, ended: int = 0) -> list[dict[str, Any]]:
    return list(iter(lambda: queue.next_frame(ended), None))


def test_a_page_gets_no_live_text_before_all_earlier_events() -> None:
    queue = LiveQueue()
    assert not queue.add(piece(7)) and not queue.add(piece(7, reset=True))
    queue.interrupt()
    assert (queue.state, taken(queue)) == (State.OPENING, [])
    queue.open()
    assert queue.state is State.INTERRUPTED


def test_an_interrupted_page_goes_on_with_a_beginning_alone() -> None:
    queue = opened()
    queue.interrupt()
    assert not queue.add(piece(7, 5))
    assert queue.add(piece(7, reset=True))
    assert not queue.add(piece(7, 9))
    assert [frame["pos"] for frame in taken(queue)] == [0, 9]


def test_text_waits_for_the_start_of_its_generation() -> None:
    queue = opened()
    assert queue.add(piece(8))
    assert queue.waits(ended_generation=0) and taken(queue) == []
    queue.note_start(8)
    assert not queue.waits(ended_generation=0)
    assert taken(queue) == [piece(8)]


def test_text_of_an_ended_generation_is_left_out() -> None:
    queue = opened()
    for generation in (7, 8, 9):
        queue.add(piece(generation))
    queue.note_start(9)
    assert taken(queue, ended=8) == [piece(9)]


@given(st.integers(1, 3 * MOST_FRAMES))
def test_what_is_queued_is_bounded(frames: int) -> None:
    queue = opened()
    for position in range(frames):
        queue.add(piece(7, position))
    assert len(taken(queue)) == (frames if frames <= MOST_FRAMES else 0)
    assert (queue.state is State.INTERRUPTED) == (frames > MOST_FRAMES)
