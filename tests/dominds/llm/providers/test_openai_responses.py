from dataclasses import replace
from typing import Any

import pytest

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.messages import FilePart, ImagePart, Message, Request, Role, ToolCall
from dominds.llm.provider import ContextOverflow, MalformedStream, Overloaded, ProviderError, RateLimited
from dominds.llm.providers.openai_responses import OPENAI, OpenAIResponses, request_body
from dominds.llm.stream import FinishReason, TextDelta
from dominds.llm.usage import Usage, UsageUnavailable
from tests.dominds.llm.asking import ADD_REMINDER, CLEAR_MIND, HELLO, ask, events_of, info, owner
from tests.dominds.llm.model_server import ModelServer, cut_stream_of, named, plain, stream_of

KEY = "sk-canary-0123456789"
USAGE = {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 3, "total_tokens": 12}
REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "abc"}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "one", "arguments": '{"x":1}'}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}


def text(piece: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": piece}


def end(kind: str = "completed", output: Any = (), **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {"status": kind, "output": list(output), "usage": USAGE, **fields}}


def done(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "item": item}


def openai(server: ModelServer) -> OpenAIResponses:
    return OpenAIResponses(Endpoint(f"{server.url}/v1", KEY), info(OPENAI))


def test_text_arrives_in_pieces_with_its_usage(server: ModelServer) -> None:
    created = {"type": "response.created", "response": {"status": "in_progress", "usage": None, "error": None}}
    server.will(stream_of(named([created, text("Hel"), text("lo"), done(MESSAGE), end(output=[MESSAGE])])))
    outcome = ask(openai(server), replace(HELLO, conversation="dialog-1"))
    assert outcome.text == "Hello"
    assert outcome.finished.usage == Usage(9, 3, 12, 8)
    assert outcome.finished.finish_reason == "stop"
    assert outcome.finished.provider_items == ()
    [asked] = server.asked
    assert asked.path == "/v1/responses"
    assert asked.body == {
        "model": "a-model",
        "input": [{"role": "user", "content": "Hello"}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "prompt_cache_key": "dialog-1",
    }


def test_text_that_came_only_with_the_end_is_not_lost(server: ModelServer) -> None:
    server.will(stream_of(named([end(output=[MESSAGE])])))
    assert ask(openai(server)).text == "Hello"


def test_reasoning_travels_to_the_next_request_at_its_old_place(server: ModelServer) -> None:
    second_thought, second_call = {**REASONING, "id": "rs_2"}, {**CALL, "id": "fc_2", "call_id": "c2", "name": "two"}
    items: list[dict[str, Any]] = [{**REASONING, "status": "completed"}, MESSAGE, CALL, second_thought, second_call]
    arguments = {"type": "response.function_call_arguments.delta", "delta": '{"x"', "item_id": "fc_1"}
    server.will(
        stream_of(named([text("Hello"), *map(done, items[:2]), arguments, *map(done, items[2:]), end(output=[])]))
    )
    outcome = ask(openai(server))
    assert outcome.tool_text == '{"x"'
    finished = outcome.finished
    assert [call.id for call in finished.tool_calls] == ["c1", "c2"]
    assert finished.finish_reason == "tool_calls"

    answer = Message(Role.ASSISTANT, "Hello", finished.tool_calls, provider_items=finished.provider_items)
    written = body_of(answer)["input"]
    assert [item.get("id") or item.get("call_id") or item["content"] for item in written] == [
        "rs_1",
        "Hello",
        "c1",
        "rs_2",
        "c2",
        "c1",  # results that nobody gave
        "c2",
    ]
    assert written[0] == REASONING
    assert body_of(replace(answer, tool_calls=finished.tool_calls[:1]))["input"][-2]["type"] == "function_call", (
        "reasoning without what followed it is refused, so it is left out"
    )
    for stranger in (owner(key="another"), owner(epoch=1, key=KEY)):
        other = request_body(replace(HELLO, messages=(answer,)), stranger, info(OPENAI))["input"]
        assert [item.get("type", "message") for item in other][:3] == ["message", "function_call", "function_call"]


def test_summaries_are_shown_as_reasoning(server: ModelServer) -> None:
    def summary(piece: str) -> dict[str, Any]:
        return {"type": "response.reasoning_summary_text.delta", "delta": piece}

    def part(number: int) -> dict[str, Any]:
        return {"type": "response.reasoning_summary_part.added", "summary_index": number}

    server.will(stream_of(named([part(0), summary("First."), part(1), summary("Then."), text("Ok"), end()])))
    outcome = ask(openai(server))
    assert (outcome.reasoning, outcome.text) == ("First.\n\nThen.", "Ok")


def test_messages_before_and_after_reasoning_stay_apart(server: ModelServer) -> None:
    def message(words: str) -> dict[str, Any]:
        return {**MESSAGE, "content": [{"type": "output_text", "text": words}]}

    items = [message("I look."), REASONING, message("Found it.")]
    server.will(stream_of(named([text("I look."), text("Found it."), end(output=items)])))
    outcome = ask(openai(server))
    answer = Message(Role.ASSISTANT, outcome.text, provider_items=outcome.finished.provider_items)
    first, reasoning, second = body_of(answer)["input"]
    assert (first["content"], reasoning, second["content"]) == ("I look.", REASONING, "Found it.")


REFUSED = {"type": "refusal", "refusal": "No."}
LATE = {"type": "response.refusal.done", "refusal": "No."}


@pytest.mark.parametrize(
    ("events", "parts"),
    [
        ([{"type": "response.refusal.delta", "delta": part} for part in ("N", "o.")], [REFUSED]),
        ([], [REFUSED]),
        ([text("Well. "), LATE], [{"type": "output_text", "text": "Well. "}, REFUSED]),
        ([text("Well. ")], [{"type": "output_text", "text": "Well. "}, REFUSED]),
        ([text("ell. ")], [{"type": "output_text", "text": "Well. "}, REFUSED]),
    ],
)
def test_a_refusal_is_no_plain_end_and_told_apart(server: ModelServer, events: list[Any], parts: list[Any]) -> None:
    """In pieces, whole, or in the last event alone."""
    server.will(stream_of(named([*events, end(output=[{**MESSAGE, "content": parts}])])))
    said = events_of(openai(server).stream(HELLO))
    assert said[-1].finish_reason is FinishReason.REFUSAL  # type: ignore[union-attr]
    texts = [event for event in said if isinstance(event, TextDelta)]
    assert "".join(event.text for event in texts if event.is_refusal) == "No."
    assert "".join(event.text for event in texts if not event.is_refusal).endswith("Well. " * (len(parts) - 1))


def test_less_output_than_the_server_accepts_is_never_asked_for() -> None:
    assert body_of(Message(Role.USER, "x"), max_output_tokens=3)["max_output_tokens"] == 16


def test_images_and_files_stand_behind_the_text() -> None:
    parts = (ImagePart("image/png", b"png"), FilePart("a.pdf", "application/pdf", b"pdf"))
    assert body_of(Message(Role.USER, "Look", parts=parts))["input"][0]["content"] == [
        {"type": "input_text", "text": "Look"},
        {"type": "input_image", "image_url": "data:image/png;base64,cG5n"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"},
    ]


def test_an_incomplete_response_is_an_end_with_its_usage(server: ModelServer) -> None:
    reason = {"incomplete_details": {"reason": "max_output_tokens"}}
    server.will(stream_of(named([text("Hel"), end("incomplete", **reason)])))
    finished = ask(openai(server)).finished
    assert (finished.finish_reason, finished.usage) == (FinishReason.LENGTH, Usage(9, 3, 12, 8))
    server.will(stream_of(named([end("incomplete", [REASONING], **reason)])))
    assert ask(openai(server)).finished.finish_reason is FinishReason.THOUGHT_ONLY


def test_missing_usage_is_unavailable(server: ModelServer) -> None:
    server.will(stream_of(named([text("x"), end(usage=None)])))
    assert ask(openai(server)).finished.usage == UsageUnavailable()


@pytest.mark.parametrize(
    "play",
    [
        stream_of(named([text("x")])),
        cut_stream_of(named([text("x")])),
        stream_of(named([{"type": "response.output_text.delta", "delta": None}])),
        plain(200, ""),
    ],
)
def test_an_answer_without_its_explicit_end_is_malformed(server: ModelServer, play: Any) -> None:
    server.will(play)
    with pytest.raises(MalformedStream):
        ask(openai(server))


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (end("failed", error={"code": "server_error", "message": "x"}), Overloaded),
        (end("failed", error={"code": "rate_limit_exceeded", "message": "x"}), RateLimited),
        ({"type": "error", "code": "context_length_exceeded", "message": "x", "param": None}, ContextOverflow),
    ],
)
def test_errors_inside_the_stream_keep_their_kind(server: ModelServer, event: Any, kind: type[ProviderError]) -> None:
    server.will(stream_of(named([text("x"), event])))
    with pytest.raises(kind) as caught:
        ask(openai(server))
    assert type(caught.value) is kind


def body_of(*messages: Message, **fields: Any) -> dict[str, Any]:
    return request_body(Request("a-model", "", messages, **fields), owner(key=KEY), info(OPENAI))


def test_tools_and_their_results_are_written_in_the_wire_format() -> None:
    call = Message(Role.ASSISTANT, "", (ToolCall("a", "one", ""),))
    body = body_of(
        call, Message(Role.TOOL, "done", tool_call_id="a"), tools=(CLEAR_MIND, ADD_REMINDER), force="clear_mind"
    )
    assert body["input"] == [
        {"type": "function_call", "call_id": "a", "name": "one", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "done"},
    ]
    assert [tool["name"] for tool in body["tools"]] == ["clear_mind", "add_reminder"]
    named = {"type": "function", "name": "clear_mind"}
    assert body["tool_choice"] == {"type": "allowed_tools", "mode": "required", "tools": [named]}


def test_models_without_reasoning_are_not_asked_for_it() -> None:
    assert "include" not in request_body(replace(HELLO, model="gpt-4o"), owner(), info(OPENAI))
