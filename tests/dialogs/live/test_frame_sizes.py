"""No frame of a page's socket is longer than what the page shows, whatever a model writes."""

from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dialogs.live.feeds import REST, for_page
from dialogs.live.frames import frames_after
from dialogs.store.change import open_change
from dominds.budgets import TURN_CHARS
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog

MOST = TURN_CHARS.most
ONE_FRAME = 10 * MOST  # bytes: its turn as HTML beside its text, and the other pieces


class Page:
    """What ``live_text.js`` makes of the frames of one draft."""

    def __init__(self) -> None:
        self.text, self.end, self.longest = "", 0, 0

    def show(self, frame: dict[str, Any]) -> None:
        self.longest = max(self.longest, len(orjson.dumps(frame)))
        assert frame["pos"] <= self.end, "it would ask for the whole draft again, without end"
        if frame.get("reset"):
            self.text, self.end = frame["tail"], frame["end"]
        elif frame["pos"] == self.end and frame["text"]:
            self.text, self.end = self.text + frame["text"], frame["end"]


def piece(position: int, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "draft", "generation": 1, "pos": position, "end": position + len(text), "text": text, **more}


@settings(max_examples=50)
@example([MOST, 1], 0)
@given(st.lists(st.integers(1, MOST), min_size=1, max_size=12), st.integers(0, 11))
def test_a_page_shows_the_beginning_of_a_draft_of_any_length(sizes: list[int], opened_at: int) -> None:
    page, text = Page(), ""
    for number, size in enumerate(sizes):
        fresh = str(number % 10) * size
        frame = piece(len(text), fresh)
        text += fresh
        if number == opened_at % len(sizes):
            frame = piece(0, text, reset=True, block=0, html="", tail=text)
        elif number < opened_at % len(sizes):
            continue
        if (shown := for_page(frame)) is not None:
            page.show(shown)
    assert page.text == (text if len(text) <= MOST else text[:MOST] + REST)
    assert page.longest < 3 * MOST


def test_thoughts_are_cut_alike() -> None:
    long = piece(0, "", reasoning="a" * 1_000_000, reasoning_pos=10)
    shown = for_page(long)
    assert shown is not None
    assert (len(shown["reasoning"]), shown["reasoning_pos"]) == (MOST - 10, 10)
    assert for_page(piece(0, "", reasoning="more", reasoning_pos=MOST)) is None


@pytest.mark.django_db(transaction=True)
def test_a_frame_of_a_turn_is_bounded(script: Script) -> None:
    dialog = make_dialog()
    calls = [
        {"id": f"c{number}", "name": "write", "arguments": '{"text": "' + "b" * 100_000 + '"}'} for number in range(9)
    ]
    with open_change(dialog.pk) as change:
        change.turn("user", "answered", text="c " * 500_000)
        change.turn("assistant", "complete", text="a " * 500_000, reasoning={"text": "t" * 1_000_000, "ms": 1})
        change.turn("assistant", "complete", tool_calls=calls)
    frames = frames_after(dialog.pk, dialog.owner_id, 0) or []
    turns = [frame for frame in frames if frame["type"] == "turn"]
    assert len(turns) == 3
    assert all("html" in frame for frame in turns)
    assert [size for frame in frames if (size := len(orjson.dumps(frame))) > ONE_FRAME] == []
