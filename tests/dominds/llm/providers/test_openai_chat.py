import json
from dataclasses import replace
from typing import Any

import orjson
import pytest

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.messages import FilePart, ImagePart, Message, Request, Role, ToolCall
from dominds.llm.models.model import Echo, ProviderKind
from dominds.llm.provider import (
    AuthFailed,
    ContextOverflow,
    MalformedStream,
    NetworkFailed,
    Overloaded,
    ProviderError,
    RateLimited,
    RequestRefused,
)
from dominds.llm.providers.lmstudio import LMSTUDIO
from dominds.llm.providers.openai_chat import NO_SIGNATURE, OPENAI_COMPATIBLE, OpenAIChat, request_body
from dominds.llm.providers.vllm import VLLM
from dominds.llm.stream import FinishReason
from dominds.llm.usage import Usage, UsageUnavailable
from tests.dominds.llm.asking import ADD_REMINDER, CLEAR_MIND, HELLO, Outcome, ask, events_of, info, owner
from tests.dominds.llm.model_server import ModelServer, cut_stream_of, data, plain, stream_of

DONE = b"[DONE]"
KEY = "sk-canary-0123456789"
USAGE = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def call(index: int | None, call_id: str | None = None, name: str | None = None, arguments: str = "") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    piece: dict[str, Any] = {"function": function}
    if index is not None:
        piece["index"] = index
    if call_id is not None:
        piece["id"] = call_id
    return delta(tool_calls=[piece])


def chat(server: ModelServer, **options: Any) -> OpenAIChat:
    return OpenAIChat(Endpoint(f"{server.url}/v1", KEY), info(OPENAI_COMPATIBLE, **options))


