"""What the sockets of one dialog share: events are read and drawn once for all that need the same at the same time."""

import asyncio
import time
from typing import Any
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from dialogs.live.feeds import Drawing, Feed

pytestmark = pytest.mark.anyio
KEY = (1, "en", 7, None)
Frames = list[dict[str, Any]]


class Painter:
    """Draws the number of the drawing; it begins, and is done, when it is let."""

    def __init__(self) -> None:
        self.drawings = 0
        self.may_begin, self.may_end = asyncio.Event(), asyncio.Event()

    async def draw(self, drawing: Drawing) -> Frames:
        self.drawings += 1
        number = self.drawings
        await self.may_begin.wait()
        drawing.begun_at = time.monotonic()
        await self.may_end.wait()
        return [{"number": number}]


def feed() -> Feed:
    return Feed(uuid4(), Redis())


async def test_sockets_that_need_the_same_wait_for_one_drawing() -> None:
    painter, shared = Painter(), feed()
    asked = [shared.drawing(KEY, time.monotonic(), painter.draw) for _ in range(5)]
    painter.may_begin.set()
    painter.may_end.set()
    assert [await drawing.frames for drawing in asked] == [[{"number": 1}]] * 5


async def test_another_person_language_or_place_has_a_drawing_of_its_own() -> None:
    painter, shared = Painter(), feed()
    painter.may_begin.set()
    painter.may_end.set()
    for key in (KEY, (2, "en", 7, None), (1, "zh-hans", 7, None), (1, "en", 8, None), (1, "en", 7, "other")):
        await shared.drawing(key, time.monotonic(), painter.draw).frames
    assert painter.drawings == 5


async def test_what_was_announced_after_a_drawing_began_is_drawn_anew() -> None:
    painter, shared = Painter(), feed()
    before = time.monotonic()
    first = shared.drawing(KEY, before, painter.draw)
    painter.may_begin.set()
    await asyncio.sleep(0)
    assert shared.drawing(KEY, before, painter.draw) is first
    await asyncio.sleep(0.01)
    assert shared.drawing(KEY, time.monotonic(), painter.draw) is not first


async def test_a_failed_drawing_is_tried_again_by_whoever_comes_next() -> None:
    async def fail(drawing: Drawing) -> Frames:
        drawing.begun_at = time.monotonic()
        raise TimeoutError

    painter, shared, before = Painter(), feed(), time.monotonic()
    with pytest.raises(TimeoutError):
        await shared.drawing(KEY, before, fail).frames
    await asyncio.sleep(0.01)
    painter.may_begin.set()
    painter.may_end.set()
    assert await shared.drawing(KEY, before, painter.draw).frames == [{"number": 1}]
