"""The sockets of pages, against the real Redis and database: nothing missed, nothing twice, nobody else's."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.test import Client
from redis import Redis

from dialogs.actions import messages, questions, sharing
from dialogs.live import consumers
from dialogs.live.consumers import ASK_BYTES, UNREAD_BYTES
from dialogs.live.hub import SOCKETS_PER_PERSON
from dialogs.models import Dialog, Event, Generation, Turn
from dialogs.runtime.driver import drive
from dialogs.store import wakeups
from dialogs.tools.human import ASK_HUMAN
from dominds.asgi import application
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, make_operator
from tests.harness.browser import session_key

pytestmark = pytest.mark.django_db(transaction=True)
Frame = dict[str, Any]
PATIENCE_SECONDS = 8


def go(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario on an event loop of its own."""
    asyncio.run(asyncio.wait_for(scenario(), 60))  # type: ignore[arg-type]


async def rows(function: Callable[..., Any], *arguments: Any) -> Any:
    """Database work beside the loop; its thread gives the connection back."""

    def work() -> Any:
        try:
            return function(*arguments)
        finally:
            connection.close()

    return await asyncio.to_thread(work)


def socket(path: str, user: User | None, origin: str = "http://127.0.0.1", key: str = "") -> WebsocketCommunicator:
    cookie = f"{settings.SESSION_COOKIE_NAME}={key or session_key(user)}" if user or key else ""
    headers = [(b"host", b"127.0.0.1"), (b"origin", origin.encode()), (b"cookie", cookie.encode())]
    return WebsocketCommunicator(application, path, headers=headers)


@asynccontextmanager
async def listening(path: str, user: User) -> AsyncIterator[WebsocketCommunicator]:
    page = await rows(socket, path, user)
    connected, _ = await page.connect(timeout=PATIENCE_SECONDS)
    assert connected
    try:
        yield page
    finally:
        await page.disconnect(timeout=PATIENCE_SECONDS)


async def frames_until(page: WebsocketCommunicator, wanted: Callable[[Frame], bool]) -> list[Frame]:
    """Everything that arrives up to the first frame that is wanted; acknowledges as a page does."""
    seen: list[Frame] = []
    while not seen or not wanted(seen[-1]):
        frame = orjson.loads(await page.receive_from(timeout=PATIENCE_SECONDS))
        if frame["type"] == "ping":
            await page.send_to(text_data=orjson.dumps({"type": "ack", "n": frame["n"]}).decode())
        else:
            seen.append(frame)
    return seen


def path_of(dialog: Dialog, after: int = 0) -> str:
    return f"/ws/dialogs/{dialog.pk}/?after={after}"


def is_state(state: str) -> Callable[[Frame], bool]:
    return lambda frame: frame["type"] == "state" and frame["data"]["state"] == state


def events_of(frames: list[Frame]) -> list[Frame]:
    return [frame for frame in frames if "seq" in frame]


def answer(dialog: Dialog, text: str = "Hi") -> None:
    messages.post_message(dialog.pk, text)
    drive(dialog.pk)


@pytest.mark.parametrize("who", ["nobody", "a stranger", "nobody's dialog", "a forged session"])
def test_who_may_not_see_the_dialog_gets_no_socket(script: Script, who: str) -> None:
    dialog = make_dialog()
    path = path_of(dialog)
    if who == "nobody's dialog":
        path = "/ws/dialogs/00000000-0000-4000-8000-000000000000/"
    user = {"nobody": None, "a forged session": None}.get(who, UserFactory.create())
    page = socket(path, user, key="forged" if who == "a forged session" else "")

    async def scenario() -> None:
        connected, _ = await page.connect(timeout=PATIENCE_SECONDS)
        assert not connected

    go(scenario)


