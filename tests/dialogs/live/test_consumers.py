"""The sockets of pages, against the real Redis and database: nothing missed, nothing twice, nobody else's."""

import asyncio
import re
from typing import Any

import orjson
import pytest
from channels.testing import WebsocketCommunicator
from redis import Redis

from dialogs.actions import messages, questions
from dialogs.actions.questions import ASK_HUMAN
from dialogs.live import consumers
from dialogs.live.feeds import current_live_text
from dialogs.live.flow_control import PING_BYTES, UNREAD_BYTES
from dialogs.live.hub import hub
from dialogs.models import Dialog, Event, Generation, Turn
from dialogs.runtime.driver import drive
from dialogs.store import wakeups
from tests.dialogs.actions.driving import Driving
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog
from tests.dialogs.html_tree import in_one_line
from tests.dialogs.live.sockets import (
    PATIENCE_SECONDS,
    Frame,
    answer,
    events_of,
    frames_until,
    go,
    is_state,
    listening,
    path_of,
    rows,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_socket_sends_each_later_event_once_in_order(script: Script) -> None:
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


def test_each_page_gets_pieces_in_its_own_language(script: Script) -> None:
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
            driving = Driving(dialog.pk)
            begun = await frames_until(page, lambda frame: frame["type"] == "draft" and frame["end"] > 100)
            async with listening(path_of(dialog), dialog.owner) as late_page:  # a second tab, in the middle
                late = await frames_until(late_page, is_state("idle"))
            frames = begun + await frames_until(page, is_state("idle"))
            await rows(driving.end)
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
    script({"reasoning": reasoning, "text": "So it is **four**.", "chunk_delay_ms": 60})
    dialog = make_dialog()

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await rows(messages.post_message, dialog.pk, "Go")
            driving = Driving(dialog.pk)
            begun = await frames_until(page, lambda frame: frame.get("reasoning_pos", 0) > 60)
            assert drafted(begun) == ""
            elsewhere = await rows(current_live_text, dialog.pk)  # as another web process, or a page that polls, has it
            async with listening(path_of(dialog), dialog.owner) as late_page:  # a second tab, in the middle
                late = await frames_until(late_page, is_state("idle"))
            frames = begun + await frames_until(page, is_state("idle"))
            await rows(driving.end)
        seconds = [frame["reasoning_seconds"] for frame in begun if frame.get("reasoning")]
        assert seconds[-1] > 0 and seconds == sorted(seconds)
        assert elsewhere is not None and seconds[-1] - 0.1 <= elsewhere["reasoning_seconds"] < 60
        assert next(frame for frame in late if frame.get("reasoning"))["reasoning_seconds"] >= seconds[-1]
        for seen in (frames, late):
            assert thought(seen) == reasoning
            assert "So it is **four**.".startswith(drafted(seen))
            turn = next(frame for frame in seen if frame["type"] == "turn" and frame["data"]["role"] == "assistant")
            assert turn["data"]["text"] == "So it is **four**."
            assert "reasoning" not in turn["data"], "it is in the HTML"
            assert re.search('<details class="reasoning" id="reasoning-2"> ?<summary>', in_one_line(turn["html"]))
            assert "Step 29 🤔, then." in turn["html"]

    go(scenario)
    kept = Turn.objects.get(dialog=dialog, role="assistant").reasoning
    assert kept is not None
    assert (kept["text"], kept["ms"] >= 20) == (reasoning.strip(), True)


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


def test_live_text_brings_its_generations_event_and_waits_for_it(script: Script, redis_client: Redis) -> None:
    dialog = make_dialog()
    answer(dialog)

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await frames_until(page, is_state("idle"))
            generation = await rows(begin_generation, dialog)
            await write_draft(redis_client, dialog, generation, (0, "Good "))
            frames = await frames_until(page, lambda frame: frame["type"] == "draft")
            await write_draft(redis_client, dialog, generation, (5, "morning"))
            frames += await frames_until(page, lambda frame: frame["type"] == "draft" and frame["end"] == 12)
        frames = [frame for frame in frames if frame["type"] != "badges"]
        assert [frame["type"] for frame in frames] == ["generation", "draft", "draft"]
        assert drafted(frames) == "Good morning"

    go(scenario)


def test_live_text_follows_only_after_the_answer_before(script: Script, redis_client: Redis) -> None:
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


def test_a_page_that_goes_before_redis_answers_leaves_nothing_behind(script: Script, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    dialog = make_dialog()

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner):
            await asyncio.sleep(0.1)
            assert vars(hub())["_feeds"], "it waits for the subscription"
        assert vars(hub())["_feeds"] == vars(hub())["_people"] == {}

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


def test_a_reading_page_is_pinged_before_it_is_waited_for(script: Script) -> None:
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
                assert unasked <= PING_BYTES + longest
                if frame["type"] == "ping":
                    unasked = 0
                    await page.send_to(text_data=orjson.dumps({"type": "ack", "n": frame["n"]}).decode())
                seq = frame.get("seq", seq)

    go(scenario)


async def rest(page: WebsocketCommunicator) -> None:
    """Wait until nothing more comes: within a second after a socket subscribed the hub looks once by itself."""
    await frames_until(page, is_state("idle"))
    await asyncio.sleep(1.1)


async def announce(redis: Redis, dialog: Dialog) -> int:
    """Tell of the dialog's newest event; its number."""
    seq: int = await rows(lambda: Dialog.objects.get(pk=dialog.pk).last_event_seq)
    await rows(redis.publish, wakeups.dialog_channel(dialog.pk), orjson.dumps({"seq": seq}))
    return seq


def test_the_end_of_an_answer_is_not_gathered(
    script: Script, redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialog = make_dialog()
    answer(dialog)

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await rest(page)
            monkeypatch.setattr(consumers, "BATCH_SECONDS", 60)
            generation = await rows(begin_generation, dialog)
            await write_draft(redis_client, dialog, generation, (0, "Good "))
            await frames_until(page, lambda frame: frame["type"] == "generation")
            await rows(begin_generation, dialog, generation)  # which ends it
            seq = await announce(redis_client, dialog)
            frames = await frames_until(page, lambda frame: frame.get("seq") == seq)
        assert [frame["data"]["outcome"] for frame in events_of(frames)] == ["kept", "running"]

    go(scenario)


def test_live_text_ends_the_gathering_of_the_events_before_it(
    script: Script, redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialog = make_dialog()
    answer(dialog)

    async def scenario() -> None:
        async with listening(path_of(dialog), dialog.owner) as page:
            await rest(page)
            monkeypatch.setattr(consumers, "BATCH_SECONDS", 60)
            generation = await rows(begin_generation, dialog)
            await announce(redis_client, dialog)
            await asyncio.sleep(0.3)
            await write_draft(redis_client, dialog, generation, (0, "Good "))
            frames = await frames_until(page, lambda frame: frame["type"] == "draft")
        assert [frame["type"] for frame in frames if frame["type"] != "badges"] == ["generation", "draft"]

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


def test_a_question_shows_on_every_page_of_the_person(script: Script) -> None:
    script({"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "Which one?"}}]}, {"text": "ok"})
    dialog = make_dialog()

    async def scenario() -> None:
        async with listening("/ws/me/", dialog.owner) as page:
            assert (await frames_until(page, lambda frame: frame["type"] == "badges"))[-1]["questions"] == 0
            await rows(answer, dialog)
            badges = (await frames_until(page, lambda frame: frame.get("questions") == 1))[-1]
            assert badges["newest"]["text"] == "Which one?"
            assert '<span class="badge-count">1</span>' in badges["html"]
            question = await rows(lambda: questions.questions_of(dialog.owner).get())
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
