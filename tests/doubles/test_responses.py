"""The double of OpenAI's Responses API: for each rule a request that passes, and the same with one change."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from openai import APIError, OpenAI

from tests.doubles.asking import TOOL_SCHEMA, events_of, post
from tests.doubles.brains import Call, Reply, Scripted, echo
from tests.doubles.responses import ResponsesDouble
from tests.pixels import coded, picture

pytestmark = pytest.mark.server

Body = dict[str, Any]
PATH = "/v1/responses"
KEY = {"authorization": "Bearer key-1"}
TOOLS = [{"type": "function", "name": "weather", "parameters": TOOL_SCHEMA}]
TIDE = {"type": "function", "name": "tide"}
CALL = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city": "Ulm"}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
USER = {"role": "user", "content": "hello"}
ENCRYPTED = {"include": ["reasoning.encrypted_content"], "store": False}


URL = f"data:image/png;base64,{coded(picture())}"
BAD_IMAGE = (
    "The image data you provided does not represent a valid image. Please check your input and try again with "
    "one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp']."
)


def base(*items: Body, **fields: Any) -> Body:
    return {"model": "gpt-5.6-terra", "input": list(items) or [USER], "store": False, **fields}


def missing(name: str) -> Body:
    return {key: value for key, value in base().items() if key != name}


def with_image(url: str) -> Body:
    return base({"role": "user", "content": [{"type": "input_image", "image_url": url}]})


# family, a request that passes, the same with one change, status, message, code, param of its refusal
Case = tuple[str, Body, Body, int, str, Any, Any]
RULES: dict[str, Case] = {
    "small output": (
        "openai-5.6",
        base(max_output_tokens=16),
        base(max_output_tokens=10),
        400,
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 10 instead.",
        "integer_below_min_value",
        "max_output_tokens",
    ),
    "great output": (
        "openai-5.6",
        base(max_output_tokens=128_000),
        base(max_output_tokens=128_001),
        400,
        "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000, but got 128001 instead.",
        "integer_above_max_value",
        "max_output_tokens",
    ),
    "unknown field": (
        "openai-5.6",
        base(),
        base(max_tokens=50),
        400,
        "Unknown parameter: 'max_tokens'.",
        "unknown_parameter",
        "max_tokens",
    ),
    "missing field": (
        "openai-5.6",
        base(),
        missing("input"),
        400,
        "Missing required parameter: 'input'.",
        "missing_required_parameter",
        "input",
    ),
    "sampling": (
        "openai-5.6",
        base(temperature=1),
        base(temperature=0.2),
        400,
        "Unsupported parameter: 'temperature' is not supported with this model.",
        None,
        "temperature",
    ),
    "effort": (
        "openai-6.1",
        base(reasoning={"effort": "low"}),
        base(reasoning={"effort": "none"}),
        400,
        "Unsupported value: 'none' is not supported with the 'gpt-5.6-terra' model. Supported values are: 'low', "
        "'medium', 'high', 'xhigh', 'max'.",
        "unsupported_value",
        "reasoning.effort",
    ),
    "great effort": (
        "openai-5.5",
        base(reasoning={"effort": "xhigh"}),
        base(reasoning={"effort": "max"}),
        400,
        "Unsupported value: 'max' is not supported with the 'gpt-5.6-terra' model. Supported values are: 'none', "
        "'low', 'medium', 'high', 'xhigh'.",
        "unsupported_value",
        "reasoning.effort",
    ),
    "nested tool": (
        "openai-5.6",
        base(tools=TOOLS),
        base(tools=[{"type": "function", "function": {"name": "weather"}}]),
        400,
        "Missing required parameter: 'tools[0].name'.",
        "missing_required_parameter",
        "tools[0].name",
    ),
    "unknown choice": (
        "openai-5.6",
        base(tools=TOOLS, tool_choice={"type": "function", "name": "weather"}),
        base(tools=TOOLS, tool_choice=TIDE),
        400,
        "Tool choice 'tide' not found in 'tools' parameter.",
        None,
        "tool_choice",
    ),
    "choice without tools": (
        "openai-5.6",
        base(tools=TOOLS, tool_choice="required"),
        base(tool_choice="required"),
        400,
        "Tool choice 'required' must be specified with 'tools' parameter.",
        None,
        "tool_choice",
    ),
    "allowed but not there": (
        "openai-5.6",
        base(
            tools=TOOLS,
            tool_choice={
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "weather"}],
            },
        ),
        base(tools=TOOLS, tool_choice={"type": "allowed_tools", "mode": "required", "tools": [TIDE]}),
        400,
        "Tool choice 'tide' not found in 'tools' parameter.",
        None,
        "tool_choice",
    ),
    "unknown item": (
        "openai-5.6",
        base(USER),
        base(USER, {"type": "tool_result"}),
        400,
        "Invalid value: 'tool_result'. Supported values are: 'message', 'reasoning', 'function_call', "
        "'function_call_output', 'item_reference', 'compaction'.",
        "invalid_value",
        "input[1]",
    ),
    "output without call": (
        "openai-5.6",
        base(USER, CALL, OUTPUT),
        base(USER, OUTPUT),
        400,
        "No tool call found for function call output with call_id call_1.",
        None,
        "input",
    ),
    "call without output": (
        "openai-5.6",
        base(USER, CALL, OUTPUT),
        base(USER, CALL),
        400,
        "No tool output found for function call call_1.",
        None,
        "input",
    ),
    "output before call": (
        "openai-5.6",
        base(USER, CALL, OUTPUT),
        base(USER, OUTPUT, CALL),
        400,
        "No tool call found for function call output with call_id call_1.",
        None,
        "input",
    ),
    "arguments": (
        "openai-5.6",
        base(USER, CALL, OUTPUT),
        base(USER, {**CALL, "arguments": '{"city'}, OUTPUT),
        400,
        "Invalid 'input[1].arguments': expected a JSON object.",
        None,
        "input[1].arguments",
    ),
    "reference": (
        "openai-5.6",
        base(USER),
        base(USER, {"type": "item_reference", "id": "msg_1"}),
        404,
        "Item with id 'msg_1' not found. Items are not persisted when `store` is set to false. Try again with `store` "
        "set to true, or remove this item from your input.",
        None,
        "input",
    ),
    "previous": (
        "openai-5.6",
        base(USER),
        base(USER, previous_response_id="resp_1"),
        400,
        "Previous response with id 'resp_1' not found.",
        "previous_response_not_found",
        "previous_response_id",
    ),
    "broken image": (
        "openai-5.6",
        with_image(URL),
        with_image(URL[:80]),
        400,
        BAD_IMAGE,
        "invalid_value",
        "input[0].content[0]",
    ),
    "image type": (
        "openai-5.6",
        with_image(URL),
        with_image(URL.replace("png", "tiff", 1)),
        400,
        BAD_IMAGE,
        "invalid_value",
        "input[0].content[0]",
    ),
    "model": (
        "openai-5.6",
        base(),
        base(model="gpt-5"),
        404,
        "The model 'gpt-5' does not exist or you do not have access to it.",
        "model_not_found",
        None,
    ),
}


def error_of(response: Any) -> tuple[int, Body]:
    return response.status_code, response.json()["error"]


def refusal(status: int, message: str, code: Any = None, param: Any = None) -> tuple[int, Body]:
    return status, {"message": message, "type": "invalid_request_error", "code": code, "param": param}


@pytest.mark.parametrize("rule", RULES)
def test_one_change_is_refused(rule: str) -> None:
    family, passes, changed, *expected = RULES[rule]
    with ResponsesDouble(family) as double:
        accepted = post(double, PATH, passes, **KEY)
        assert accepted.status_code == 200, accepted.text
        assert error_of(post(double, PATH, changed, **KEY)) == refusal(*expected)
        assert [result.message for result in double.refusals] == [expected[1]]


# -- reasoning

THOUGHT = Reply(calls=(Call("weather", {"city": "Ulm"}),), reasoning="Let me think of Ulm.", chunk_chars=5)


@pytest.fixture
def double() -> Iterator[ResponsesDouble]:
    with ResponsesDouble(brain=Scripted(THOUGHT, echo)) as running:
        yield running


def round_of(double: ResponsesDouble, **fields: Any) -> list[Body]:
    """A user's message, the answer's reasoning and call, the call's output."""
    body = base(USER, tools=TOOLS, **{**ENCRYPTED, **fields})
    reasoning, call = post(double, PATH, body, **KEY).json()["output"]
    return [USER, reasoning, call, {**OUTPUT, "call_id": call["call_id"]}]


