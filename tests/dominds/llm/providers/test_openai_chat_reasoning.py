"""Chat completions: reasoning as it arrives, and what of it goes back."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from dominds.llm.messages import Message, Request, Role
from dominds.llm.models.model import Echo
from dominds.llm.providers.chat_history import NO_SIGNATURE
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE, request_body
from dominds.llm.stream import FinishReason
from tests.dominds.llm.asking import Outcome, ask, info, owner
from tests.dominds.llm.model_server import ModelServer, data, stream_of
from tests.dominds.llm.providers.chat_chunks import DONE, KEY, call, chat, delta


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_is_a_stream_of_its_own(server: ModelServer, name: str) -> None:
    server.will(
        stream_of(data(delta(**{name: "I "}), delta(**{name: "think"}), delta(content="So."), delta("stop"), DONE))
    )
    outcome = ask(chat(server))
    assert (outcome.reasoning, outcome.text) == ("I think", "So.")


def test_what_a_gateway_repeats_is_shown_once(server: ModelServer) -> None:
    repeated = delta(
        reasoning="hm", reasoning_content="hm", reasoning_details=[{"type": "reasoning.text", "text": "hm"}]
    )
    server.will(stream_of(data(repeated, delta("stop", content="x"), DONE)))
    assert ask(chat(server)).reasoning == "hm"


def test_thinking_in_tags_is_parted_from_the_answer_across_chunks(server: ModelServer) -> None:
    pieces = [delta(content=piece) for piece in ["\n<th", "ink>\nLet me", " see</th", "ink>\n\nIt is ", "<think>."]]
    server.will(stream_of(data(*pieces, delta("stop"), DONE)))
    outcome = ask(chat(server))
    assert (outcome.reasoning, outcome.text) == ("Let me see", "It is <think>.")


def test_an_answer_that_was_cut_off_while_thinking_says_so(server: ModelServer) -> None:
    server.will(stream_of(data(delta(content="<think>On and"), delta(content=" on"), delta("length"), DONE)))
    outcome = ask(chat(server))
    assert (outcome.reasoning, outcome.text) == ("On and on", "")
    assert outcome.finished.finish_reason is FinishReason.THOUGHT_ONLY


DETAIL = {"type": "reasoning.text", "index": 0, "id": "r1"}


@pytest.mark.parametrize("texts", [["Let me", " see"], ["Let me", "Let me see"]])
def test_details_arrive_in_pieces_or_growing(server: ModelServer, texts: list[str]) -> None:
    pieces = [delta(reasoning_details=[{**DETAIL, "text": text}]) for text in texts]
    server.will(stream_of(data(*pieces, delta("stop", content="Ok"), DONE)))
    outcome = ask(chat(server))
    assert outcome.reasoning == "Let me see"
    assert sent_back(outcome)["reasoning_details"] == [{**DETAIL, "text": "Let me see"}]


def answer_of(outcome: Outcome) -> Message:
    finished = outcome.finished
    return Message(Role.ASSISTANT, outcome.text, finished.tool_calls, provider_items=finished.provider_items)


def sent_back(outcome: Outcome, epoch: int = 0, key: str = KEY, **fields: Any) -> dict[str, Any]:
    """The answer as the next request repeats it."""
    request = Request("a-model", "", (answer_of(outcome),), epoch=epoch)
    body: dict[str, Any] = orjson.loads(request_body(request, owner(epoch, key), info(OPENAI_COMPATIBLE, **fields)))
    message: dict[str, Any] = body["messages"][0]
    return message


CALLED = [call(0, "a", "one", "{}"), delta("tool_calls"), DONE]


@pytest.mark.parametrize(
    ("echo", "chunks", "expected"),
    [
        (Echo.SENT, [delta(reasoning_content="hm"), *CALLED], {"reasoning_content": "hm"}),
        (Echo.SENT, [delta(reasoning="hm"), *CALLED], {"reasoning": "hm"}),
        (Echo.SENT, [delta(reasoning="hm"), delta("stop", content="x"), DONE], {"reasoning": "hm"}),
        (Echo.SENT, CALLED, {}),
        (Echo.CALLS, [delta(reasoning_content="hm"), *CALLED], {"reasoning_content": "hm"}),
        (Echo.CALLS, [delta(reasoning_content=""), *CALLED], {"reasoning_content": ""}),
        (Echo.CALLS, CALLED, {"reasoning_content": ""}),
        (Echo.CALLS, [delta(reasoning_content="hm"), delta("stop", content="x"), DONE], {}),
        (Echo.NEVER, [delta(reasoning_content="hm"), *CALLED], {}),
    ],
)
def test_reasoning_goes_back_by_the_models_rule(
    server: ModelServer, echo: Echo, chunks: list[Any], expected: dict[str, str]
) -> None:
    server.will(stream_of(data(*chunks)))
    back = sent_back(ask(chat(server, echo=echo)), echo=echo)
    assert {name: value for name, value in back.items() if name.startswith("reasoning")} == expected


SIGNED = {"google": {"thought_signature": "c2ln"}}


def test_the_signatures_of_calls_go_back_with_them(server: ModelServer) -> None:
    first, second = call(0, "a", "one", "{}"), call(1, "b", "two", "{}")
    first["choices"][0]["delta"]["tool_calls"][0]["extra_content"] = SIGNED
    server.will(stream_of(data(first, second, delta("tool_calls"), DONE)))
    outcome = ask(chat(server, echo=Echo.SIGNATURES))
    calls = sent_back(outcome, echo=Echo.SIGNATURES)["tool_calls"]
    assert [each.get("extra_content") for each in calls] == [SIGNED, None]
    foreign = sent_back(outcome, key="another", echo=Echo.SIGNATURES)["tool_calls"]
    assert [each.get("extra_content") for each in foreign] == [NO_SIGNATURE, None]


@pytest.mark.parametrize(("epoch", "key"), [(1, KEY), (0, "another")])
def test_reasoning_of_another_epoch_or_key_stays_out(server: ModelServer, epoch: int, key: str) -> None:
    server.will(stream_of(data(delta(reasoning_details=[DETAIL], reasoning_content="hm"), *CALLED)))
    outcome = ask(chat(server, echo=Echo.SENT))
    assert "reasoning_content" in sent_back(outcome, echo=Echo.SENT)
    assert set(sent_back(outcome, epoch, key, echo=Echo.SENT)) == {"role", "content", "tool_calls"}
    assert sent_back(outcome, epoch, key, echo=Echo.CALLS)["reasoning_content"] == ""


def test_reasoning_behind_a_text_that_was_edited_stays_out(server: ModelServer) -> None:
    server.will(stream_of(data(delta(reasoning_content="hm"), delta("stop", content="The key is 123."), DONE)))
    outcome = ask(chat(server, echo=Echo.SENT))
    assert "reasoning_content" in sent_back(outcome, echo=Echo.SENT)
    assert "reasoning_content" not in sent_back(replace(outcome, text="[masked]"), echo=Echo.SENT)


def test_reasoning_that_never_goes_back_is_not_kept(server: ModelServer) -> None:
    server.will(stream_of(data(delta(reasoning_content="hm"), delta("stop", content="x"), DONE)))
    assert ask(chat(server)).finished.provider_items == ()