def test_text_arrives_in_pieces_with_its_usage(server: ModelServer) -> None:
    server.will(
        stream_of(
            data(delta(role="assistant", content="")),
            data(delta(content="Hel"), delta(content="lo")),
            data(delta("stop"), USAGE, DONE),
        )
    )
    outcome = ask(chat(server))
    assert outcome.text == "Hello"
    assert outcome.finished.usage == Usage(9, 3, 12)
    assert outcome.finished.finish_reason == "stop"
    [asked] = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == "Bearer sk-canary-0123456789"
    assert "openai-organization" not in asked.headers
    assert asked.body == {
        "model": "a-model",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_server_without_a_key_is_sent_none(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-operators-own")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-own")
    server.will(stream_of(data(delta("stop", content="Hi"), DONE)))
    assert ask(OpenAIChat(Endpoint(server.url), info(OPENAI_COMPATIBLE))).text == "Hi"
    assert "authorization" not in server.asked[0].headers
    assert "own" not in json.dumps(server.asked[0].headers)


def test_parallel_tool_calls_are_put_together(server: ModelServer) -> None:
    server.will(
        stream_of(
            data(
                call(0, "a", "clear_mind", ""),
                call(0, None, None, '{"reminder'),
                call(1, "b", "add_reminder", '{"x"'),
                call(0, None, None, '_content": "go"}'),
                call(1, None, None, ":1}"),
                delta("tool_calls"),
                USAGE,
                DONE,
            )
        )
    )
    outcome = ask(chat(server))
    assert outcome.finished.tool_calls == (
        ToolCall("a", "clear_mind", '{"reminder_content": "go"}'),
        ToolCall("b", "add_reminder", '{"x":1}'),
    )
    assert outcome.finished.finish_reason == "tool_calls"
    assert "clear_mind" in outcome.tool_text
    assert outcome.text == ""


@pytest.mark.parametrize("index", [0, None])
def test_parallel_calls_of_servers_that_do_not_number_them_stay_apart(server: ModelServer, index: int | None) -> None:
    server.will(
        stream_of(data(call(index, "a", "one", "{}"), call(index, "b", "two", "{}"), delta("tool_calls"), DONE))
    )
    assert [c.name for c in ask(chat(server)).finished.tool_calls] == ["one", "two"]


def test_empty_and_repeated_ids_are_replaced_by_our_own(server: ModelServer) -> None:
    server.will(
        stream_of(
            data(
                call(0, "", "one"),
                call(1, "x", "two"),
                call(2, "x", "three"),
                call(3, "old", "four"),
                delta("stop"),
                DONE,
            )
        )
    )
    past = Message(Role.ASSISTANT, tool_calls=(ToolCall("old", "one", "{}"),))
    calls = ask(chat(server), replace(HELLO, messages=(past,))).finished.tool_calls
    assert calls[1].id == "x"
    assert len({c.id for c in calls} | {"old", ""}) == 6
    assert {c.arguments for c in calls} == {"{}"}


def test_cut_arguments_are_passed_on_raw_when_the_provider_finished(server: ModelServer) -> None:
    server.will(stream_of(data(call(0, "a", "clear_mind", '{"reminder'), delta("length"), USAGE, DONE)))
    finished = ask(chat(server)).finished
    assert finished.tool_calls == (ToolCall("a", "clear_mind", '{"reminder'),)
    assert finished.finish_reason == "length"


@pytest.mark.parametrize(
    ("chunks", "usage"),
    [
        ([delta("stop"), USAGE, DONE], Usage(9, 3, 12)),
        ([{**delta("stop"), "usage": USAGE["usage"]}, DONE], Usage(9, 3, 12)),
        (
            [{**delta(content="x"), "usage": {"prompt_tokens": 9, "completion_tokens": 1}}, delta("stop"), USAGE, DONE],
            Usage(9, 3, 12),
        ),
        ([{**delta("stop"), "usage": None}, DONE], UsageUnavailable()),
        ([delta("stop"), DONE], UsageUnavailable()),
        ([delta("stop"), {"choices": [], "usage": {}}, DONE], UsageUnavailable()),
        ([delta("stop"), {"usage": USAGE["usage"]}, DONE], Usage(9, 3, 12)),
        ([{"choices": [{"delta": {}, "finish_reason": "stop", "usage": USAGE["usage"]}]}, DONE], Usage(9, 3, 12)),
    ],
)
def test_usage_is_found_where_servers_put_it(server: ModelServer, chunks: list[Any], usage: object) -> None:
    server.will(stream_of(data(*chunks)))
    assert ask(chat(server)).finished.usage == usage


def test_a_missing_done_is_forgiven_after_a_finish_reason(server: ModelServer) -> None:
    server.will(stream_of(data(delta(content="x"), delta("stop"))))
    assert ask(chat(server)).text == "x"


def test_reasoning_is_no_part_of_the_answer(server: ModelServer) -> None:
    server.will(stream_of(data(delta(reasoning_content="hm"), delta(content=None), delta("stop", content="x"), DONE)))
    assert ask(chat(server)).text == "x"


@pytest.mark.parametrize(
    "play",
    [
        stream_of(data(delta(content="x"))),  # a regular end, but no finish reason
        stream_of(data(delta(content="x"), DONE)),
        cut_stream_of(data(delta(content="x"))),
        cut_stream_of(data(delta("stop"))),  # cut before its regular end
        stream_of(b'data: {"choices": [{"del'),
        stream_of(b"data: {nonsense}\n\n"),
        stream_of(b"data: 5\n\n"),
        stream_of(data({"choices": [{"delta": {"tool_calls": [7]}}]})),
        stream_of(data({"choices": [3]})),
        stream_of(),
        plain(200, ""),
        plain(200, "<html><title>Welcome</title></html>", "text/html"),
        plain(200, '{"choices": []}'),
    ],
)
def test_an_answer_without_its_explicit_end_is_malformed(server: ModelServer, play: Any) -> None:
    server.will(play)
    with pytest.raises(MalformedStream):
        ask(chat(server))


def test_a_reset_is_a_failure_of_the_network(server: ModelServer) -> None:
    server.will(cut_stream_of(data(delta(content="x")), with_reset=True))
    with pytest.raises(NetworkFailed):
        ask(chat(server))


@pytest.mark.parametrize(
    ("play", "kind"),
    [
        (plain(400, '{"error": {"code": "context_length_exceeded", "message": "long"}}'), ContextOverflow),
        (plain(401, '{"error": {"message": "Incorrect API key provided: sk-canary-0123456789"}}'), AuthFailed),
        (plain(429, "{}"), RateLimited),
        (plain(502, "<html><title>502 Bad Gateway</title></html>", "text/html"), Overloaded),
        (plain(302, "", location="http://elsewhere.example/"), RequestRefused),
        (stream_of(data({"error": {"message": "sk-canary-0123456789 is busy", "code": 503}})), Overloaded),
        (
            stream_of(data(delta(content="x")), data({"error": {"message": "Overloaded", "type": "overloaded_error"}})),
            Overloaded,
        ),
        (
            stream_of(b'event: error\ndata: {"message": "the input length exceeds the context length"}\n\n'),
            ContextOverflow,
        ),
        (plain(200, '{"error": "the request exceeds the available context size"}'), ContextOverflow),
    ],
)
def test_errors_keep_their_kind_and_hide_the_key(server: ModelServer, play: Any, kind: type[ProviderError]) -> None:
    server.will(play)
    with pytest.raises(kind) as caught:
        ask(chat(server))
    assert type(caught.value) is kind
    assert "canary" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)
    assert len(server.asked) == 1, "every retry is the driver's"


