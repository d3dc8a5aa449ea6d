"""Answers in shapes that gateways and compatible servers make of each format: all that they say is read."""

import json
from dataclasses import replace
from typing import Any

import pytest

from dominds.llm.messages import ToolSpec
from dominds.llm.models.model import Echo
from dominds.llm.providers import reading
from dominds.llm.providers.anthropic_reader import MessagesReader
from dominds.llm.providers.chat_reader import ChatReader
from dominds.llm.providers.responses_reader import ResponsesReader
from dominds.llm.stream import FinishReason
from dominds.llm.usage import Usage
from tests.dominds.llm.asking import HELLO, owner
from tests.dominds.llm.providers.answers import DONE, OSLO, ROME, Read, event, read

TWO = [OSLO, ROME]
CHAT_COUNTS = {"prompt_tokens": 100, "completion_tokens": 10}
COUNTS = {"input_tokens": 100, "output_tokens": 10}


@pytest.fixture(autouse=True)
def _nothing_is_known_of_any_model() -> None:
    reading.forget()


def chat(*choices: Any, **last: Any) -> Read:
    body = b"".join(event({"choices": [choice]}) for choice in choices)
    return read(ChatReader(HELLO, owner(), Echo.SENT), body + (event(last) if last else b"") + DONE)


def delta(finish: Any = None, **fields: Any) -> dict[str, Any]:
    return {"delta": fields, "finish_reason": finish}


def messages(*events: dict[str, Any]) -> Read:
    return read(MessagesReader(HELLO, owner(), needs_signature=False), b"".join(map(event, events)))


def block(at: Any, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    place = {} if at is None else {"index": at}
    pieces = [{"type": "content_block_delta", **place, "delta": each} for each in deltas]
    return [{"type": "content_block_start", **place, "content_block": start}, *pieces]


def message_end(word: Any, **fields: Any) -> list[dict[str, Any]]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": word}, "usage": COUNTS, **fields},
        {"type": "message_stop"},
    ]


def responses(*events: dict[str, Any], **response: Any) -> Read:
    whole = {"status": "completed", "output": [], "usage": COUNTS, **response}
    ended = {"type": "response.completed", "response": whole}
    return read(ResponsesReader(HELLO, owner()), b"".join(map(event, (*events, ended))))


def said(text: Any) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "delta": text}


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "output_text", "text": text}]}


GLUED = [
    ('{}{"city":"Oslo"}', [OSLO]),  # Bedrock begins with an empty one
    ('{"city":"Oslo"}{"city":"Oslo"}', [OSLO]),
    ('{"city":"Oslo"} {"city":"Rome"}', TWO),  # Gemini, of two calls at once
    (json.dumps('{"city":"Oslo"}'), [OSLO]),
    ("{}{}", [("get_weather", "{}")]),
    ('{"city":"}{"}', [("get_weather", '{"city":"}{"}')]),
    ('{"city":"Oslo"}, and', [("get_weather", '{"city":"Oslo"}, and')]),
    ("[[" * 9_000, [("get_weather", "[[" * 9_000)]),
]


@pytest.mark.parametrize(("arguments", "calls"), GLUED, ids=range(len(GLUED)))
def test_arguments_of_several_objects_are_those_of_several_calls(arguments: str, calls: Any) -> None:
    call = {"id": "a", "name": "get_weather"}
    said_so = {"index": 0, "id": "a", "function": {"name": "get_weather", "arguments": arguments}}
    start, piece = {"type": "tool_use", **call, "input": {}}, {"type": "input_json_delta", "partial_json": arguments}
    item = {"type": "function_call", "call_id": "a", "name": "get_weather", "arguments": arguments}
    told = [
        chat(delta("tool_calls", tool_calls=[said_so])),
        messages(*block(0, start, piece), *message_end("tool_use")),
        responses(output=[item]),
    ]
    assert [one.calls for one in told] == [calls] * 3


# Ends


