"""The contract of all readers: whatever shape an answer has, it is read, or fails in the provider's words."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.json_text import is_whole
from dominds.llm.messages import Request, ToolSpec
from dominds.llm.models.model import Echo
from dominds.llm.providers import reading
from dominds.llm.providers.anthropic_reader import MessagesReader
from dominds.llm.providers.chat_reader import ChatReader
from dominds.llm.providers.reading import Reader
from dominds.llm.providers.responses_reader import ResponsesReader
from dominds.llm.stream import CUT_SHORT, FinishReason
from dominds.llm.usage import Usage
from tests.dominds.llm.asking import HELLO, owner
from tests.dominds.llm.providers.answers import DONE, OSLO, ROME, event, read
from tests.dominds.llm.providers.families import FAMILIES, NAMELESS, SILENT, THOUGHT

COUNTS = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
WEATHER = replace(HELLO, tools=(ToolSpec("get_weather", "", {"type": "object"}),))


@pytest.fixture(autouse=True)
def _nothing_is_known_of_any_model() -> None:
    reading.forget()


# The same answer in three formats


class Chat:
    name = "chat"

    def reader(self, request: Request = HELLO, echo: Echo = Echo.SENT) -> Reader:
        return ChatReader(request, owner(), echo)

    def chunk(self, delta: Any = None, finish: Any = None, **extra: Any) -> bytes:
        choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
        return event({"object": "chat.completion.chunk", "choices": [choice], **extra})

    def text(self, text: Any) -> bytes:
        return self.chunk({"content": text})

    def call(self, at: int, name: str, arguments: str) -> bytes:
        head, *rest = [arguments[start : start + 5] for start in range(0, len(arguments), 5)] or [""]
        pieces = [{"index": at, "id": f"id{at}", "function": {"name": name, "arguments": head}}]
        pieces += [{"index": at, "function": {"arguments": piece}} for piece in rest]
        return b"".join(self.chunk({"tool_calls": [piece]}) for piece in pieces)

    def end(self, word: Any) -> bytes:
        return self.chunk({}, word) + event({"choices": [], "usage": COUNTS}) + DONE


class Messages:
    name = "messages"

    def __init__(self) -> None:
        self._at = -1

    def reader(self, request: Request = HELLO) -> Reader:
        self._at = -1
        return MessagesReader(request, owner(), needs_signature=False)

    def _block(self, start: dict[str, Any], *deltas: dict[str, Any]) -> bytes:
        self._at += 1
        at = {"index": self._at}
        events = [{"type": "content_block_start", **at, "content_block": start}]
        events += [{"type": "content_block_delta", **at, "delta": delta} for delta in deltas]
        return b"".join(event(one, str(one["type"])) for one in events)

    def text(self, text: Any) -> bytes:
        return self._block({"type": "text", "text": ""}, {"type": "text_delta", "text": text})

    def call(self, at: int, name: str, arguments: str) -> bytes:
        start = {"type": "tool_use", "id": f"id{at}", "name": name, "input": {}}
        return self._block(start, {"type": "input_json_delta", "partial_json": arguments})

    def end(self, word: Any) -> bytes:
        usage = {"input_tokens": 100, "output_tokens": 10}
        delta = {"type": "message_delta", "delta": {"stop_reason": word}, "usage": usage}
        return event(delta, "message_delta") + event({"type": "message_stop"}, "message_stop")


class Responses:
    name = "responses"

    def reader(self, request: Request = HELLO) -> Reader:
        return ResponsesReader(request, owner())

    def text(self, text: Any) -> bytes:
        return event({"type": "response.output_text.delta", "delta": text})

    def call(self, at: int, name: str, arguments: str) -> bytes:
        item = {"type": "function_call", "id": f"fc{at}", "call_id": f"id{at}", "name": name, "arguments": ""}
        place = {"output_index": at + 1, "item_id": f"fc{at}"}
        return b"".join(
            map(
                event,
                (
                    {"type": "response.output_item.added", "output_index": at + 1, "item": item},
                    {"type": "response.function_call_arguments.delta", **place, "delta": arguments},
                ),
            )
        )

    def end(self, word: Any) -> bytes:
        usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
        response: dict[str, Any] = {"object": "response", "status": "completed", "output": [], "usage": usage}
        if word is None or word.lower() in ("stop", "end_turn", "tool_calls"):
            return event({"type": "response.completed", "response": response})
        response |= {"status": "incomplete", "incomplete_details": {"reason": word}}
        return event({"type": "response.incomplete", "response": response})


Format = Chat | Messages | Responses
in_all = pytest.mark.parametrize("wire", [Chat(), Messages(), Responses()], ids=lambda wire: wire.name)


@in_all
@pytest.mark.parametrize(
    "word",
    [
        "error",
        "abort",
        "network_error",
        "insufficient_system_resource",
        "ERROR",
        "user-cancel",
        "MALFORMED_FUNCTION_CALL",
        "failed",
    ],
)
def test_an_end_by_failure_fails_with_its_word(wire: Format, word: str) -> None:
    result = read(wire.reader(), wire.text("The who") + wire.end(word))
    assert word in result.error and result.finished is None


@in_all
@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("MAX_TOKENS", FinishReason.LENGTH),
        ("maxTokens", FinishReason.LENGTH),
        ("length", FinishReason.LENGTH),
        ("SAFETY", FinishReason.REFUSAL),
        ("content-filter", FinishReason.REFUSAL),
        ("FINISH_REASON_RECITATION", FinishReason.REFUSAL),
        ("model_context_window_exceeded", FinishReason.WINDOW_EXCEEDED),
        ("STOP", FinishReason.STOP),
        ("END_TURN", FinishReason.STOP),
        ("tired", FinishReason.OTHER),
    ],
)
def test_words_of_ends_are_understood_in_every_spelling(wire: Format, word: str, reason: FinishReason) -> None:
    result = read(wire.reader(), wire.text("All of it.") + wire.end(word))
    assert (result.text, result.finish, result.error) == ("All of it.", reason, "")


@in_all
def test_calls_that_are_said_but_missing_are_no_whole_answer(wire: Format) -> None:
    if isinstance(wire, Responses):
        return  # says nothing of calls at its end
    result = read(wire.reader(), wire.text("I look.") + wire.end("tool_calls"))
    assert result.finish == FinishReason.OTHER


KEEP_ALIVES = [
    b": ping\n\n",
    b"event: keepalive\n\n",
    b"data:\n\n",
    b"data: \n\n",
    b'data: ""\n\n',
    b"data: null\n\n",
    b"data: {}\n\n",
    b"event: ping\ndata:\n\n",
    b"event: ping\ndata: ping\n\n",
    b"event: ping\ndata: 2026-11-25T21:00:00Z\n\n",
    b"event: heartbeat\ndata: {half\n\n",
    b"data: ping\n\n",
    b"data: : OPENROUTER PROCESSING\n\n",
    b"data: : PROCESSING\n\n",
    b"data: PROCESSING\n\n",
    b'data: {"type":"ping"}\n\n',
]


@in_all
@pytest.mark.parametrize("keep_alive", KEEP_ALIVES)
def test_keep_alives_are_skipped(wire: Format, keep_alive: bytes) -> None:
    reader = wire.reader()
    parts = [wire.text("All "), wire.text("of it."), wire.end("stop")]
    result = read(reader, keep_alive + keep_alive.join(parts))
    assert (result.text, result.finish, result.error) == ("All of it.", FinishReason.STOP, "")


@in_all
@pytest.mark.parametrize("damage", [b'data: {"choices": [{"del\n\n', b"data: 5\n\n", b"data: hello\n\n"])
def test_damage_fails(wire: Format, damage: bytes) -> None:
    assert read(wire.reader(), wire.text("All ") + damage + wire.end("stop")).error


@in_all
def test_an_answer_that_ends_with_done_is_kept(wire: Format) -> None:
    result = read(wire.reader(), wire.text("All of it.") + DONE)
    assert (result.text, result.finish, result.error) == ("All of it.", FinishReason.STOP, "")


@in_all
def test_done_behind_nothing_is_no_answer(wire: Format) -> None:
    assert read(wire.reader(), DONE).error
    assert read(wire.reader(), b"").error


@in_all
@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "The engine died.", "code": 502}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "The engine died."}},
        {"object": "error", "message": "The engine died.", "code": 500},
        {"type": "error", "message": "The engine died."},
    ],
)
def test_an_error_inside_the_stream_is_told(wire: Format, error: Any) -> None:
    assert "The engine died." in read(wire.reader(), wire.text("The who") + event(error) + wire.end("stop")).error


@pytest.mark.parametrize(
    "body",
    [
        event({"choices": [{"delta": {}, "error": {"message": "Died.", "code": 502}, "finish_reason": "error"}]}),
        event({"choices": None, "base_resp": {"status_code": 1004, "status_msg": "Died."}}),
        event({"code": 500, "msg": "Died."}),
        event({"detail": "Died."}),
    ],
)
def test_an_error_in_another_shape_is_told(body: bytes) -> None:
    assert "Died." in read(Chat().reader(), Chat().text("The who") + body + DONE).error


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_response_that_did_not_complete_fails(status: str) -> None:
    wire = Responses()
    response = {"status": status, "error": {"code": "server_error", "message": "Died."}, "output": []}
    ended = event({"type": "response.completed", "response": response})
    assert "Died." in read(wire.reader(), wire.text("The who") + ended).error
    bare = event({"type": "response.completed", "response": {"status": status, "output": []}})
    assert status in read(wire.reader(), wire.text("The who") + bare).error


# Text in parts, and whole answers


@pytest.mark.parametrize(
    ("contents", "thought"),
    [
        ([[{"type": "text", "text": "The whole "}], [{"type": "text", "text": "answer."}]], ""),
        (["The whole ", [{"type": "reference", "reference_ids": [1]}], "answer."], ""),
        ([[{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}], "The whole answer."], "Hm."),
        (
            [
                [
                    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
                    {"type": "text", "text": "The whole answer."},
                ]
            ],
            "Hm.",
        ),
        ([{"type": "text", "text": "The whole answer."}], ""),
        ([[{"type": "output_text", "text": "The whole "}, "answer."]], ""),
    ],
)
def test_text_in_parts_is_read(contents: list[Any], thought: str) -> None:
    wire = Chat()
    result = read(wire.reader(), b"".join(map(wire.text, contents)) + wire.end("stop"))
    assert (result.text, result.thought) == ("The whole answer.", thought)


WHOLE: dict[str, tuple[Callable[[], Reader], dict[str, Any]]] = {
    "chat": (
        Chat().reader,
        {
            "object": "chat.completion",
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": "I look.",
                        "reasoning_content": "Hm.",
                        "tool_calls": [{"id": "a", "function": {"name": OSLO[0], "arguments": OSLO[1]}}],
                    },
                    "finish_reason": "tool_calls",
                }
            ],
            "usage": COUNTS,
        },
    ),
    "messages": (
        Messages().reader,
        {
            "type": "message",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "a", "name": OSLO[0], "input": {"city": "Oslo"}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 100, "output_tokens": 10},
        },
    ),
    "responses": (
        Responses().reader,
        {
            "object": "response",
            "status": "completed",
            "error": None,
            "output": [
                {"type": "message", "content": [{"type": "output_text", "text": "I look."}]},
                {"type": "function_call", "call_id": "a", "name": OSLO[0], "arguments": OSLO[1]},
            ],
            "usage": {"input_tokens": 100, "output_tokens": 10},
        },
    ),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_whole_answer_in_place_of_a_stream_is_read(name: str, indent: int | None, is_stream: bool) -> None:
    reader, document = WHOLE[name]
    result = read(reader(), event(document) if is_stream else json.dumps(document, indent=indent).encode())
    assert (result.text, result.calls, result.finish) == ("I look.", [OSLO], FinishReason.TOOL_CALLS)
    assert result.finished and isinstance(result.finished.usage, Usage)


def test_a_response_that_lost_its_beginning_is_said_whole() -> None:
    """Some gateways swallow the first piece, and repeat the whole at the end."""
    output = [{"type": "message", "content": [{"type": "output_text", "text": "All of it."}]}]
    ended = event({"type": "response.completed", "response": {"status": "completed", "output": output}})
    assert read(Responses().reader(), Responses().text(" of it.") + ended).text == "All of it."


def test_a_message_behind_its_pieces_is_not_said_twice() -> None:
    wire = Chat()
    whole = event({"choices": [{"message": {"content": "All of it."}, "finish_reason": "stop"}]})
    assert read(wire.reader(), wire.text("All ") + wire.text("of it.") + whole + DONE).text == "All of it."


@in_all
@pytest.mark.parametrize(
    "pieces",
    [["Hm.</think>", "The answer."], ["Hm.", "</thi", "nk>\n\nThe answer."], ["H" * 900, "</think>The answer."]],
)
def test_thinking_without_its_opening_tag_is_thinking(wire: Format, pieces: list[str]) -> None:
    for _ in range(2):  # the second time it is known
        result = read(wire.reader(), b"".join(map(wire.text, pieces)) + wire.end("stop"))
        assert result.text == "The answer." and result.thought.startswith("H") and "</" not in result.thought


# Calls


@in_all
def test_two_calls_stay_two(wire: Format) -> None:
    reader = wire.reader()
    result = read(reader, wire.call(0, *OSLO) + wire.call(1, *ROME) + wire.end("tool_calls"))
    assert (result.calls, result.finish) == ([OSLO, ROME], FinishReason.TOOL_CALLS)


def piece(arguments: str, name: str = "", **beside: Any) -> dict[str, Any]:
    return {"function": {"arguments": arguments, **({"name": name} if name else {})}, **beside}


@pytest.mark.parametrize(
    ("deltas", "calls"),
    [
        ([[piece(OSLO[1], OSLO[0])], [piece(ROME[1], ROME[0])]], [OSLO, ROME]),
        ([[piece(OSLO[1], OSLO[0]), piece(ROME[1], ROME[0])]], [OSLO, ROME]),
        ([[piece(OSLO[1], OSLO[0], index=0, id="")], [piece(ROME[1], ROME[0], index=0, id="")]], [OSLO, ROME]),
        ([[piece(OSLO[1], OSLO[0], index=None)], [piece("", "stop_all", index=None)]], [OSLO, ("stop_all", "{}")]),
        ([[piece("", "one")], [piece("", "two")]], [("one", "{}"), ("two", "{}")]),
        ([[piece("", OSLO[0], id="a")], [piece('{"city":', OSLO[0])], [piece('"Oslo"}', OSLO[0])]], [OSLO]),
        ([[piece('{"city":', OSLO[0], index=0.0)], [piece('"Oslo"}', index=0.0)]], [OSLO]),
        ([[piece(OSLO[1], OSLO[0], id="a")], [piece(OSLO[1], OSLO[0], id="a")]], [OSLO]),
        (
            [[piece(part, OSLO[0], id=part, index=0)] for part in ('{"city"', ':"Os', 'lo"}')],  # a new id each time
            [OSLO],
        ),
        ([[piece(OSLO[1], OSLO[0], id="a", index=1)], [piece(ROME[1], ROME[0], id="b", index=2)]], [OSLO, ROME]),
    ],
)
def test_calls_without_numbers_or_ids_are_told_apart(deltas: list[Any], calls: list[tuple[str, str]]) -> None:
    wire = Chat()
    body = b"".join(wire.chunk({"tool_calls": pieces}) for pieces in deltas) + wire.end("tool_calls")
    assert read(wire.reader(), body).calls == calls


def test_a_call_of_the_old_form_is_read() -> None:
    wire = Chat()
    deltas = [
        {"function_call": {"name": OSLO[0], "arguments": '{"city":'}},
        {"function_call": {"arguments": '"Oslo"}'}},
    ]
    assert read(wire.reader(), b"".join(map(wire.chunk, deltas)) + wire.end("function_call")).calls == [OSLO]


def test_blocks_of_one_index_stay_apart() -> None:
    starts = [
        {"type": "tool_use", "id": call_id, "name": OSLO[0], "input": {"city": city}}
        for call_id, city in (("a", "Oslo"), ("b", "Rome"))
    ]
    body = b"".join(event({"type": "content_block_start", "index": 0, "content_block": start}) for start in starts)
    wire = Messages()
    assert len(read(wire.reader(), body + wire.end("tool_use")).calls) == 2
    bare = body.replace(b', "index": 0', b"")
    assert len(read(wire.reader(), bare + wire.end("tool_use")).calls) == 2


@in_all
@pytest.mark.parametrize("arguments", ["", '{"city":"Os', '{"city":{"name":"Oslo"}'])
def test_a_call_that_was_cut_off_says_so(wire: Format, arguments: str) -> None:
    reader = wire.reader()
    result = read(reader, wire.call(0, *ROME) + wire.call(1, "write", arguments) + wire.end("max_tokens"))
    assert result.finish == FinishReason.LENGTH
    assert [is_whole(written) for _, written in result.calls] == [True, False]


WRITTEN = {
    "DeepSeek": '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city">'
    "a < b</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
    "DeepSeek, other bars": '<‖DSML‖ calls>\n<‖DSML‖ invoke name="get_weather">\n</‖DSML‖ invoke>\n</‖DSML‖ calls>',
    "DeepSeek V3": "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{}\n```<｜tool▁call▁end｜>",
    "Kimi": '<|tool_call_begin|> functions.get_weather:0 <|tool_call_argument_begin|> {"a": "b"} <|tool_call_end|>',
    "Kimi, other ids": "<|tool_call_begin|>functions_get_weather_1<|tool_call_argument_begin|>{}<|tool_call_end|>",
    "Hermes": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
    "Hermes, arguments first": '<tool_call>\n{"arguments":{"city":"Oslo"},"name":"get_weather"}\n</tool_call>',
    "Hermes, cut off": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os',
    "Qwen": "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
    "GLM": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
    "Gemma": '<|tool_call>call:get_weather{<|"|>city<|"|>: <|"|>Oslo<|"|>}<tool_call|>',
    "MiniMax": '<minimax:tool_call>\n<invoke name="get_weather">\n</invoke>\n</minimax:tool_call>',
    "Qwen 3.6": '<tool_calls>\n<get_weather city="Oslo" />\n</tool_calls>',
    "MiniMax M2": '[TOOL_CALL] { "tool": "get_weather", "args": { "city": "Oslo" } } [/TOOL_CALL]',
    "Gemini": "declaration:default_api:get_weather{city:Oslo}",
    "Gemma without marks": "call:get_weather{city:Oslo}",
    "Mistral": '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
    "Mistral since 3.2": '[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}',
    "gpt-oss": '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo"}<|call|>',
    "gpt-oss without marks": 'commentary to=functions.get_weather json{"city":"Oslo"}',
}
TOLD = [
    f"Write it so:\n```\n{WRITTEN['Hermes']}\n```",
    f"`{WRITTEN['Qwen']}`",
    WRITTEN["Hermes"] + "\nThis is how a call looks.",
    WRITTEN["Hermes"].replace("get_weather", "another"),
    "commentary to=functions: none",
    "<tool_call> without a name",
    "In time, call:get_weather{city:Oslo}",
    "call:get_weather is its name.",
]


@in_all
@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("before", ["", "I look.\n\n"])
def test_a_call_that_came_as_text_is_no_answer(wire: Format, text: str, before: str) -> None:
    if before and text.startswith("commentary"):
        return  # stands at the beginning alone
    result = read(wire.reader(WEATHER), *map(wire.text, (before, text[:9], text[9:])), wire.end("stop"))
    assert "the call of get_weather came as text" in result.error
    assert not read(wire.reader(), wire.text(before + text) + wire.end("stop")).error  # where nothing is offered
    cut = read(wire.reader(WEATHER), wire.text(before + text) + wire.end("length"))
    assert cut.finish == FinishReason.LENGTH
    beside = read(wire.reader(WEATHER), wire.text(before + text) + wire.call(0, *OSLO) + wire.end("tool_calls"))
    assert beside.calls == [OSLO]


@in_all
def test_a_call_that_lost_its_name_is_no_answer(wire: Format) -> None:
    """As gpt-oss on TensorRT-LLM (NVIDIA/TensorRT-LLM#9256)."""
    text = wire.text('<|channel|>commentary<|message|>{"path": "/"}<|end|>')
    assert "the call of a tool came as text" in read(wire.reader(WEATHER), text + wire.end("stop")).error
    assert not read(wire.reader(), text + wire.end("stop")).error


@in_all
@pytest.mark.parametrize("text", TOLD)
def test_talk_about_calls_is_an_answer(wire: Format, text: str) -> None:
    result = read(wire.reader(WEATHER), wire.text(text) + wire.end("stop"))
    assert (result.text, result.error) == (text, "")


def test_a_call_in_the_thoughts_of_an_empty_answer_fails() -> None:
    wire = Chat()
    thought = wire.chunk({"reasoning_content": f"I look. {WRITTEN['Kimi']}"})
    assert "came as text" in read(wire.reader(WEATHER), thought + wire.end("stop")).error
    assert not read(wire.reader(WEATHER), thought + wire.text("Done.") + wire.end("stop")).error


# Whatever happens on the way


def recorded(wire: Format, seed: int) -> list[bytes]:
    """The events of an answer that thinks nothing, says something and calls twice."""
    draw = random.Random(seed)
    words = [wire.text(f"word{number} ") for number in range(draw.randint(0, 4))]
    calls = [wire.call(number, *call) for number, call in enumerate((OSLO, ROME)[: draw.randint(0, 2)])]
    body = b"".join([*words, *calls, wire.end("tool_calls" if calls else "stop")])
    return [part + b"\n\n" for part in body.split(b"\n\n") if part]


@in_all
@given(seed=st.integers(0, 20), data=st.data())
def test_a_mangled_stream_is_whole_or_fails(wire: Format, seed: int, data: st.DataObject) -> None:
    """Cut off, with events repeated or in another order. Where it ends as it should and is taken for whole, nothing
    that it said is missing."""
    wire.reader()
    _is_whole_or_fails(wire.reader(), recorded(wire, seed), data)


def _is_whole_or_fails(reader: Reader, events: list[bytes], data: st.DataObject, *, keeps_order: bool = False) -> None:
    places = list(range(len(events)))
    mangled = data.draw(
        st.one_of(
            st.integers(0, len(events)).map(lambda size: places[:size]),
            st.just(places) if keeps_order else st.permutations(places),
            st.lists(st.sampled_from(places), max_size=2).map(lambda again: sorted([*places, *again])),
        )
    )
    result = read(reader, b"".join(events[place] for place in mangled))
    if result.error or result.finish in CUT_SHORT:
        return
    seen = [events[place] for place in mangled]
    end = next((at for at, one in enumerate(seen) if _is_end(one)), len(seen))
    for one in seen[:end]:
        for word in ("word0", "word1", "word2", "word3"):
            assert word.encode() not in one or word in result.text + result.thought
        for _, arguments in (OSLO, ROME):
            is_there = any(form in one for form in (arguments.encode(), json.dumps(arguments).encode()))
            assert not is_there or any(arguments == made for _, made in result.calls)


def _is_end(one: bytes) -> bool:
    return b"[DONE]" in one or b"message_stop" in one or b"response.completed" in one


@pytest.mark.parametrize("name", FAMILIES)
def test_every_familys_stream_is_read(name: str) -> None:
    reader, events = FAMILIES[name]
    result = read(reader(), b"".join(events))
    assert (result.text, result.thought, result.error) == ("word0 word1 ", "" if name in SILENT else THOUGHT, "")
    assert [json.loads(arguments) for _, arguments in result.calls] == [{"city": "Oslo"}, {"city": "Rome"}]
    assert result.finish == FinishReason.TOOL_CALLS or name in ("chat: Ollama", "chat: Gemini")
    assert result.finished and isinstance(result.finished.usage, Usage) and result.finished.usage.prompt_tokens == 100


@given(name=st.sampled_from(sorted(FAMILIES)), data=st.data())
def test_a_mangled_stream_of_any_family_is_whole_or_fails(name: str, data: st.DataObject) -> None:
    reader, events = FAMILIES[name]
    _is_whole_or_fails(reader(), events, data, keeps_order=name == NAMELESS)


@given(name=st.sampled_from(sorted(FAMILIES)), cuts=st.sets(st.integers(0, 6000)))
def test_where_the_bytes_of_any_family_are_cut_does_not_matter(name: str, cuts: set[int]) -> None:
    reader, events = FAMILIES[name]
    body = b"".join(events)
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    result = read(reader(), *(body[start:end] for start, end in pairwise(places)))
    assert replace(result, finished=None) == replace(read(reader(), body), finished=None)


@in_all
@given(cuts=st.sets(st.integers(0, 2000)), seed=st.integers(0, 20))
def test_where_the_bytes_are_cut_does_not_matter(wire: Format, cuts: set[int], seed: int) -> None:
    wire.reader()
    body = b"".join(recorded(wire, seed))
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    result = read(wire.reader(), *(body[start:end] for start, end in pairwise(places)))
    assert replace(result, finished=None) == replace(read(wire.reader(), body), finished=None)
