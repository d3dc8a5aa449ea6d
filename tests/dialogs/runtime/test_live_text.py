"""The live text of an answer in Redis, which may lose it at any moment."""

from uuid import uuid4

from redis import Redis

from dialogs.runtime.live_text import LiveText
from dialogs.store.wakeups import LIVE_TEXT_SECONDS, live_text_key
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


def test_a_text_that_redis_lost_is_whole_again_with_the_next_piece(
    redis_client: Redis,
) -> None:
    live = LiveText(uuid4(), GENERATION)
    say(live, "Grüße ", "aus ")
    redis_client.flushall()
    say(live, "Köln")
    eventually(lambda: redis_client.get(live_text_key(GENERATION)) == "Grüße aus Köln".encode())
    assert 0 < redis_client.ttl(live_text_key(GENERATION)) <= LIVE_TEXT_SECONDS


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