@pytest.mark.parametrize("word", ["length", "content_filter", "tired"])
@pytest.mark.parametrize("behind", ["stop", "tool_calls", "null", None])
def test_a_plain_end_does_not_hide_another(word: str, behind: Any) -> None:
    alone = chat(delta(content="All"), delta(word))
    assert chat(delta(content="All"), delta(word), delta(behind)).finish == alone.finish != FinishReason.STOP
    told = messages(*block(0, {"type": "text", "text": "All"}), message_end(word)[0], *message_end(behind))
    assert told.finish == alone.finish


@pytest.mark.parametrize(
    ("fields", "finish"),
    [
        ({"incomplete_details": {"reason": "max_output_tokens"}}, FinishReason.LENGTH),
        ({"status": "incomplete", "incomplete_details": "MAX_TOKENS"}, FinishReason.LENGTH),
        ({"status": "incomplete"}, FinishReason.OTHER),
        ({"status": "tired"}, FinishReason.OTHER),
        ({"status": "COMPLETED"}, FinishReason.STOP),
    ],
)
def test_a_response_says_its_end_in_any_field(fields: Any, finish: FinishReason) -> None:
    assert responses(said("All"), **fields).finish == finish


@pytest.mark.parametrize(
    ("word", "native", "finish"),
    [
        ("function_call_filter: MALFORMED_FUNCTION_CALL", None, ""),  # Google
        ("stop", "MALFORMED_FUNCTION_CALL", ""),  # OpenRouter
        ("stop", "MAX_TOKENS", FinishReason.LENGTH),
        ("stop", "whatever", FinishReason.STOP),
        ("content_filter: RECITATION", None, FinishReason.REFUSAL),
    ],
)
def test_an_end_in_two_words_means_the_one_that_says_more(word: str, native: Any, finish: str) -> None:
    result = chat(delta(content="The whole"), delta(word) | {"native_finish_reason": native})
    assert (result.finish, bool(result.error)) == (finish, not finish)


@pytest.mark.parametrize("status", ["FAILED", "cancelled", "error", "aborted"])
def test_a_response_that_failed_is_no_answer(status: str) -> None:
    assert responses(said("All"), status=status).error


def test_an_end_in_the_last_event_of_a_message_counts() -> None:
    text = block(0, {"type": "text", "text": "All"})
    assert messages(*text, {"type": "message_stop", "stop_reason": "max_tokens"}).finish == FinishReason.LENGTH
    assert messages(*text, {"type": "message_delta", "stop_reason": "max_tokens"}).finish == FinishReason.LENGTH


@pytest.mark.parametrize(
    "choice",
    [
        {"delta": {"error": {"message": "Died."}}, "finish_reason": "stop"},
        {"message": {"error": "Died."}, "finish_reason": "stop"},
        {"error": "Died.", "finish_reason": "stop"},
    ],
)
def test_an_error_inside_a_choice_is_an_error(choice: Any) -> None:
    assert "Died." in chat(delta(content="All"), choice).error


def test_errors_in_other_places_are_errors() -> None:
    assert "Died." in chat(delta(content="All"), errors=[{"message": "Died."}]).error
    assert "Died." in messages({"type": "message_delta", "delta": {"stop_reason": "end_turn", "error": "Died."}}).error
    assert "Died." in messages({"type": "message_start", "message": {"error": {"message": "Died."}}}).error


def test_events_without_a_type_are_known_by_their_names() -> None:
    body = event({"delta": "All of it."}, "response.output_text.delta")
    body += event({"response": {"status": "completed"}}, "response.completed")
    assert read(ResponsesReader(HELLO, owner()), body).text == "All of it."


# Text


