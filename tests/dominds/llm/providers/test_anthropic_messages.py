from dataclasses import replace
from typing import Any

import pytest

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.messages import FilePart, ImagePart, Message, Request, Role, ToolCall
from dominds.llm.models.model import Echo, ProviderKind, Thinking
from dominds.llm.provider import ContextOverflow, MalformedStream, Overloaded, ProviderError
from dominds.llm.providers.anthropic_messages import ANTHROPIC, ANTHROPIC_COMPATIBLE, AnthropicMessages, request_body
from dominds.llm.providers.echoes import Opaque, Spoken, serialise
from dominds.llm.stream import FinishReason
from dominds.llm.usage import Usage, UsageUnavailable
from tests.dominds.llm.asking import ADD_REMINDER, CLEAR_MIND, HELLO, ask, info, owner
from tests.dominds.llm.model_server import ModelServer, cut_stream_of, named, plain, stream_of

KEY = "sk-ant-canary-01"


def start(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": usage}}


def block(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": fields}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def ending(reason: str = "end_turn", **usage: Any) -> list[dict[str, Any]]:
    return [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}, {"type": "message_stop"}]


TEXT = [block(0, type="text", text=""), delta(0, "text_delta", text="Hel"), delta(0, "text_delta", text="lo")]


def anthropic(server: ModelServer, kind: ProviderKind = ANTHROPIC, **options: Any) -> AnthropicMessages:
    return AnthropicMessages(Endpoint(server.url, "sk-ant-canary-01"), info(kind, **options))


def test_text_arrives_with_the_whole_prompt_counted(server: ModelServer) -> None:
    usage = {"input_tokens": 900, "cache_read_input_tokens": 180_000, "cache_creation_input_tokens": 4_000}
    server.will(stream_of(named([start(**usage, output_tokens=1), {"type": "ping"}, *TEXT, *ending(output_tokens=7)])))
    outcome = ask(anthropic(server))
    assert outcome.text == "Hello"
    assert outcome.finished.usage == Usage(184_900, 7, cache_read_tokens=180_000, cache_write_tokens=4_000)
    assert outcome.finished.finish_reason == "stop"
    [asked] = server.asked
    assert asked.path == "/v1/messages"
    assert asked.headers["anthropic-version"]
    assert "sk-ant-canary-01" in {asked.headers.get("authorization", "")[7:]}
    assert asked.body["max_tokens"] == 4096
    assert asked.body["stream"] is True


def test_compatible_servers_get_the_key_in_both_headers(server: ModelServer) -> None:
    server.will(stream_of(named([start(), *TEXT, *ending()])))
    ask(AnthropicMessages(Endpoint(f"{server.url}/api/anthropic/v1", "a-key-01"), info(ANTHROPIC_COMPATIBLE)))
    [asked] = server.asked
    assert asked.path == "/api/anthropic/v1/messages"
    assert (asked.headers["x-api-key"], asked.headers["authorization"]) == ("a-key-01", "Bearer a-key-01")


def test_a_server_without_a_key_is_sent_none(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-own")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "sk-own")
    server.will(stream_of(named([start(), *TEXT, *ending()])))
    ask(AnthropicMessages(Endpoint(server.url), info(ANTHROPIC_COMPATIBLE)))
    assert not {"x-api-key", "authorization"} & set(server.asked[0].headers)


@pytest.mark.parametrize(
    ("first", "last", "usage"),
    [
        ({"input_tokens": 9, "output_tokens": 1}, {"output_tokens": 3}, Usage(9, 3)),
        ({"input_tokens": 0, "output_tokens": 0}, {"input_tokens": 9, "output_tokens": 3}, Usage(9, 3)),
        ({}, {"input_tokens": 9, "output_tokens": 3}, Usage(9, 3)),
        ({"input_tokens": 9}, {"input_tokens": None, "output_tokens": 3}, Usage(9, 3)),
        ({"input_tokens": 9}, {"input_tokens": 0, "output_tokens": 3}, Usage(9, 3)),
        ({"input_tokens": 9, "cache_read_input_tokens": None}, {"output_tokens": 3}, Usage(9, 3)),
        ({"input_tokens": 9, "output_tokens": 0}, {}, Usage(9, 0)),
        (
            {"input_tokens": 5},
            {"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 3},
            Usage(9, 3, None, 4),
        ),
    ],
)
def test_usage_is_found_where_servers_put_it(server: ModelServer, first: Any, last: Any, usage: Usage) -> None:
    server.will(stream_of(named([start(**first), *TEXT, *ending(**last)])))
    assert ask(anthropic(server)).finished.usage == usage


@pytest.mark.parametrize("words", [None, 5, "text", {}, [], [5], [{}], [{"type": {}, "reason": [], "path": 5}]])
def test_whatever_a_server_says_of_its_input_is_no_fault(server: ModelServer, words: Any) -> None:
    [last, end] = ending()
    server.will(stream_of(named([start(), *TEXT, {**last, "input_transformations": words}, end])))
    assert ask(anthropic(server)).text == "Hello"


def test_usage_that_nobody_reports_is_unavailable(server: ModelServer) -> None:
    server.will(stream_of(named([start(input_tokens=0, output_tokens=0), *TEXT, *ending()])))
    assert isinstance(ask(anthropic(server)).finished.usage, UsageUnavailable)


def test_parallel_tool_calls_and_signed_thinking(server: ModelServer) -> None:
    events = [
        start(input_tokens=9),
        block(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="Let me "),
        delta(0, "thinking_delta", thinking="see"),
        delta(0, "signature_delta", signature="c2ln"),
        block(1, type="redacted_thinking", data="xyz"),
        block(2, type="text", text=""),
        delta(2, "text_delta", text="Ok"),
        block(3, type="tool_use", id="t1", name="clear_mind", input={}),
        delta(3, "input_json_delta", partial_json=""),
        delta(3, "input_json_delta", partial_json='{"reminder_con'),
        delta(3, "input_json_delta", partial_json='tent": "go"}'),
        block(4, type="tool_use", id="t1", name="add_reminder", input={}),
        *ending("tool_use", output_tokens=3),
    ]
    server.will(stream_of(named(events)))
    finished = ask(anthropic(server)).finished
    first, second = finished.tool_calls
    assert first == ToolCall("t1", "clear_mind", '{"reminder_content": "go"}')
    assert (second.name, second.arguments) == ("add_reminder", "{}")
    assert second.id not in ("", "t1")
    assert finished.finish_reason == "tool_calls"

    answer = Message(Role.ASSISTANT, "Ok", finished.tool_calls, provider_items=finished.provider_items)
    body = request_body(replace(HELLO, messages=(answer,)), owner(key=KEY), info(ANTHROPIC))
    thinking, redacted, text, *uses = body["messages"][1]["content"]
    assert thinking == {"type": "thinking", "thinking": "Let me see", "signature": "c2ln"}
    assert redacted == {"type": "redacted_thinking", "data": "xyz"}
    assert text["text"] == "Ok"
    assert [use["input"] for use in uses] == [{"reminder_content": "go"}, {}]


def test_unsigned_thinking_goes_back_only_to_servers_that_sign_nothing(server: ModelServer) -> None:
    events = [start(), block(0, type="thinking", thinking=""), delta(0, "thinking_delta", thinking="hm"), *ending()]
    server.will(stream_of(named(events)))
    assert ask(anthropic(server)).finished.provider_items == ()
    assert len(ask(anthropic(server, ANTHROPIC_COMPATIBLE)).finished.provider_items) == 1


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("max_tokens", FinishReason.LENGTH),
        ("stop_sequence", FinishReason.STOP_SEQUENCE),
        ("refusal", FinishReason.REFUSAL),
        ("pause_turn", FinishReason.PAUSE),
        ("compaction", FinishReason.COMPACTION),
        ("model_context_window_exceeded", FinishReason.WINDOW_EXCEEDED),
        ("something_new", FinishReason.OTHER),
    ],
)
def test_stop_reasons_are_translated(server: ModelServer, reason: str, expected: str) -> None:
    server.will(stream_of(named([start(), *TEXT, *ending(reason)])))
    assert ask(anthropic(server)).finished.finish_reason == expected


@pytest.mark.parametrize(
    "play",
    [
        stream_of(named([start(), *TEXT])),
        cut_stream_of(named([start(), *TEXT])),
        stream_of(named([start(), delta(0, "text_delta")])),
        stream_of(named([{"type": "content_block_delta"}])),
        plain(200, ""),
    ],
)
def test_an_answer_without_message_stop_is_malformed(server: ModelServer, play: Any) -> None:
    server.will(play)
    with pytest.raises(MalformedStream):
        ask(anthropic(server))


@pytest.mark.parametrize(
    ("play", "kind"),
    [
        (
            stream_of(
                named(
                    [start(), *TEXT, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}]
                )
            ),
            Overloaded,
        ),
        (
            plain(
                400, '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}'
            ),
            ContextOverflow,
        ),
        (plain(529, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'), Overloaded),
    ],
)
def test_errors_keep_their_kind(server: ModelServer, play: Any, kind: type[ProviderError]) -> None:
    server.will(play)
    with pytest.raises(kind) as caught:
        ask(anthropic(server))
    assert type(caught.value) is kind


def body_of(*messages: Message, **fields: Any) -> dict[str, Any]:
    request = Request("a-model", "Be brief.", messages, **fields)
    return request_body(request, owner(), info(ANTHROPIC, output_length=8192))


USER = Message(Role.USER, "Do it")
CALLS = Message(Role.ASSISTANT, "", (ToolCall("a", "one", '{"x": 1}'), ToolCall("b", "two", '{"cut')))
RESULTS = (Message(Role.TOOL, "done", tool_call_id="a"), Message(Role.TOOL, "", tool_call_id="b"))
GUIDANCE = Message(Role.USER, "Your context is long.")


def test_neighbours_are_merged_and_the_cache_ends_before_additions() -> None:
    body = body_of(USER, CALLS, *RESULTS, GUIDANCE)
    user, assistant, results = body["messages"]
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert user["content"] == [{"type": "text", "text": "Do it"}]
    assert [use["input"] for use in assistant["content"]] == [{"x": 1}, {"malformed_arguments": '{"cut'}]
    first, second, guidance = results["content"]
    assert first == {"type": "tool_result", "tool_use_id": "a", "content": "done"}
    assert second["cache_control"] == {"type": "ephemeral"}
    assert guidance == {"type": "text", "text": "Your context is long."}
    assert body["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert body["max_tokens"] == 8192


def test_guidance_behind_the_newest_message_is_not_cached() -> None:
    [message] = body_of(USER, GUIDANCE)["messages"]
    assert ["cache_control" in block for block in message["content"]] == [True, False]


def test_blank_messages_are_left_out() -> None:
    assert [m["role"] for m in body_of(USER, Message(Role.ASSISTANT, ""), GUIDANCE)["messages"]] == ["user"]


def test_a_forced_tool_leaves_the_list_whole() -> None:
    body = body_of(USER, tools=(CLEAR_MIND, ADD_REMINDER), force="clear_mind", max_output_tokens=99)
    assert [tool["name"] for tool in body["tools"]] == ["clear_mind", "add_reminder"]
    assert body["tool_choice"] == {"type": "tool", "name": "clear_mind"}
    assert body["max_tokens"] == 99


def test_another_models_thinking_is_ignored() -> None:
    items = serialise(owner(key="another"), [Opaque({"type": "thinking", "thinking": "x"}), Spoken(2)])
    answer = Message(Role.ASSISTANT, "Ok", provider_items=(*items, "no json", "5"))
    assert body_of(USER, answer)["messages"][1]["content"] == [{"type": "text", "text": "Ok"}]


# Thinking


def test_thinking_goes_back_where_it_stood_between_text_and_calls(server: ModelServer) -> None:
    events = [
        start(),
        block(0, type="thinking", thinking="", signature=""),
        delta(0, "signature_delta", signature="one"),  # empty, as it is by default
        block(1, type="text", text=""),
        delta(1, "text_delta", text="I look. "),
        block(2, type="thinking", thinking="", signature=""),
        delta(2, "thinking_delta", thinking="Again."),
        delta(2, "signature_delta", signature="two"),
        block(3, type="tool_use", id="t1", name="one", input={}),
        *ending("tool_use"),
    ]
    server.will(stream_of(named(events)))
    outcome = ask(anthropic(server))
    assert (outcome.text, outcome.reasoning) == ("I look. ", "Again.")
    finished = outcome.finished
    answer = Message(Role.ASSISTANT, outcome.text, finished.tool_calls, provider_items=finished.provider_items)
    body = request_body(replace(HELLO, messages=(answer,)), owner(key=KEY), info(ANTHROPIC))
    assert [(each["type"], each.get("signature")) for each in body["messages"][1]["content"]] == [
        ("thinking", "one"),
        ("text", None),
        ("thinking", "two"),
        ("tool_use", None),
    ]
    assert body["messages"][1]["content"][0]["thinking"] == ""
    gone = request_body(replace(HELLO, messages=(answer,), epoch=1), owner(1, KEY), info(ANTHROPIC))
    assert [each["type"] for each in gone["messages"][1]["content"]] == ["text", "tool_use"]


def test_thoughts_one_after_another_are_shown_apart(server: ModelServer) -> None:
    events = [
        start(),
        block(0, type="thinking", thinking="First."),
        block(1, type="thinking", thinking=""),
        delta(1, "thinking_delta", thinking="Then."),
        *TEXT,
        *ending(),
    ]
    server.will(stream_of(named(events)))
    assert ask(anthropic(server)).reasoning == "First.\n\nThen."


def test_an_answer_that_ends_while_thinking_says_so(server: ModelServer) -> None:
    events = [start(), block(0, type="thinking", thinking="On and on"), *ending("max_tokens")]
    server.will(stream_of(named(events)))
    assert ask(anthropic(server)).finished.finish_reason is FinishReason.THOUGHT_ONLY


@pytest.mark.parametrize(
    ("fields", "epoch", "thinking"),
    [
        ({}, 0, None),
        ({"thinking": Thinking.ADAPTIVE}, 0, None),
        ({"thinking": Thinking.ALWAYS}, 0, {"type": "adaptive", "display": "summarized"}),
        ({"model_params": {"thinking": {"type": "adaptive"}}}, 0, {"type": "adaptive", "display": "summarized"}),
        (
            {"model_params": {"thinking": {"type": "adaptive", "display": "omitted"}}},
            0,
            {"type": "adaptive", "display": "omitted"},
        ),
        ({"thinking": Thinking.ALWAYS, "is_bound": True}, 0, {"type": "adaptive", "display": "summarized"}),
        (
            {"thinking": Thinking.ALWAYS, "is_bound": True},
            1,
            {"type": "adaptive", "display": "summarized", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
        ),
    ],
)
def test_stale_thinking_may_be_dropped_after_a_rewrite(
    server: ModelServer, fields: dict[str, Any], epoch: int, thinking: dict[str, Any] | None
) -> None:
    server.will(stream_of(named([start(), *TEXT, *ending()])))
    ask(anthropic(server, **fields), replace(HELLO, epoch=epoch))
    [asked] = server.asked
    assert asked.body.get("thinking") == thinking
    beta = "thinking-binding-controls-2026-08-01" if "block_binding" in (thinking or {}) else None
    assert asked.headers.get("anthropic-beta") == beta


def test_a_server_that_wants_its_thinking_gets_an_empty_one() -> None:
    model = info(ANTHROPIC_COMPATIBLE, echo=Echo.CALLS)
    body = request_body(Request("a-model", "", (USER, CALLS, *RESULTS)), owner(), model)
    assert body["messages"][1]["content"][0] == {"type": "thinking", "thinking": ""}


def test_images_and_files_stand_behind_the_text() -> None:
    parts = (ImagePart("image/png", b"png"), FilePart("a.pdf", "application/pdf", b"pdf"))
    [message] = body_of(Message(Role.USER, "Look", parts=parts))["messages"]
    text, image, file = message["content"]
    assert text == {"type": "text", "text": "Look"}
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "cG5n"}
    assert (file["type"], file["title"], file["source"]["data"]) == ("document", "a.pdf", "cGRm")