def test_the_wait_that_a_server_asks_for_is_handed_on(server: ModelServer) -> None:
    server.will(plain(429, "{}", retry_after="17"))
    with pytest.raises(RateLimited) as caught:
        ask(chat(server))
    assert caught.value.retry_after_seconds == 17


def test_no_server_is_a_failure_of_the_network_that_names_it() -> None:
    with pytest.raises(NetworkFailed, match=r"No connection to 127\.0\.0\.1:9.*Check baseUrl"):
        ask(OpenAIChat(Endpoint("http://127.0.0.1:9/v1"), info(OPENAI_COMPATIBLE)))


def test_a_stream_may_be_cut_at_each_byte(server: ModelServer) -> None:
    stream = data(delta(content="Grüße 😀"), delta("stop"), USAGE, DONE)
    server.will(stream_of(*(stream[at : at + 1] for at in range(len(stream)))))
    outcome = ask(chat(server))
    assert (outcome.text, outcome.finished.usage) == ("Grüße 😀", Usage(9, 3, 12))
    raw = 'data: {"choices":[{"delta":{"content":"ü😀"},"finish_reason":"stop"}]}\r\n\r\ndata:[DONE]\r\n\r\n'.encode()
    for cut in range(1, len(raw)):
        server.will(stream_of(raw[:cut], raw[cut:]))
        assert ask(chat(server)).text == "ü😀"


def test_a_lone_surrogate_is_replaced_both_ways(server: ModelServer) -> None:
    server.will(
        stream_of(b'data: {"choices":[{"delta":{"content":"a\\ud83d"},"finish_reason":"stop"}]}\n\n', data(DONE))
    )
    request = replace(HELLO, messages=(Message(Role.USER, "b\ud83d"),))
    assert ask(chat(server), request).text == "a\ufffd"
    assert server.asked[0].body["messages"][1]["content"] == "b\ufffd"


def test_connections_are_used_again(server: ModelServer) -> None:
    server.will(stream_of(data(delta("stop", content="x"), USAGE, DONE)))
    for _ in range(5):
        ask(chat(server))
    assert {asked.connection for asked in server.asked} == {1}


def test_nothing_is_sent_before_it_runs(server: ModelServer) -> None:
    server.will(stream_of(data(delta("stop"), DONE)))
    stream = chat(server).stream(HELLO)
    assert server.asked == []
    events_of(stream)
    assert len(server.asked) == 1


# Requests

TALK = Request(
    "a-model",
    "",
    (
        Message(Role.USER, "Do it"),
        Message(Role.ASSISTANT, "", (ToolCall("a", "one", '{"x":  1}'), ToolCall("b", "two", '{"cut'))),
        Message(Role.TOOL, "done", tool_call_id="a"),
        Message(Role.TOOL, "", tool_call_id="b"),
        Message(Role.ASSISTANT, "Ready", provider_items=('{"of": "x", "item": {}}',)),
        Message(Role.USER, "Thanks"),
    ),
    tools=(CLEAR_MIND, ADD_REMINDER),
    max_output_tokens=50,
)