def test_owner_and_staff_see_the_dialog(script: Script) -> None:
    dialog = make_dialog()
    answer(dialog)
    for user in (dialog.owner, make_operator()):

        async def scenario(user: User = user) -> None:
            async with listening(path_of(dialog), user) as page:
                frames = await frames_until(page, is_state("idle"))
            assert [frame["type"] for frame in events_of(frames)].count("turn") >= 2

        go(scenario)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "http://127.0.0.1.evil.example", "http://127.0.0.1:81"]
)
def test_another_sites_page_gets_no_socket(script: Script, origin: str) -> None:
    dialog = make_dialog()
    page = socket(path_of(dialog), dialog.owner, origin=origin)

    async def scenario() -> None:
        connected, _ = await page.connect(timeout=PATIENCE_SECONDS)
        assert not connected

    go(scenario)


def test_a_socket_brings_every_event_after_its_cursor_once_and_in_order(script: Script) -> None:
    dialog = make_dialog()
    answer(dialog)
    last = Dialog.objects.get(pk=dialog.pk).last_event_seq

    async def scenario() -> None:
        for after in (0, 3, last - 1):
            async with listening(path_of(dialog, after), dialog.owner) as page:
                frames = events_of(await frames_until(page, lambda frame: frame.get("seq") == last))
            assert [frame["seq"] for frame in frames] == list(range(after + 1, last + 1))

    go(scenario)


def test_html_comes_beside_the_data_and_shows_what_the_page_shows(script: Script) -> None:
    script({"text": "**bold**"})
    dialog = make_dialog()
    answer(dialog, "<b>Hi</b>")

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            frames = await frames_until(page, is_state("idle"))
        turns = {frame["data"]["seq"]: frame for frame in frames if frame["type"] == "turn"}
        assert turns[1]["data"]["text"] == "<b>Hi</b>"
        html = "".join(frame.get("html", "") for frame in frames)
        assert "&lt;b&gt;Hi&lt;/b&gt;" in html
        assert "<strong>bold</strong>" in html

    go(scenario)


def test_each_page_of_a_person_gets_pieces_and_badges_in_its_own_language(script: Script) -> None:
    dialog = make_dialog()
    answer(dialog)
    path = path_of(dialog)

    async def scenario() -> None:
        async with listening(path, dialog.owner) as english, listening(f"{path}&lang=zh-Hans", dialog.owner) as chinese:
            for page, state, badge in ((english, "Idle", "Needs you"), (chinese, "空闲", "需要您处理")):
                frames = await frames_until(page, is_state("idle"))
                assert f"</span>{state}</span>" in frames[-1]["html"]
                if not (badges := [frame for frame in frames if frame["type"] == "badges"]):
                    badges = (await frames_until(page, lambda frame: frame["type"] == "badges"))[-1:]
                assert {row[2] for row in badges[-1]["dialogs"]} == {state}
                assert badge in badges[-1]["html"]

    go(scenario)


def drafted(frames: list[Frame]) -> str:
    """The text as a page puts it together from drafts: by position, from the last beginning on."""
    text = ""
    for frame in frames:
        if frame["type"] == "draft":
            if frame.get("reset"):
                text = ""
            if frame["pos"] == len(text):
                text += frame["text"]
            assert frame["end"] <= len(text)
    return text


def test_a_running_answer_streams_whole_and_its_turn_says_the_same(script: Script) -> None:
    text = "".join(f"Word {number} 😀, and more.\n\n" for number in range(40))
    script({"text": text, "chunk_delay_ms": 8})
    dialog = make_dialog()

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await rows(messages.post_message, dialog.pk, "Go")
            driver = threading.Thread(target=lambda: (drive(dialog.pk), connection.close()))
            driver.start()
            begun = await frames_until(page, lambda frame: frame["type"] == "draft" and frame["end"] > 100)
            async with listening(path_of(dialog), dialog.owner) as late_page:  # a second tab, in the middle
                late = await frames_until(late_page, is_state("idle"))
            frames = begun + await frames_until(page, is_state("idle"))
            await rows(driver.join)
        for seen in (frames, late):
            turn = next(frame for frame in seen if frame["type"] == "turn" and frame["data"]["role"] == "assistant")
            assert turn["data"]["text"] == text
            assert text.startswith(drafted(seen))
            assert len(drafted(seen)) > len(text) // 2
        assert any(frame.get("reset") for frame in late)
        assert any(frame.get("block") and "<p>Word" in frame["html"] for frame in frames)
        order = [frame["type"] for frame in frames]
        ends = next(at for at, frame in enumerate(frames) if frame.get("data", {}).get("role") == "assistant")
        assert order.index("draft") < ends
        assert "draft" not in order[ends:]  # no draft outlives its turn

    go(scenario)