def test_reasoning_and_call_pass_together(double: ResponsesDouble) -> None:
    assert post(double, PATH, base(*round_of(double), tools=TOOLS), **KEY).status_code == 200


def test_a_call_with_its_id_needs_its_reasoning(double: ResponsesDouble) -> None:
    user, reasoning, call, output = round_of(double)
    words = (
        f"Item '{call['id']}' of type 'function_call' was provided without its required 'reasoning' item: "
        f"'{reasoning['id']}'."
    )
    assert error_of(post(double, PATH, base(user, call, output), **KEY)) == refusal(400, words, None, "input")
    unnamed = {key: value for key, value in call.items() if key != "id"}
    assert post(double, PATH, base(user, unnamed, output), **KEY).status_code == 200


def test_reasoning_needs_what_followed(double: ResponsesDouble) -> None:
    user, reasoning, *_ = round_of(double)
    words = f"Item '{reasoning['id']}' of type 'reasoning' was provided without its required following item."
    assert error_of(post(double, PATH, base(user, reasoning), **KEY)) == refusal(400, words, None, "input")
    assert error_of(post(double, PATH, base(user, reasoning, user), **KEY)) == refusal(400, words, None, "input")
    answer = {"role": "assistant", "content": "well"}
    assert post(double, PATH, base(user, reasoning, answer, user), **KEY).status_code == 200


