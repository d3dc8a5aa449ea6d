"""What the sockets of one dialog share: events are read and rendered once for all that need the
same at the same time."""

import asyncio
import time
from typing import Any
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from dialogs.live.feeds import Feed, Rendering

pytestmark = pytest.mark.anyio
KEY = (1, "en", 7, None)
Frames = list[dict[str, Any]]


class Renderer:
    """Renders the number of the rendering; begins and ends when it may."""

    def __init__(self) -> None:
        self.renderings = 0
        self.may_begin, self.may_end = asyncio.Event(), asyncio.Event()

    async def render(self, rendering: Rendering) -> Frames:
        self.renderings += 1
        number = self.renderings
        await self.may_begin.wait()
        rendering.begun_at = time.monotonic()
        await self.may_end.wait()
        return [{"number": number}]


def feed() -> Feed:
    return Feed(uuid4(), Redis())


async def test_sockets_that_need_the_same_wait_for_one_rendering() -> None:
    renderer, shared = Renderer(), feed()
    asked = [shared.rendering(KEY, time.monotonic(), renderer.render) for _ in range(5)]
    renderer.may_begin.set()
    renderer.may_end.set()
    assert [await rendering.frames for rendering in asked] == [[{"number": 1}]] * 5


async def test_another_person_language_or_place_has_a_rendering_of_its_own() -> None:
    renderer, shared = Renderer(), feed()
    renderer.may_begin.set()
    renderer.may_end.set()
    for key in (KEY, (2, "en", 7, None), (1, "zh-hans", 7, None), (1, "en", 8, None), (1, "en", 7, "other")):
        await shared.rendering(key, time.monotonic(), renderer.render).frames
    assert renderer.renderings == 5


async def test_what_was_announced_after_a_rendering_began_is_rendered_anew() -> None:
    renderer, shared = Renderer(), feed()
    before = time.monotonic()
    first = shared.rendering(KEY, before, renderer.render)
    renderer.may_begin.set()
    await asyncio.sleep(0)
    assert shared.rendering(KEY, before, renderer.render) is first
    await asyncio.sleep(0.01)
    assert shared.rendering(KEY, time.monotonic(), renderer.render) is not first


async def test_a_failed_rendering_is_tried_again_by_whoever_comes_next() -> None:
    async def fail(rendering: Rendering) -> Frames:
        rendering.begun_at = time.monotonic()
        raise TimeoutError

    renderer, shared, before = Renderer(), feed(), time.monotonic()
    with pytest.raises(TimeoutError):
        await shared.rendering(KEY, before, fail).frames
    await asyncio.sleep(0.01)
    renderer.may_begin.set()
    renderer.may_end.set()
    assert await shared.rendering(KEY, before, renderer.render).frames == [{"number": 1}]