def thought(frames: list[Frame]) -> str:
    """The reasoning as a page puts it together, by position, from the last beginning on."""
    text = ""
    for frame in frames:
        if frame["type"] == "draft" and "reasoning" in frame:
            if frame.get("reset"):
                text = ""
            assert frame["reasoning_pos"] <= len(text)
            text = text[: frame["reasoning_pos"]] + frame["reasoning"]
    return text


def test_reasoning_streams_beside_the_text_and_stays_with_the_turn(script: Script) -> None:
    reasoning = "".join(f"Step {number} 🤔, then.\n" for number in range(30))
    script({"reasoning": reasoning, "text": "So it is **four**.", "chunk_delay_ms": 20})
    dialog = make_dialog()

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await rows(messages.post_message, dialog.pk, "Go")
            driver = threading.Thread(target=lambda: (drive(dialog.pk), connection.close()))
            driver.start()
            begun = await frames_until(page, lambda frame: frame.get("reasoning_pos", 0) > 20)
            assert drafted(begun) == ""
            async with listening(path_of(dialog), dialog.owner) as late_page:  # a second tab, in the middle
                late = await frames_until(late_page, is_state("idle"))
            frames = begun + await frames_until(page, is_state("idle"))
            await rows(driver.join)
        for seen in (frames, late):
            assert thought(seen) == reasoning
            assert "So it is **four**.".startswith(drafted(seen))
            turn = next(frame for frame in seen if frame["type"] == "turn" and frame["data"]["role"] == "assistant")
            assert turn["data"]["text"] == "So it is **four**."
            assert "reasoning" not in turn["data"], "it is in the HTML"
            assert '<details class="reasoning" id="reasoning-2"><summary>' in turn["html"]
            assert "Step 29 🤔, then." in turn["html"]
        kept = Turn.objects.get(dialog=dialog, role="assistant").reasoning
        assert (kept["text"], kept["ms"] >= 20) == (reasoning.strip(), True)

    go(scenario)


def begin_generation(dialog: Dialog, ended: int = 0) -> int:
    """Store that a generation runs, after the end of another if there is one, and tell nobody. Its number."""
    Generation.objects.filter(pk=ended).update(outcome="kept")
    newest = Generation.objects.filter(dialog=dialog).order_by("-pk")[0]
    newest.pk, newest.outcome = None, "running"
    newest.save(force_insert=True)
    seq = Dialog.objects.get(pk=dialog.pk).last_event_seq
    for generation, outcome in [(ended, "kept")] * bool(ended) + [(newest.pk, "running")]:
        seq += 1
        message = {"id": generation, "purpose": "reply", "attempt": 1, "outcome": outcome}
        Event.objects.create(dialog=dialog, seq=seq, type="generation", data=message)
    Dialog.objects.filter(pk=dialog.pk).update(last_event_seq=seq)
    return int(newest.pk)


async def write_draft(redis: Redis, dialog: Dialog, generation: int, *pieces: tuple[int, str]) -> None:
    for pos, text in pieces:
        draft = {"dialog": str(dialog.pk), "generation": generation, "pos": pos, "text": text}
        await rows(redis.publish, wakeups.LIVE_TEXT_CHANNEL, orjson.dumps([draft]))


def test_live_text_brings_the_event_of_its_generation(script: Script, redis_client: Redis) -> None:
    dialog = make_dialog()
    answer(dialog)

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await frames_until(page, is_state("idle"))
            generation = await rows(begin_generation, dialog)
            await write_draft(redis_client, dialog, generation, (0, "Good "))
            frames = await frames_until(page, lambda frame: frame["type"] == "generation")
            await write_draft(redis_client, dialog, generation, (5, "morning"))
            frames += await frames_until(page, lambda frame: frame["type"] == "draft" and frame["end"] == 12)
        frames = [frame for frame in frames if frame["type"] != "badges"]
        assert [frame["type"] for frame in frames] == ["draft", "generation", "draft"]
        assert drafted(frames) == "Good morning"

    go(scenario)