def test_foreign_reasoning_is_refused(double: ResponsesDouble) -> None:
    body = base(*round_of(double), tools=TOOLS)
    sealed = body["input"][1]["encrypted_content"]
    words = f"The encrypted content {sealed[:4]}...{sealed[-4:]} could not be verified."
    other = post(double, PATH, body, authorization="Bearer key-2")
    assert error_of(other) == refusal(400, words, "invalid_encrypted_content")
    body["input"][1]["encrypted_content"] = "AAAA" + sealed[4:]
    assert error_of(post(double, PATH, body, **KEY))[1]["code"] == "invalid_encrypted_content"


def test_reasoning_without_its_content_is_there_only_when_stored(double: ResponsesDouble) -> None:
    items = round_of(double, include=[])
    assert "encrypted_content" not in items[1]
    words = RULES["reference"][4].replace("msg_1", items[1]["id"])
    assert error_of(post(double, PATH, base(*items), **KEY)) == refusal(404, words, None, "input")
    with ResponsesDouble(brain=Scripted(THOUGHT, echo)) as storing:
        assert post(storing, PATH, base(*round_of(storing, include=[], store=True)), **KEY).status_code == 200


def test_a_stored_response_can_be_gone_on_from(double: ResponsesDouble) -> None:
    first = post(double, PATH, base(tools=TOOLS, store=True), **KEY).json()
    call = first["output"][1]["call_id"]
    body = base({**OUTPUT, "call_id": call}, previous_response_id=first["id"], tools=TOOLS)
    assert post(double, PATH, body, **KEY).json()["output"][0]["content"][0]["text"] == "You said: sunny"


# -- sizes


def long_input(tokens: int) -> Body:
    return base({"role": "user", "content": "x" * 4 * tokens})


OVERFLOW = "Your input exceeds the context window of this model. Please adjust your input and try again."


def test_the_input_limit_is_the_window_without_the_output() -> None:
    with ResponsesDouble(window=10_000, maximum=4_000) as double:
        assert post(double, PATH, long_input(5_900), **KEY).status_code == 200
        refused = post(double, PATH, long_input(6_100), **KEY)
        assert error_of(refused) == refusal(400, OVERFLOW, "context_length_exceeded", "input")


def test_in_a_stream_the_overflow_is_an_event_behind_status_200() -> None:
    with ResponsesDouble(window=10_000, maximum=4_000) as double:
        answered = post(double, PATH, {**long_input(6_100), "stream": True}, **KEY)
        assert answered.status_code == 200
        assert events_of(answered)[-1] == {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "code": "context_length_exceeded",
                "message": OVERFLOW,
                "param": "input",
            },
        }
        with pytest.raises(APIError, match="exceeds the context window"):
            list(client(double).responses.create(**long_input(6_100), stream=True))
    with ResponsesDouble(window=10_000, maximum=4_000, overflow="status") as double:
        assert post(double, PATH, {**long_input(6_100), "stream": True}, **KEY).status_code == 400