def test_a_conversation_is_written_in_the_wire_format() -> None:
    body = orjson.loads(request_body(TALK, owner(), info(OPENAI_COMPATIBLE)))
    assert body["max_tokens"] == 50
    assert [tool["function"]["name"] for tool in body["tools"]] == ["clear_mind", "add_reminder"]
    assert "tool_choice" not in body
    user, assistant, first, second, ready, thanks = body["messages"]
    assert user == {"role": "user", "content": "Do it"}
    assert assistant["content"] is None
    # well-formed arguments stay byte for byte; malformed ones must not break the next request
    assert [c["function"]["arguments"] for c in assistant["tool_calls"]] == [
        '{"x":  1}',
        '{"malformed_arguments":"{\\"cut"}',
    ]
    assert first == {"role": "tool", "tool_call_id": "a", "content": "done"}
    assert second["content"] == ""
    assert ready == {"role": "assistant", "content": "Ready"}
    assert thanks["content"] == "Thanks"


NAMED = {"type": "function", "function": {"name": "clear_mind"}}


@pytest.mark.parametrize(
    ("kind", "fields", "choice"),
    [
        (OPENAI_COMPATIBLE, {}, None),
        (OPENAI_COMPATIBLE, {"supports_tool_choice": True}, NAMED),
        (OPENAI_COMPATIBLE, {"forced_tool": "yes"}, NAMED),
        (OPENAI_COMPATIBLE, {"forced_tool": "required"}, "required"),
        (OPENAI_COMPATIBLE, {"forced_tool": "no"}, None),
        (OPENAI_COMPATIBLE, {"forced_tool": "no", "supports_tool_choice": True}, NAMED),
        (OPENAI_COMPATIBLE, {"forced_tool": "yes", "supports_tool_choice": False}, None),
        (LMSTUDIO, {"supports_tool_choice": True}, "required"),  # it refuses the object form
        (VLLM, {}, NAMED),
    ],
)
def test_a_tool_is_forced_as_the_model_allows_and_the_list_stays_whole(
    kind: ProviderKind, fields: dict[str, Any], choice: Any
) -> None:
    body = orjson.loads(request_body(replace(TALK, force="clear_mind"), owner(), info(kind, **fields)))
    assert [tool["function"]["name"] for tool in body["tools"]] == ["clear_mind", "add_reminder"]
    assert body.get("tool_choice") == choice


def test_a_list_of_one_is_named_by_required() -> None:
    request = replace(TALK, tools=(CLEAR_MIND,), force="clear_mind")
    model = info(OPENAI_COMPATIBLE, supports_tool_choice=True)
    assert orjson.loads(request_body(request, owner(), model))["tool_choice"] == "required"


def test_a_model_that_cannot_think_and_be_forced_is_told_not_to_think() -> None:
    model = info(OPENAI_COMPATIBLE, forced_tool="thinking_off", thinking_off={"enable_thinking": False})
    assert "enable_thinking" not in orjson.loads(request_body(TALK, owner(), model))
    forced = orjson.loads(request_body(replace(TALK, force="clear_mind"), owner(), model))
    assert (forced["enable_thinking"], forced["tool_choice"]) == (False, NAMED)


def test_params_and_the_models_output_field_are_sent() -> None:
    model = info(OPENAI_COMPATIBLE, max_tokens_field="max_completion_tokens", model_params={"reasoning_split": True})
    body = orjson.loads(request_body(TALK, owner(), model))
    assert (body["max_completion_tokens"], body["reasoning_split"]) == (50, True)
    assert "max_tokens" not in body


# Reasoning


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
    return body["messages"][0]


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


# Images and files


PNG = ImagePart("image/png", b"png")
PDF = FilePart("a.pdf", "application/pdf", b"pdf")


def test_images_and_files_stand_behind_the_text() -> None:
    request = Request("a-model", "", (Message(Role.USER, "Look", parts=(PNG, PDF)),))
    [message] = orjson.loads(request_body(request, owner(), info(OPENAI_COMPATIBLE)))["messages"]
    assert message["content"] == [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"}},
    ]


def test_a_blind_model_is_sent_nothing(server: ModelServer) -> None:
    request = replace(HELLO, messages=(Message(Role.USER, "Look", parts=(PNG,)),))
    with pytest.raises(RequestRefused, match="stub/a-model takes no image"):
        ask(chat(server, modalities=("text",)), request)
    assert server.asked == []