def test_live_text_takes_the_place_of_another_only_after_the_end_of_that(script: Script, redis_client: Redis) -> None:
    dialog = make_dialog()
    answer(dialog)

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await frames_until(page, is_state("idle"))
            first = await rows(begin_generation, dialog)
            await write_draft(redis_client, dialog, first, (0, "Let me look."))
            frames = await frames_until(page, lambda frame: frame["type"] == "generation")
            second = await rows(begin_generation, dialog, first)
            await write_draft(redis_client, dialog, second, (0, "Found "), (6, "it."))
            frames += await frames_until(page, lambda frame: frame["type"] == "draft" and frame["end"] == 9)
        messages = [
            (frame["type"], frame.get("generation") or frame["data"]["id"])
            for frame in frames
            if frame["type"] != "badges"
        ]
        assert messages.index(("draft", second)) > max(
            at for at, one in enumerate(messages) if one == ("generation", first)
        )
        assert drafted([frame for frame in frames if frame.get("generation") == second]) == "Found it."

    go(scenario)


def test_a_cursor_from_another_life_is_told_to_start_over(script: Script) -> None:
    dialog = make_dialog()
    answer(dialog)
    last = Dialog.objects.get(pk=dialog.pk).last_event_seq

    async def scenario() -> None:
        async with listening(path_of(dialog, after=99_999), dialog.owner) as page:
            frames = await frames_until(page, lambda frame: frame["type"] == "resync")
        assert frames[-1]["seq"] == last

    go(scenario)


def test_what_redis_lost_is_read_from_the_database(script: Script, redis_client: Redis) -> None:
    """The subscription is cut, and messages are sent while nobody listens: all of them arrive, each once."""
    dialog = make_dialog()

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await rows(answer, dialog, "first")
            frames = await frames_until(page, is_state("idle"))
            await rows(lambda: redis_client.client_kill_filter(_type="pubsub"))
            await rows(answer, dialog, "second")
            frames += await frames_until(page, is_state("idle"))
        seqs = [frame["seq"] for frame in events_of(frames)]
        assert seqs == list(range(1, len(seqs) + 1))
        assert "second" in [frame["data"]["text"] for frame in frames if frame["type"] == "turn"]

    go(scenario)


def test_a_page_that_stops_reading_costs_no_memory_and_misses_nothing(script: Script) -> None:
    dialog = make_dialog()
    for number in range(12):
        messages.post_message(dialog.pk, f"{number} " + "x" * 60_000)

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await page.send_to(text_data='{"type":"ack","n":0}')
            unread: list[Frame] = []
            size = 0
            while not await page.receive_nothing(timeout=1.5, interval=0.05):
                text = await page.receive_from()
                size += len(text)
                unread.append(orjson.loads(text))
            assert size < UNREAD_BYTES + 300_000  # one frame may overshoot
            assert len(events_of(unread)) < 12
            await page.send_to(text_data=orjson.dumps({"type": "ack", "n": size}).decode())
            last = await rows(lambda: Dialog.objects.get(pk=dialog.pk).last_event_seq)
            rest = await frames_until(page, lambda frame: frame.get("seq") == last)
            assert [frame["seq"] for frame in events_of(unread + rest)] == list(range(1, last + 1))

    go(scenario)