# -- answers, read by OpenAI's own client


def client(double: ResponsesDouble) -> OpenAI:
    return OpenAI(base_url=f"{double.url}/v1", api_key="key-1", max_retries=0)


def test_the_sdk_reads_a_stream_and_its_items_pass_again() -> None:
    reply = Reply("It is sunny.", THOUGHT.calls, THOUGHT.reasoning, chunk_chars=5)
    with ResponsesDouble(brain=Scripted(reply, echo)) as double:
        body = base(tools=TOOLS, reasoning={"summary": "auto"}, include=ENCRYPTED["include"])
        with client(double).responses.stream(**body) as stream:
            deltas = [event.delta for event in stream if event.type == "response.reasoning_summary_text.delta"]
            response = stream.get_final_response()
        reasoning, message, call = response.output
        items = [item.model_dump(exclude_none=True) for item in response.output]
        items[-1].pop("parsed_arguments", None)
        items[1]["content"][0].pop("parsed", None)
        again = [USER, *items, {**OUTPUT, "call_id": call.call_id}]
        assert client(double).responses.create(**base(*again, tools=TOOLS)).output_text == "You said: sunny"
    assert "".join(deltas) == reasoning.summary[0].text == THOUGHT.reasoning
    assert (message.content[0].text, call.arguments) == ("It is sunny.", '{"city": "Ulm"}')
    assert response.usage.output_tokens_details.reasoning_tokens == THOUGHT.reasoning_tokens > 0
    assert response.usage.output_tokens == reply.tokens


def test_the_sdk_reads_an_answer_that_was_cut() -> None:
    with ResponsesDouble(brain=Scripted(Reply("y" * 400))) as double:
        response = client(double).responses.create(**base(max_output_tokens=16))
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert (response.output_text, response.usage.output_tokens) == ("y" * 64, 16)


@pytest.mark.parametrize(
    ("choice", "required", "tools"),
    [
        ("auto", (), ("weather", "tide")),
        ("required", ("weather", "tide"), ("weather", "tide")),
        (TIDE, ("tide",), ("weather", "tide")),
        ({"type": "allowed_tools", "mode": "required", "tools": [TIDE]}, ("tide",), ("tide",)),
        ({"type": "allowed_tools", "mode": "auto", "tools": [TIDE]}, (), ("tide",)),
    ],
)
def test_the_brain_knows_what_it_must_call(choice: Any, required: tuple[str, ...], tools: tuple[str, ...]) -> None:
    with ResponsesDouble() as double:
        post(double, PATH, base(tools=[*TOOLS, TIDE], tool_choice=choice), **KEY)
        prompt = double.requests[0].prompt
    assert (prompt.required_tools, prompt.tools) == (required, tools)


def test_the_cache_holds_whole_beginnings_from_1024_tokens() -> None:
    first = long_input(2_000)["input"]
    more = [*first, {"role": "assistant", "content": "yes"}, USER]
    with ResponsesDouble() as double:
        usages = [post(double, PATH, base(*items), **KEY).json()["usage"] for items in (first, more, [USER, *more])]
    cached = [usage["input_tokens_details"]["cached_tokens"] for usage in usages]
    assert cached == [0, usages[0]["input_tokens"] // 128 * 128, 0]
    assert cached[1] > 1_900


@pytest.mark.parametrize(("usage", "expected"), [("zero", 0), ("missing", None)])
def test_usage_can_be_zero_or_missing(usage: Any, expected: int | None) -> None:
    with ResponsesDouble(usage=usage) as double:
        reported = post(double, PATH, base(), **KEY).json()["usage"]
    assert (reported and reported["input_tokens"]) == expected


def test_a_key_is_needed() -> None:
    with ResponsesDouble() as double:
        assert post(double, PATH, base()).status_code == 401


def test_a_stream_may_end_badly() -> None:
    with ResponsesDouble(brain=Scripted(Reply("half", error_event="busy"), Reply("half", breaks_off=True))) as double:
        last = events_of(post(double, PATH, base(stream=True), **KEY))[-1]
        assert (last["type"], last["message"]) == ("error", "busy")
        with pytest.raises(httpx2.RemoteProtocolError):
            post(double, PATH, base(stream=True), **KEY)