@pytest.mark.parametrize(
    "content",
    [
        [[{"type": "text", "text": "All of it."}]],
        [None, {"type": None, "text": "All of it."}],
        [{"type": "TEXT", "text": "All "}, {"type": "input_text", "text": "of it."}],
        [{"type": "markdown", "text": {"value": "All of it."}}, {"type": "citation", "text": "p. 3"}],
        [{"type": "message", "content": [{"type": "output_text", "text": "All of it."}]}],
        [{"type": "THINKING", "thinking": "Hm."}, {"type": "reasoning_content", "text": "Hm."}, "All of it."],
    ],
)
def test_parts_of_any_type_are_read_in_every_format(content: Any) -> None:
    assert chat(delta(content=content), delta("stop")).text == "All of it."
    assert chat({"message": {"content": content}, "finish_reason": "stop"}).text == "All of it."
    text = {"type": "text_delta", "text": content}
    assert messages(*block(0, {"type": "text", "text": None}, text), *message_end("end_turn")).text == "All of it."
    assert responses(said(None), said(content)).text == "All of it."


@pytest.mark.parametrize(
    "choices",
    [
        [{"message": {"content": "All "}}, {"message": {"content": "of it."}}, delta("stop")],
        [{"message": {"content": "All "}}, {"message": {"content": "All of it."}}, delta("stop")],
        [{"text": "All "}, {"text": "of it."}, delta("stop")],
        [{"delta": {"role": "assistant"}, "message": {"content": "All of it."}, "finish_reason": "stop"}],
        [delta(content="All of it."), {"message": {"content": "All of it."}, "finish_reason": "stop"}],
        [{"delta": "All of it.", "finish_reason": "stop"}],
    ],
)
def test_messages_in_place_of_pieces_are_read_once(choices: list[Any]) -> None:
    assert chat(*choices).text == "All of it."


PART_DONE = {"type": "response.content_part.done", "part": {"type": "output_text", "text": "All of it."}}


@pytest.mark.parametrize(
    ("events", "output"),
    [
        ([{"type": "response.output_text.done", "text": "All of it."}, PART_DONE], []),
        ([PART_DONE], []),
        ([{"type": "response.output_item.done", "output_index": 0, "item": message("All of it.")}], []),
        ([said("All ")], [message("All of it.")]),
        ([said("All ")], [message("All "), message("of it.")]),
        ([said("All of it."), PART_DONE], [message("All of it.")]),
        ([], [{"role": "assistant", "content": "All of it."}]),
    ],
)
def test_a_response_says_its_text_once_wherever_it_stands(events: list[Any], output: list[Any]) -> None:
    assert responses(*events, output=output).text == "All of it."


def test_an_answer_may_be_parted_over_two_choices() -> None:
    call = {"id": "a", "function": {"name": OSLO[0], "arguments": OSLO[1]}}
    parted = [
        {"index": 0, "message": {"content": "I look."}, "finish_reason": "tool_calls"},
        {"index": 1, "message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"},
    ]
    result = read(ChatReader(HELLO, owner(), Echo.SENT), event({"choices": parted}) + DONE)
    assert (result.text, result.calls, result.finish) == ("I look.", [OSLO], FinishReason.TOOL_CALLS)


def test_calls_in_a_message_behind_its_pieces_are_made_once() -> None:
    call = {"id": "a", "function": {"name": OSLO[0], "arguments": OSLO[1]}}
    last = {"message": {"content": "I look.", "tool_calls": [call]}, "finish_reason": "tool_calls"}
    result = chat(delta(content="I look."), last)
    assert (result.text, result.calls) == ("I look.", [OSLO])
    assert chat(delta(content="I look.", tool_calls=[call]), last).calls == [OSLO]


@pytest.mark.parametrize("kind", ["output_text", "markdown", "refusal"])
def test_a_block_of_text_may_have_another_name(kind: str) -> None:
    result = messages(*block(0, {"type": kind, "text": "All of it."}), *message_end("end_turn"))
    assert (result.text, result.finish) == ("All of it.", FinishReason.STOP)
    silent = {"type": "compaction", "content": "They sail."}
    assert messages(*block(0, silent), *block(1, {"type": "text", "text": "All"}), *message_end("x")).text == "All"


