"""Chat completions: answers, tool calls, usage and errors."""

import json
from dataclasses import replace
from typing import Any

import pytest

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.messages import Message, Role, ToolCall
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
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE, OpenAIChat
from dominds.llm.usage import Usage, UsageUnavailable
from tests.dominds.llm.asking import HELLO, ask, events_of, info
from tests.dominds.llm.model_server import ModelServer, cut_stream_of, data, plain, stream_of
from tests.dominds.llm.providers.chat_chunks import DONE, USAGE, call, chat, delta


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
        stream_of(data(delta(content=None), DONE)),
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
    with pytest.raises(NetworkFailed, match=r"No connection to 127\.0\.0\.1:9.*under Models, or in the server"):
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