def test_a_page_that_reads_is_asked_before_it_would_be_waited_for(script: Script) -> None:
    """So it never waits for a tick of two seconds until it may go on."""
    dialog = make_dialog()
    for number in range(12):
        messages.post_message(dialog.pk, f"{number} " + "x" * 30_000)
    last = Dialog.objects.get(pk=dialog.pk).last_event_seq

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await page.send_to(text_data='{"type":"ack","n":0}')
            unasked, longest, seq = 0, 0, 0
            while seq < last:
                text = await page.receive_from(timeout=PATIENCE_SECONDS)
                frame = orjson.loads(text)
                unasked, longest = unasked + len(text), max(longest, len(text))
                assert unasked <= ASK_BYTES + longest
                if frame["type"] == "ping":
                    unasked = 0
                    await page.send_to(text_data=orjson.dumps({"type": "ack", "n": frame["n"]}).decode())
                seq = frame.get("seq", seq)

    go(scenario)


def test_the_end_of_an_answer_is_not_gathered(
    script: Script, redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialog = make_dialog()
    answer(dialog)

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await frames_until(page, is_state("idle"))
            await asyncio.sleep(1.1)  # within a second after it subscribed the hub looks once by itself
            monkeypatch.setattr(consumers, "GATHER_SECONDS", 60)
            generation = await rows(begin_generation, dialog)
            await write_draft(redis_client, dialog, generation, (0, "Good "))
            await frames_until(page, lambda frame: frame["type"] == "generation")
            await rows(begin_generation, dialog, generation)  # which ends it
            seq = await rows(lambda: Dialog.objects.get(pk=dialog.pk).last_event_seq)
            await rows(redis_client.publish, wakeups.dialog_channel(dialog.pk), orjson.dumps({"seq": seq}))
            frames = await frames_until(page, lambda frame: frame.get("seq") == seq)
        assert [frame["data"]["outcome"] for frame in events_of(frames)] == ["kept", "running"]

    go(scenario)


def test_each_page_of_a_dialog_gets_every_event_once(script: Script) -> None:
    dialog = make_dialog()
    answer(dialog)
    last = Dialog.objects.get(pk=dialog.pk).last_event_seq

    async def scenario() -> None:
        path = path_of(dialog, last)
        async with listening(path, dialog.owner) as one, listening(path, dialog.owner) as other:
            await rows(answer, dialog, "Again")
            first, second = [events_of(await frames_until(page, is_state("idle"))) for page in (one, other)]
        every = list(range(last + 1, last + 1 + len(first)))
        assert [frame["seq"] for frame in first] == [frame["seq"] for frame in second] == every

    go(scenario)


@pytest.mark.parametrize("text", ["not json", "[]", '{"type":"ack"}', '{"type":"ack","n":"x"}', '{"type":1}', "5"])
def test_nonsense_from_a_page_is_ignored(script: Script, text: str) -> None:
    dialog = make_dialog()

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await page.send_to(text_data=text)
            await rows(messages.post_message, dialog.pk, "Hi")
            await frames_until(page, lambda frame: frame["type"] == "turn")

    go(scenario)


def test_logging_out_closes_the_sockets_of_that_session_only(script: Script) -> None:
    dialog = make_dialog()
    browser, other = Client(), Client()
    browser.force_login(dialog.owner)
    other.force_login(dialog.owner)

    async def scenario() -> None:
        here = socket(path_of(dialog), None, key=browser.session.session_key or "")
        there = socket(path_of(dialog), None, key=other.session.session_key or "")
        for page in (here, there):
            assert (await page.connect(timeout=PATIENCE_SECONDS))[0]
            await frames_until(page, lambda frame: frame["type"] == "badges")
        await rows(browser.post, "/logout/")
        closed = await here.receive_output(timeout=5)
        while closed["type"] == "websocket.send":
            closed = await here.receive_output(timeout=5)
        assert (closed["type"], closed["code"]) == ("websocket.close", 4401)
        await rows(messages.post_message, dialog.pk, "still here")
        await frames_until(there, lambda frame: frame["type"] == "turn")
        await here.disconnect()
        await there.disconnect()

    go(scenario)


def test_who_leaves_the_group_of_a_dialog_gets_no_more_of_it(script: Script) -> None:
    dialog, member = make_dialog(), UserFactory.create()
    group = Group.objects.create(name="Harbour")
    group.user_set.set([dialog.owner, member])
    sharing.share(dialog.pk, "Harbour", dialog.owner)

    async def scenario() -> None:
        async with listening(path_of(dialog), member) as page:
            await rows(answer, dialog)
            await frames_until(page, is_state("idle"))
            await rows(group.user_set.remove, member)
            await rows(messages.post_message, dialog.pk, "among ourselves")
            closed = await page.receive_output(timeout=PATIENCE_SECONDS)
            while closed["type"] == "websocket.send":
                assert "among ourselves" not in closed["text"]
                closed = await page.receive_output(timeout=PATIENCE_SECONDS)
            assert (closed["type"], closed["code"]) == ("websocket.close", 4404)

    go(scenario)


def test_a_changed_password_closes_the_sockets_of_other_sessions(script: Script) -> None:
    dialog = make_dialog()

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await frames_until(page, lambda frame: frame["type"] == "badges")

            def change_password() -> None:
                dialog.owner.set_password("another long password")
                dialog.owner.save()
                wakeups.client().publish(wakeups.user_channel(dialog.owner.pk), b'{"recheck": true}')

            await rows(change_password)
            closed = await page.receive_output(timeout=5)
            assert (closed["type"], closed["code"]) == ("websocket.close", 4401)

    go(scenario)


def test_open_sockets_of_a_person_are_limited(script: Script) -> None:
    user = UserFactory.create()

    async def scenario() -> None:
        pages = [await rows(socket, "/ws/me/", user) for _ in range(SOCKETS_PER_PERSON + 2)]
        for page in pages[:SOCKETS_PER_PERSON]:
            assert (await page.connect(timeout=PATIENCE_SECONDS))[0]
        assert not (await pages[-2].connect(timeout=PATIENCE_SECONDS))[0]
        await pages[0].disconnect(timeout=PATIENCE_SECONDS)
        assert (await pages[-1].connect(timeout=PATIENCE_SECONDS))[0]
        for page in [*pages[1:SOCKETS_PER_PERSON], pages[-1]]:
            await page.disconnect(timeout=PATIENCE_SECONDS)

    go(scenario)


def test_a_question_shows_on_every_page_of_the_person(script: Script) -> None:
    script({"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "Which one?"}}]}, {"text": "ok"})
    dialog = make_dialog()

    async def scenario() -> None:
        async with listening("/ws/me/", dialog.owner) as page:
            assert (await frames_until(page, lambda frame: frame["type"] == "badges"))[-1]["questions"] == 0
            await rows(answer, dialog)
            badges = (await frames_until(page, lambda frame: frame.get("questions") == 1))[-1]
            assert badges["newest"]["text"] == "Which one?"
            assert "(1)" in badges["html"]
            question = await rows(lambda: questions.open_questions(dialog.owner).get())
            await rows(questions.answer, question.pk, dialog.owner, "that")
            await rows(drive, dialog.pk)
            await frames_until(page, lambda frame: frame.get("questions") == 0)

    go(scenario)


def test_a_queued_message_has_no_place_yet_and_gets_one_later(script: Script) -> None:
    dialog = make_dialog()
    messages.post_message(dialog.pk, "first")
    messages.post_message(dialog.pk, "second")

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            frames = await frames_until(page, lambda frame: "second" in frame.get("html", ""))
            assert 'id="queued"' in frames[-1]["html"]
            assert 'id="turn-2"' not in frames[-1]["html"]
            await rows(drive, dialog.pk)
            frames = await frames_until(page, is_state("idle"))
            assert any('id="turn-2"' in frame.get("html", "") for frame in frames)
        statuses = await rows(
            lambda: set(Turn.objects.filter(dialog=dialog, role="user").values_list("status", flat=True))
        )
        assert statuses == {"answered"}

    go(scenario)


def test_a_session_that_vanished_is_no_login(script: Script) -> None:
    dialog = make_dialog()
    key = session_key(dialog.owner)
    SessionStore(key).delete()
    page = socket(path_of(dialog), None, key=key)

    async def scenario() -> None:
        assert not (await page.connect(timeout=PATIENCE_SECONDS))[0]

    go(scenario)