@pytest.mark.parametrize(
    "alive",
    [
        {"choices": None, "base_resp": {"status_code": 0, "status_msg": "success"}},
        {"type": "keepalive", "message": "Still here."},
        {"event": "heartbeat", "message": "Still here."},
        {"status": "keep-alive", "detail": "queued"},
    ],
)
def test_what_says_that_all_is_well_ends_nothing(alive: dict[str, Any]) -> None:
    body = event({"choices": [delta(content="All ")]}) + event(alive) + event({"choices": [delta(content="of it.")]})
    result = read(ChatReader(HELLO, owner(), Echo.SENT), body + event({"choices": [delta("stop")]}) + DONE)
    assert (result.text, result.error) == ("All of it.", "")


@pytest.mark.parametrize("between", [b"\n", b"\ndata: "], ids=["JSON lines", "no blank lines"])
def test_events_that_follow_each_other_at_once_are_read(between: bytes) -> None:
    documents = [{"choices": [choice]} for choice in (delta(content="The "), delta(content="whole."), delta("stop"))]
    body = between.removeprefix(b"\n") + between.join(json.dumps(each).encode() for each in documents)
    assert read(ChatReader(HELLO, owner(), Echo.SENT), body).text == "The whole."


def test_a_character_that_is_cut_in_two_is_whole_in_every_format() -> None:
    """Arguments are JSON of their own, whose halves join by themselves."""
    first, second = "\ud83d", "\ude00"
    arguments = ('{"city":"\\ud83d', '\\ude00"}')
    call = {"index": 0, "id": "a"}
    functions = [{"name": "get_weather", "arguments": one} for one in arguments]
    calls = [delta(tool_calls=[{**call, "function": function}]) for function in functions]
    texts = (f"So {first}", f"{second}!")
    deltas = ({"type": "text_delta", "text": text} for text in texts)
    results = [
        chat(*(delta(content=text) for text in texts), delta("stop")),
        messages(*block(0, {"type": "text", "text": ""}, *deltas), *message_end("end_turn")),
        responses(*({"type": "response.output_text.delta", "delta": text} for text in texts)),
    ]
    assert [result.text for result in results] == ["So 😀!"] * 3
    assert chat(delta(reasoning=first), delta(reasoning=second), delta("stop", content=".")).thought == "😀"
    assert chat(*calls, delta("tool_calls")).calls == [("get_weather", "".join(arguments))]
    assert chat(delta(content="a" + first), delta("stop", content="b")).text == "ab\ufffd"


def test_nulls_beside_what_is_said_hide_nothing() -> None:
    told = [
        chat(delta(content=None), {"delta": None}, delta(tool_calls=[None]), delta(content="Yes."), delta("stop")),
        read(ChatReader(HELLO, owner(), Echo.SENT), event({"choices": [None, delta("stop", content="Yes.")]})),
        messages(
            {"type": "message_start", "message": None},
            {"type": "content_block_start", "index": 0, "content_block": None},
            {"type": "content_block_delta", "index": 0, "delta": None},
            *block(1, {"type": "text", "text": None}, {"type": "text_delta", "text": "Yes."}),
            *message_end("end_turn"),
        ),
        messages({"type": "message", "content": [None, "Yes."], "stop_reason": "end_turn"}),
        responses({"type": "response.output_item.added", "item": None}, said(None), said("Yes."), output=[None]),
        responses(said("Yes."), output=None),
        responses(output="Yes."),
        responses(output=[], output_text="Yes."),
    ]
    assert [(one.text, one.finish) for one in told] == [("Yes.", "stop")] * len(told)


def test_reasoning_that_comes_whole_is_thinking() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
    result = responses(output=[thought, message("All of it.")])
    assert (result.thought, result.text) == ("Hm.", "All of it.")


def test_blocks_whose_deltas_name_no_type_are_read() -> None:
    call = {"type": "tool_use", "id": "a", "name": OSLO[0], "input": None}
    result = messages(
        *block(0, {"type": "text"}, {"text": "All of it."}),
        *block(1, call, {"partial_json": None}, {"partial_json": OSLO[1]}),
        *message_end("tool_use"),
    )
    assert (result.text, result.calls) == ("All of it.", [OSLO])


