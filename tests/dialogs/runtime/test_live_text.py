"""The live text of an answer in Redis, which may lose it at any moment."""

import time
from typing import Any
from uuid import uuid4

import orjson
import pytest
from redis import Redis

from dialogs.runtime.live_text import LiveText, line_of, show_line
from dialogs.store.wakeups import LIVE_TEXT_CHANNEL, LIVE_TEXT_SECONDS, live_text_key
from dominds.redaction import MASK
from tests.harness.stack import eventually

GENERATION = 7


def say(live: LiveText, *words: str) -> None:
    for word in words:
        live.write(word)
        live.flush()


def test_a_draft_is_the_text_so_far_and_goes_by_itself(redis_client: Redis) -> None:
    say(LiveText(uuid4(), GENERATION), "Grüße ", "aus ", "\ud800 ", "Köln")
    assert redis_client.get(live_text_key(GENERATION)) == "Grüße aus ? Köln".encode()
    assert 0 < redis_client.ttl(live_text_key(GENERATION)) <= LIVE_TEXT_SECONDS


def test_a_text_that_redis_lost_returns_with_the_next_piece(
    redis_client: Redis,
) -> None:
    live = LiveText(uuid4(), GENERATION)
    say(live, "Grüße ", "aus ")
    redis_client.flushall()
    say(live, "Köln")
    eventually(lambda: redis_client.get(live_text_key(GENERATION)) == "Grüße aus Köln".encode())
    assert 0 < redis_client.ttl(live_text_key(GENERATION)) <= LIVE_TEXT_SECONDS


def test_the_time_that_a_text_has_left_tells_when_it_began(redis_client: Redis) -> None:
    live, before = LiveText(uuid4(), GENERATION), time.monotonic()
    say(live, "Grüße ")
    begun = time.monotonic()
    redis_client.flushall()
    time.sleep(0.3)
    say(live, "aus ")
    eventually(lambda: redis_client.get(live.key) == "Grüße aus ".encode())
    ago = LIVE_TEXT_SECONDS - redis_client.pttl(live.key) / 1000
    assert 0.29 < time.monotonic() - begun < ago + 0.01 < time.monotonic() - before + 0.02


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[2K\x1b[32mok\x1b[0m  12 %\n\n", "ok 12 %"),
        ("one\ntwo\r\n  three  ", "three"),
        ("Authorization: Bearer s3cret-000001", f"Authorization: Bearer {MASK}"),
        ("x" * 190 + " sk-" + "y" * 40, "x" * 190 + f" {MASK}"[:10]),
        ("x" * 1_000_000, "x" * 200),
        ("a\ud800b", "a?b"),
        ("", ""),
    ],
)
def test_a_tools_line_is_its_last_one_short_and_without_secrets(printed: str, shown: str) -> None:
    assert line_of(printed) == shown


def test_lines_are_published_four_times_a_second_and_stored_nowhere(redis_client: Redis) -> None:
    with redis_client.pubsub() as pubsub:
        pubsub.subscribe(LIVE_TEXT_CHANNEL)
        pubsub.get_message(timeout=2)
        dialog, ends_at = uuid4(), time.monotonic() + 1
        while time.monotonic() < ends_at:
            show_line(dialog, "call", f"at {time.monotonic()}")
            time.sleep(0.001)
        show_line(dialog, "call", "the last one")
        frames: list[Any] = []
        while not frames or frames[-1]["line"] != "the last one":
            message = pubsub.get_message(timeout=2)
            assert message is not None
            frames += orjson.loads(message["data"])
    assert 3 <= len(frames) <= 7 and {frame["dialog"] for frame in frames} == {str(dialog)}
    assert redis_client.keys("*") == []


def test_a_piece_that_redis_had_no_room_for_is_made_good(redis_client: Redis) -> None:
    live = LiveText(uuid4(), GENERATION)
    say(live, "one ")
    redis_client.config_set("maxmemory", "1")
    try:
        say(live, "two ")
        assert redis_client.get(live_text_key(GENERATION)) == b"one "
    finally:
        redis_client.config_set("maxmemory", "0")
    say(live, "three")
    assert redis_client.get(live_text_key(GENERATION)) == b"one two three"
