"""PostgreSQL, Redis and the network under a running product: what is accepted survives them, and work goes on after."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from dialogs.models import Dialog
from dominds.web.probes import PROBE_TIMEOUT_SECONDS
from tests.faults.arena import SETTLED_SECONDS, Arena, Chatter
from tests.faults.effort import everything
from tests.faults.proxy import Toxics
from tests.harness.stack import eventually


def send(arena: Arena, dialog_id: str, text: str) -> tuple[int, Any, float]:
    """One POST: its status, its body, and the seconds it took."""
    started = time.monotonic()
    answer = arena.api.post(f"/api/dialogs/{dialog_id}/messages", json={"text": text})
    return answer.status_code, answer.json(), time.monotonic() - started


# -- Redis -------------------------------------------------------------------------------------------------------------


def test_redis_killed_and_started_again_empty(arena: Arena) -> None:
    talks = [arena.talk(words=40, every=0.1) for _ in range(3)]
    for talk in talks:
        arena.streaming(talk)
    arena.redis.kill()
    without = arena.talk(words=5)  # nobody can be woken now
    time.sleep(1)
    arena.redis.start()
    arena.settled()
    assert arena.breaches() == []
    assert {status for talk in [*talks, without] for status in talk.statuses} == {"answered"}
    assert [talk.outcomes for talk in talks] == [["kept"]] * 3, "losing Redis must not cost an attempt"
    after = arena.talk(words=5)
    arena.settled([after])


def test_a_message_is_accepted_fast_while_redis_is_frozen(arena: Arena) -> None:
    talk = arena.open()
    arena.redis.freeze()
    try:
        status, _, seconds = send(arena, talk.id, f"{talk.mark} hello")
        second = send(arena, talk.id, f"{talk.mark} hello again")
    finally:
        arena.redis.thaw()
    assert (status, second[0]) == (202, 202)
    assert max(seconds, second[2]) < 3
    arena.settled()
    assert talk.statuses == ["answered", "answered"]
    assert arena.breaches() == []


@everything
def test_an_answer_under_way_does_not_wait_for_a_frozen_redis(arena: Arena) -> None:
    talk = arena.talk(words=60, every=0.05)
    arena.streaming(talk)
    arena.redis.freeze()
    try:
        took = arena.settled([talk], seconds=30)
    finally:
        arena.redis.thaw()
    assert took < 3 + 20
    assert talk.outcomes == ["kept"]


def test_a_wake_that_is_lost_is_made_good_by_the_sweeper(arena: Arena) -> None:
    arena.redis_proxy.toxics = Toxics(refuse=True)
    arena.redis_proxy.reset_all()
    talk = arena.talk(words=3)
    time.sleep(1.5)
    arena.redis_proxy.heal()
    took = arena.settled([talk])
    assert talk.statuses == ["answered"]
    assert arena.breaches() == []
    print(f"answered {took:.1f} s after Redis came back")


@everything
def test_redis_half_open(arena: Arena) -> None:
    talks = [arena.talk(words=20, every=0.1)]
    arena.streaming(talks[0])
    arena.redis_proxy.toxics = Toxics(blackhole=True)
    talks.append(arena.talk(words=3))
    time.sleep(15)
    arena.redis_proxy.heal()
    assert arena.settled(talks, seconds=90) < 90
    assert arena.breaches() == []


@everything
def test_redis_slow(arena: Arena) -> None:
    arena.redis_proxy.toxics = Toxics(latency=0.2)
    talks = [arena.talk(words=20, every=0.05) for _ in range(3)]
    arena.settled(talks)
    assert [talk.outcomes for talk in talks] == [["kept"]] * 3
    assert arena.breaches() == []


@everything
def test_redis_out_of_memory(arena: Arena) -> None:
    with arena.redis.client() as client:
        before = client.config_get("maxmemory")["maxmemory"]
        client.config_set("maxmemory", "1mb")
        try:
            talks = [arena.talk(words=20) for _ in range(3)]
            time.sleep(2)
            took = arena.settled(talks, seconds=5) if _all_done(talks) else None
        finally:
            client.config_set("maxmemory", before)
    arena.settled(talks)
    print(f"answered with a full Redis: {took is not None}")
    assert {status for talk in talks for status in talk.statuses} == {"answered"}
    assert arena.breaches() == []


def _all_done(talks: Any) -> bool:
    return not Dialog.objects.filter(pk__in=[talk.id for talk in talks], state__in=["queued", "generating"]).exists()


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


def test_postgres_stopped_at_once_in_the_middle_and_started_again(arena: Arena) -> None:
    with Chatter(arena, 2, words=10, every=0.1) as people:
        time.sleep(3)
        arena.postgres.stop(signal.SIGQUIT)
        time.sleep(3)
        arena.postgres.start()
        # Each person has said two things and says the next two when they are answered.
        eventually(lambda: sum(len(talk.accepted) for talk in arena.talks) >= 6, seconds=30)
    arena.settled(seconds=SETTLED_SECONDS)
    assert people.problems == []
    assert arena.breaches() == []
    assert {status for talk in arena.talks for status in talk.statuses} == {"answered"}


def test_a_row_held_by_an_operator_delays_only_its_dialog(arena: Arena) -> None:
    held, other = arena.open(), arena.open()
    address = arena.postgres.tcp_url(arena.postgres.tcp_port or 0, "arena").replace("postgres:", "postgresql:")
    with psycopg.connect(address) as session:
        session.execute("SELECT 1 FROM dialogs_dialog WHERE id = %s FOR UPDATE", [held.id])
        status, body, seconds = send(arena, held.id, f"{held.mark} blocked")
        assert seconds < 5, "a request must not wait for ever"
        print(f"POST to the held row: {status} {body} after {seconds:.1f} s")
        assert send(arena, other.id, f"{other.mark} hello")[0] == 202
        arena.settled([other], seconds=10)
        session.rollback()
    arena.say(held)
    arena.settled()
    assert arena.breaches() == []


@everything
def test_postgres_frozen(arena: Arena) -> None:
    talks = [arena.talk(words=100, every=0.1) for _ in range(2)]
    for talk in talks:
        arena.streaming(talk)
    arena.postgres.freeze()
    time.sleep(15)
    arena.postgres.thaw()
    arena.settled(seconds=90)
    assert arena.breaches() == []
    assert {status for talk in talks for status in talk.statuses} == {"answered"}


@everything
@pytest.mark.parametrize("whole", [True, False], ids=["server", "postmaster"])
def test_probes_answer_within_their_bound_while_postgres_is_frozen(arena: Arena, whole: bool) -> None:
    """A balancer asks again and again: questions that hang must not use up the threads of those after them."""
    postmaster = arena.postgres.process
    assert postmaster is not None
    arena.postgres.freeze() if whole else postmaster.send_signal(signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(24) as pool:
            asked = [answer for _ in range(2) for answer in pool.map(lambda _: probe(arena, "/readyz"), range(24))]
        lives = probe(arena, "/livez")
    finally:
        arena.postgres.thaw()
        postmaster.send_signal(signal.SIGCONT)
    assert max(seconds for _, _, seconds in asked) < PROBE_TIMEOUT_SECONDS + 3
    if whole:  # else connections that were open before go on
        assert {(status, parts["redis"]) for status, parts, _ in asked} == {(503, "ok")}
        assert all(parts["database"].startswith("Unavailable: ") for _, parts, _ in asked)
    assert lives[0] == 200 and lives[2] < 2
    eventually(lambda: probe(arena, "/readyz")[0] == 200, 30)


def probe(arena: Arena, path: str) -> tuple[int, Any, float]:
    begun_at = time.monotonic()
    answer = arena.api.get(path, timeout=60)  # a client of its own each time would cost more than the answer
    body = answer.json() if path == "/readyz" else None
    return answer.status_code, body, time.monotonic() - begun_at


def test_connections_to_postgres_broken_by_the_network(arena: Arena) -> None:
    with Chatter(arena, 2, words=10, every=0.1) as people:
        for _ in range(6):
            time.sleep(1.7)
            arena.database_proxy.reset_all()
    arena.settled()
    assert people.problems == []
    assert arena.breaches() == []


@everything
def test_more_sessions_than_the_pool_holds(arena: Arena) -> None:
    """Long streams hold no connection, so many more of them run than there are connections."""
    talks = [arena.talk(words=50, every=0.1) for _ in range(24)]
    eventually(lambda: sum(bool(arena.provider.asked(talk.mark)) for talk in talks) == 24, 30)
    arena.settled()
    assert [talk.outcomes for talk in talks] == [["kept"]] * 24


# -- the web server ----------------------------------------------------------------------------------------------------


@everything
def test_the_web_server_killed_while_people_send(arena: Arena) -> None:
    with Chatter(arena, 2, words=5) as people:
        time.sleep(1.5)
        arena.stack.web.kill()
        arena.stack.wait_until_ready(arena.stack.start_web())
        time.sleep(1.5)
    arena.settled()
    assert people.problems == []
    assert arena.breaches() == []


@everything
def test_a_dialog_that_always_breaks_holds_up_no_other(arena: Arena) -> None:
    broken = arena.open()
    Dialog.objects.get(pk=broken.id).rounds.all().delete()
    arena.say(broken)
    others = [arena.talk(words=3) for _ in range(4)]
    arena.settled(others, seconds=15)
    arena.settled([broken], seconds=40)
    assert broken.statuses == ["failed"]
    arena.talks.remove(broken)
    assert arena.breaches(others) == []