# Calls


def piece(arguments: Any, name: str = "get_weather", **beside: Any) -> dict[str, Any]:
    return {"function": {"arguments": arguments, **({"name": name} if name else {})}, **beside}


@pytest.mark.parametrize(
    "deltas",
    [
        [[piece(OSLO[1], id="a", index=0)], [piece(ROME[1], id="a", index=0)]],
        [[piece(OSLO[1], id="a", index=0)], [piece(ROME[1], id="a", index=1)]],
        [[piece("", id="a")], [piece("", id="b")], [piece(OSLO[1], "", id="a")], [piece(ROME[1], "", id="b")]],
        [[piece(OSLO[1], id=i, index=0) if i == "a" else piece(ROME[1], id=i, index=0) for i in "ab"]] * 2,
        [
            [
                {"id": "a", "name": OSLO[0], "arguments": OSLO[1]},
                {"id": "b", "custom": {"name": ROME[0], "input": ROME[1]}},
            ]
        ],
    ],
)
def test_chat_calls_stay_two(deltas: list[Any]) -> None:
    assert chat(*(delta(tool_calls=pieces) for pieces in deltas), delta("tool_calls")).calls == TWO


NAMED = [
    ([("get_wea", ""), ("ther", ""), ("", '{"city":"Oslo"}')], [OSLO]),
    ([("get_wea", '{"ci'), ("ther", 'ty":"Oslo"}')], [OSLO]),
    ([("get_", ""), ("get_weather", '{"city":"Oslo"}')], [OSLO]),  # growing
    ([("get_weather", '{"city":'), ("get_weather", '"Oslo"}')], [OSLO]),  # repeated
    ([("get_weather", ""), ("get_time", "")], [("get_weather", "{}"), ("get_time", "{}")]),
]


@pytest.mark.parametrize(("pieces", "calls"), NAMED, ids=range(len(NAMED)))
@pytest.mark.parametrize("at", [0, None])
def test_a_name_that_comes_in_pieces_is_one(pieces: list[tuple[str, str]], calls: Any, at: int | None) -> None:
    request = replace(
        HELLO, tools=tuple(ToolSpec(name, "", {"type": "object"}) for name in ("get_weather", "get_time"))
    )
    functions = [{"index": at, "function": {"name": name, "arguments": arguments}} for name, arguments in pieces]
    body = b"".join(event({"choices": [delta(tool_calls=[piece])]}) for piece in functions)
    assert (
        read(ChatReader(request, owner(), Echo.SENT), body + event({"choices": [delta("tool_calls")]})).calls == calls
    )


def test_a_call_of_another_type_is_made() -> None:
    """SGLang's router names the type so, and leaves it out of the whole answer."""
    item = {"type": "function_tool_call", "id": "f", "call_id": "a", "name": "get_weather", "arguments": ""}
    piece = {"type": "response.function_call_arguments.delta", "item_id": "f", "delta": '{"city":"Oslo"}'}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    assert responses(added, piece, output=[message("")]).calls == [OSLO]


def test_two_calls_without_arguments_in_one_piece_stay_two() -> None:
    for beside in ({}, {"index": 0}, {"index": 0, "id": ""}):
        pieces = [piece("", "stop", **beside), piece(None, "stop", **beside)]
        assert chat(delta(tool_calls=pieces), delta("tool_calls")).calls == [("stop", "{}"), ("stop", "{}")]


@pytest.mark.parametrize("ids", [("a", "b"), ("a", "a"), ("", ""), (None, None)])
@pytest.mark.parametrize("at", [(0, 1), (0, 0), (None, None), (0.0, "1")])
def test_blocks_of_calls_stay_two(ids: Any, at: Any) -> None:
    starts = [{"type": "tool_use", "id": call_id, "name": OSLO[0], "input": {}} for call_id in ids]
    pieces = [{"type": "input_json_delta", "partial_json": arguments} for _, arguments in TWO]
    blocks = [one for each in zip(at, starts, pieces, strict=True) for one in block(*each)]
    assert messages(*blocks, *message_end("tool_use")).calls == TWO


