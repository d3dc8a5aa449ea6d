"""Compaction as programs ask for it: the rewrite of the page, in the dialog of the conversation, and what stands for it
when it comes back."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from dialogs.actions import rewrite_requests
from dialogs.api.sse import KEEP_ALIVE
from dialogs.context.view import view_of
from dialogs.extras.v1 import compaction, conversations, runs
from dialogs.extras.v1.answers import outcomes_of, stream_behind
from dialogs.extras.v1.compacted import MARK, Compacted, unpack
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.messages.counting import est_tokens
from dialogs.extras.v1.messages.request import read as read_message
from dialogs.extras.v1.pieces import KeepAlive
from dialogs.extras.v1.responses.request import prior_of, read_to_count
from dialogs.extras.v1.responses.request import read as read_response
from dialogs.extras.v1.responses.stored import Place
from dialogs.extras.v1.wire import Prior, Sent
from dialogs.models import ApiKey, Dialog, Turn
from dialogs.runtime.driver import drive
from remediation.models import RemediationRun
from tests.dialogs.conftest import Script
from tests.dialogs.extras.v1.conversing import ANSWER, as_history, conversation, noted, texts_in
from tests.dialogs.factories import AgentFactory

database = pytest.mark.django_db(transaction=True)
CARGO = "barrels of oil from Genua, to be counted at noon by the mate and once more by the captain. "
ASKED = [f"Cargo {number}: {CARGO * 8}" for number in range(8)]
SUMMED = {"match": "hand-off summary", "text": "## Goal\nCount the cargo of all eight ships.", "usage": "estimate"}
CALLS = {"match": "deep", "tool_calls": [{"name": "sound", "arguments": {}}], "usage": "estimate"}
SOUND = {"type": "function", "name": "sound"}


@pytest.fixture
def agent(script: Script) -> str:
    script(SUMMED, CALLS, ANSWER)
    return str(AgentFactory.create().pk)


def sent(key: ApiKey, **body: Any) -> Sent:
    return Sent(body, "", "", key)


def told(*texts: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(texts)]


def compacted(key: ApiKey, prior: Prior) -> Compacted:
    run = compaction.begin(key, prior)
    assert compaction.outcome_of(run, prior) is None
    drive(run.dialog_id)
    outcome = compaction.outcome_of(run, prior)
    assert outcome and outcome.usage
    return outcome.compacted


def item_of(made: Compacted) -> dict[str, Any]:
    return {"type": "compaction", "encrypted_content": made.pack()}


def answered(key: ApiKey, sent: Sent) -> Dialog:
    run = conversations.begin(key, read_response(sent).request)
    drive(run.dialog_id)
    dialog = Dialog.objects.get(pk=run.dialog_id)
    runs.note_answer(run, dialog.turns.filter(role=Turn.Role.ASSISTANT).latest("seq").text)
    return dialog


@database
def test_a_conversation_is_rewritten_in_its_dialog_and_goes_on_there(key: ApiKey, agent: str) -> None:
    dialog = conversation(key, agent, *ASKED)
    made = compacted(key, prior_of(sent(key, model=agent, input=told(*as_history(*ASKED), "And now?"))))
    assert made.dialog_id == dialog.pk
    assert "[Summary of turns 1-" in made.text and ASKED[0] not in made.text
    assert [one["content"] for one in made.tail] == ["And now?"]
    item = item_of(made)
    assert answered(key, sent(key, model=agent, input=[*told(ASKED[0]), item])).pk == dialog.pk
    answer = {"role": "assistant", "content": noted("And now?")}
    newest = {"role": "user", "content": "And then?"}
    assert answered(key, sent(key, model=agent, input=[item, answer, newest])).pk == dialog.pk
    assert texts_in(dialog)[-2:] == ["And then?", noted("And then?")]
    rewrite_requests.undo(RemediationRun.objects.get(dialog=dialog).pk, key.owner)
    assert view_of(dialog).units[0].text == ASKED[0], "what was removed is seen again"


@database
def test_a_conversation_from_elsewhere_is_compacted_in_its_own_dialog(key: ApiKey, agent: str) -> None:
    history = told(*as_history(*ASKED))
    body = {"model": agent, "max_tokens": 99, "compaction": {"type": "summarize"}, "messages": history}
    reading = read_message(sent(key, **body))
    assert reading.prior and reading.is_compaction
    made = compacted(key, reading.prior())
    block = {"type": "compaction", "content": made.text, "encrypted_content": made.pack(with_text=False)}
    messages = [{"role": "assistant", "content": [block]}, {"role": "user", "content": "And now?"}]
    run = conversations.begin(key, read_message(sent(key, model=agent, max_tokens=99, messages=messages)).request)
    assert run.dialog_id == made.dialog_id
    assert texts_in(Dialog.objects.get(pk=run.dialog_id)) == [*as_history(*ASKED), "And now?"]


@database
def test_results_behind_a_compaction_go_on_with_their_call(key: ApiKey, agent: str) -> None:
    dialog = conversation(key, agent, *ASKED)
    ask = [*told(*as_history(*ASKED)), {"role": "user", "content": "How deep is it?"}]
    assert answered(key, sent(key, model=agent, input=ask, tools=[SOUND])).pk == dialog.pk
    (call,) = dialog.turns.latest("seq").tool_calls or []
    called = {"type": "function_call", "call_id": call["id"], "name": "sound", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": call["id"], "output": "15 metres"}
    made = compacted(key, prior_of(sent(key, model=agent, input=[*ask, called, result], tools=[SOUND])))
    assert made.dialog_id == dialog.pk
    assert answered(key, sent(key, model=agent, input=[item_of(made)], tools=[SOUND])).pk == dialog.pk
    roles = list(dialog.turns.filter(position__isnull=False).order_by("position").values_list("role", flat=True))
    assert [role for role in roles if role != "notice"][-3:] == ["assistant", "tool", "assistant"]
    (unit,) = [unit for unit in view_of(Dialog.objects.get(pk=dialog.pk)).units if unit.messages[0].tool_calls]
    assert unit.messages[-1].text == "15 metres", "the rewrite came between the call and its result"


@database
@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("way", ["of its own", "trigger"])
def test_a_chain_goes_on_from_a_compaction_and_forks_there(key: ApiKey, agent: str, way: str, store: bool) -> None:
    """By its id alone, with its item too, and from a response before it."""
    dialog = conversation(key, agent, *ASKED)
    first = Place(dialog.pk, dialog.turns.get(text=ASKED[-2]).seq, 0).id("resp")
    newest = Place(dialog.pk, dialog.turns.get(text=ASKED[-1]).seq, 0).id("resp")
    if way == "trigger":
        asked = sent(key, model=agent, store=store, previous_response_id=newest, input=[{"type": "compaction_trigger"}])
        reading = read_response(asked)
        assert reading.prior and reading.is_compaction
        prior = reading.prior()
    else:
        prior = prior_of(sent(key, model=agent, input=told(*as_history(*ASKED))))
    run = compaction.begin(key, prior)
    drive(run.dialog_id)
    outcome = compaction.outcome_of(run, prior)
    assert outcome and run.dialog_id == dialog.pk
    item, compacted_id = item_of(outcome.compacted), Place.of_run(run).id("resp")

    def ask(previous: str, text: str, *items: Any) -> Dialog:
        asked = [*items, {"role": "user", "content": text}]
        return answered(key, sent(key, model=agent, store=store, previous_response_id=previous, input=asked))

    assert ask(compacted_id, "And now?").pk == dialog.pk
    assert texts_in(dialog)[-2:] == as_history("And now?")
    for number, items in enumerate([(), (item,)]):
        fork = ask(compacted_id, f"Or {number}?", *items)
        assert fork.pk != dialog.pk
        assert texts_in(fork) == as_history(*ASKED, f"Or {number}?")
        assert RemediationRun.objects.filter(dialog=fork).count() == 1, "the rewrite comes along"
    older = ask(first, "Or this?")
    assert texts_in(older) == as_history(*ASKED[:-1], "Or this?")
    assert texts_in(dialog) == as_history(*ASKED, "And now?")


@database
def test_of_several_compactions_the_newest_alone_is_told(key: ApiKey, agent: str) -> None:
    """A loop sends all of its compactions each time, each of which stands for more of it."""
    dialog = conversation(key, agent, "Hello", "And now?")
    older, newest = (Compacted(dialog.pk, position, "Short.") for position in (2, dialog.last_position))
    asked = {"role": "user", "content": "And then?"}

    def of_items(*given: Compacted) -> Sent:
        return sent(key, model=agent, input=[*map(item_of, given), asked])

    def of_blocks(*given: Compacted) -> Sent:
        blocks = [{"type": "compaction", "content": one.text, "encrypted_content": one.pack()} for one in given]
        messages = [{"role": "assistant", "content": [block]} for block in blocks]
        return sent(key, model=agent, max_tokens=99, messages=[*messages, asked])

    for read, body in ((read_response, of_items), (read_message, of_blocks)):
        with CaptureQueriesContext(connection) as alone:
            told_once = read(body(newest)).request
        with CaptureQueriesContext(connection) as together:
            assert read(body(older, older, newest)).request.messages == told_once.messages
        assert [message.text for message in told_once.messages] == [*as_history("Hello", "And now?"), "And then?"]
        assert len(together) == len(alone)


@database
def test_what_stands_for_a_dialog_that_is_gone_still_says_it(key: ApiKey, agent: str) -> None:
    made = Compacted(UUID(int=1), 8, "They count eight ships.")
    item, newest = item_of(made), {"role": "user", "content": "And now?"}
    dialog = answered(key, sent(key, model=agent, input=[*told("Before"), item, newest]))
    first = texts_in(dialog)[0]
    assert made.text in first and "And now?" in " ".join(texts_in(dialog)) and "Before" not in first


@database
def test_a_request_is_counted_by_what_stands_for_its_past(key: ApiKey, agent: str) -> None:
    conversation(key, agent, *ASKED)
    history = told(*as_history(*ASKED))
    made = compacted(key, prior_of(sent(key, model=agent, input=history)))
    whole = est_tokens(read_to_count(sent(key, model=agent, input=history)))
    assert est_tokens(read_to_count(sent(key, model=agent, input=[item_of(made)]))) < whole * 0.8


@database
@pytest.mark.parametrize(("threshold", "is_due"), [(2_000, True), (100_000, False)])
def test_a_threshold_of_the_client_decides_when(key: ApiKey, agent: str, threshold: int, is_due: bool) -> None:
    history = told(*as_history(*ASKED), "And now?")
    management = [{"type": "compaction", "compact_threshold": threshold}]
    reading = read_response(sent(key, model=agent, input=history, context_management=management))
    assert reading.prior and reading.is_due() == is_due
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": threshold}}
    body = {"model": agent, "max_tokens": 99, "messages": history, "context_management": {"edits": [edit]}}
    reading = read_message(sent(key, **body))
    assert reading.prior and reading.is_due() == is_due and not reading.is_compaction
    emptied = {"type": "compaction", "content": None, "encrypted_content": None}
    history[-2]["content"] = [emptied, {"type": "text", "text": "Noted."}]
    assert not read_message(sent(key, **body)).is_due()


# While it takes long


async def collected(pieces: AsyncIterator[Any]) -> list[Any]:
    return [piece async for piece in pieces]


@database
def test_whoever_waits_for_a_rewrite_hears_that_it_goes_on(key: ApiKey, agent: str) -> None:
    prior = prior_of(sent(key, model=agent, input=told(*as_history(*ASKED))))
    run = compaction.begin(key, prior)

    async def wait() -> list[Any]:
        outcomes = outcomes_of(run, prior, quiet_seconds=0)
        first = await anext(outcomes)
        await sync_to_async(drive)(run.dialog_id)
        return [first, *await collected(outcomes)]

    *alive, outcome = async_to_sync(wait)()
    assert set(map(type, alive)) == {KeepAlive}
    assert isinstance(outcome, compaction.Outcome) and outcome.compacted.dialog_id == run.dialog_id


@database
@pytest.mark.parametrize("fails", [False, True])
def test_a_stream_behind_a_long_rewrite_begins_with_comments(key: ApiKey, agent: str, fails: bool) -> None:
    history = told(*as_history(*ASKED))
    prior = prior_of(sent(key, model=agent, input=history))
    run = compaction.begin(key, prior)
    drive(run.dialog_id)

    async def outcomes() -> AsyncIterator[Any]:
        yield KeepAlive()
        if fails:
            raise ApiError(503, "compaction_unavailable", "It could not be compacted.")
        yield await sync_to_async(compaction.outcome_of)(run, prior)

    body = {"model": agent, "stream": True, "input": [*history, {"type": "compaction_trigger"}]}
    reading, request = read_response(sent(key, **body)), RequestFactory().post("/v1/responses")
    events = async_to_sync(collected)(stream_behind(request, key, reading, run, outcomes()))
    assert events[:2] == [KEEP_ALIVE, KEEP_ALIVE]
    told_last = events[-1].decode()
    assert ("event: response.failed" if fails else "event: response.completed") in told_last
    assert ("could not be compacted" if fails else '"type":"compaction"') in told_last


@pytest.mark.unit
@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"instructions": "Be brief."}, "instructions is not offered"),
        ({"trigger": {"type": "tool_uses", "value": 3}}, "input_tokens"),
        ({"trigger": {"type": "input_tokens", "value": True}}, "above 0"),
    ],
)
def test_what_an_edit_cannot_do_is_refused(edit: dict[str, Any], words: str) -> None:
    edits = {"edits": [{"type": "compact_20260112", **edit}]}
    body = {"model": "a", "max_tokens": 9, "messages": told("Hi"), "context_management": edits}
    with pytest.raises(ApiError, match=words):
        read_message(Sent(body, "", "", ApiKey()))


@pytest.mark.unit
def test_nothing_to_compact_is_told_by_its_code() -> None:
    body = {"model": "a", "max_tokens": 9, "messages": told("Hi"), "compaction": {"type": "summarize"}}
    reading = read_message(Sent(body, "", "", ApiKey()))
    assert reading.prior
    with pytest.raises(ApiError, match="nothing to compact") as refused:
        compaction.begin(ApiKey(), reading.prior())
    assert (refused.value.status, refused.value.code) == (400, "compaction_nothing_to_summarize")


@pytest.mark.unit
def test_a_compaction_made_elsewhere_is_refused_or_read_by_its_text() -> None:
    item = {"type": "compaction", "encrypted_content": "gAAAAABpQ"}
    with pytest.raises(ApiError, match="elsewhere") as refused:
        read_response(Sent({"model": "a", "input": [item, *told("Hi")]}, "", "", ApiKey()))
    assert refused.value.code == "invalid_encrypted_content"
    block = {"type": "compaction", "content": "They sail.", "encrypted_content": "EqQB", "signature": "s"}
    failed = {"type": "compaction", "content": None}
    messages = [*told("Before"), {"role": "assistant", "content": [block]}, *told("Hi")]
    messages.insert(1, {"role": "assistant", "content": [failed]})
    read = read_message(Sent({"model": "a", "max_tokens": 9, "messages": messages}, "", "", ApiKey())).request
    assert [one.text for one in read.messages] == [f"{compaction.PREFACE}\n\nThey sail.", "Hi"]


@pytest.mark.unit
@given(st.text() | st.binary().map(lambda raw: MARK + raw.hex()) | st.none() | st.integers())
def test_any_text_is_unpacked_or_known_as_foreign(packed: Any) -> None:
    assert unpack(packed) is None
    made = Compacted(
        UUID(int=7), 3, str(packed).encode("utf-8", "ignore").decode(), ({"role": "user", "content": "Hi"},)
    )
    assert unpack(made.pack()) == made
    assert unpack(made.pack(with_text=False)) == replace(made, text="")
    assert unpack(made.pack()[:-5]) is None