def test_a_block_with_its_input_as_text_is_read() -> None:
    start = {"type": "tool_use", "id": "a", "name": OSLO[0], "input": OSLO[1]}
    assert messages(*block(0, start), *message_end("tool_use")).calls == [OSLO]


@pytest.mark.parametrize("ids", [("a", "b"), ("", ""), (None, None)])
@pytest.mark.parametrize("at", [(0, 1), (0, 0), (None, None)])
@pytest.mark.parametrize("kinds", [("added", "delta"), ("added", "delta", "done"), ("done",)])
@pytest.mark.parametrize("repeats", [False, True])
def test_items_of_calls_stay_two(ids: Any, at: Any, kinds: tuple[str, ...], repeats: bool) -> None:
    events, output = [], []
    for place, call_id, (name, arguments) in zip(at, ids, TWO, strict=True):
        item = {"type": "function_call", "id": call_id and f"fc_{call_id}", "call_id": call_id, "name": name}
        where = {} if place is None else {"output_index": place}
        made = {
            "added": {"type": "response.output_item.added", **where, "item": {**item, "arguments": ""}},
            "delta": {"type": "response.function_call_arguments.delta", **where, "delta": arguments},
            "done": {"type": "response.output_item.done", **where, "item": {**item, "arguments": arguments}},
        }
        events += [made[kind] for kind in kinds]
        output.append({**item, "arguments": arguments})
    assert responses(*events, output=output if repeats else []).calls == TWO


def test_an_item_is_one_though_its_id_changes() -> None:
    item = {"type": "function_call", "call_id": "a", "name": OSLO[0]}
    result = responses(
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "id": "x", "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "y", "delta": OSLO[1]},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "id": "z", "arguments": OSLO[1]}},
    )
    assert result.calls == [OSLO]


def test_arguments_may_be_an_object_in_every_format() -> None:
    arguments = {"city": "Oslo"}
    item = {"type": "function_call", "call_id": "a", "name": OSLO[0], "arguments": arguments}
    start = {"type": "tool_use", "id": "a", "name": OSLO[0], "input": {}}
    for result in (
        chat(delta(tool_calls=[piece(arguments)]), delta("stop")),
        messages(*block(0, start, {"type": "input_json_delta", "partial_json": arguments}), *message_end("tool_use")),
        responses(output=[item]),
    ):
        assert [json.loads(written) for _, written in result.calls] == [arguments]


# Counts


@pytest.mark.parametrize("last", [{"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": None}, None, [1]])
@pytest.mark.parametrize("counts", [CHAT_COUNTS, COUNTS, {"prompt_tokens": 100.0, "completion_tokens": 10.0}])
def test_what_comes_behind_the_counts_hides_none(last: Any, counts: Any) -> None:
    result = chat(delta(content="All"), {**delta("stop"), "usage": counts}, choices=[], usage=last)
    assert result.finished and isinstance(result.finished.usage, Usage) and result.finished.usage.prompt_tokens == 100


def test_counts_of_a_response_are_read_beside_it() -> None:
    ended = {"type": "response.completed", "response": {"status": "completed", "usage": None}, "usage": COUNTS}
    result = read(ResponsesReader(HELLO, owner()), event(said("All")) + event(ended))
    assert result.finished and isinstance(result.finished.usage, Usage)


def test_numbers_that_are_none_do_not_end_an_answer() -> None:
    body = b'data: {"choices": [{"delta": {"content": "All"}, "logprobs": {"content": [{"logprob": -Infinity}]}}]}\n\n'
    result = read(ChatReader(HELLO, owner(), Echo.SENT), body + event({"choices": [delta("stop")], "usage": None}))
    assert (result.text, result.error) == ("All", "")
