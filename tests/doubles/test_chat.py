"""What every double of chat completions refuses, whatever its family."""

from typing import Any

import pytest

from tests.doubles.asking import TOOL_SCHEMA, post
from tests.doubles.chat import ChatDouble
from tests.doubles.chat_families import CLOUDS
from tests.doubles.local_servers import VLLMDouble
from tests.pixels import coded, picture

pytestmark = pytest.mark.server

Body = dict[str, Any]
PATH = "/v1/chat/completions"
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": TOOL_SCHEMA}}]
USER = {"role": "user", "content": "hello"}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}


def call(number: int = 1, arguments: str = "{}") -> Body:
    return {"id": f"call_{number}", "type": "function", "function": {"name": "weather", "arguments": arguments}}


def calling(*calls: Body) -> Body:
    return {"role": "assistant", "content": None, "tool_calls": list(calls or (call(),))}


def body(*messages: Body, **fields: Any) -> Body:
    return {"model": "Qwen/Qwen3-14B", "messages": list(messages), **fields}


def with_image(url: str, **fields: Any) -> Body:
    return body({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}, **fields)


URL = f"data:image/png;base64,{coded(picture())}"
BAD_IMAGE = (
    "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', "
    "'jpeg', 'gif', 'webp']."
)
ROUND = body(USER, calling(), RESULT)
NO_RESULT = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: call_"
)
NO_CALL = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
UNKNOWN = {"type": "function", "function": {"name": "tide"}}
KNOWN = {"type": "function", "function": {"name": "weather"}}

# a request that passes, the same with one change, status and words of its refusal
RULES: dict[str, tuple[Body, Body, int, str]] = {
    "model": (body(USER), body(USER, model="qwen3"), 404, "The model `qwen3` does not exist."),
    "no messages": (
        body(USER),
        body(),
        400,
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    ),
    "role": (
        body({**USER, "role": "developer"}, USER),
        body({**USER, "role": "runtime"}, USER),
        400,
        "Invalid value: 'runtime'. Supported values are: 'system', 'developer', 'user', 'assistant', 'tool'.",
    ),
    "unknown part": (
        with_image(URL),
        body({"role": "user", "content": [{"type": "image", "source": {}}]}),
        400,
        "Invalid value: 'image'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and "
        "'file'.",
    ),
    "image of the model": (
        with_image(URL),
        body(USER, {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": URL}}]}),
        400,
        "Invalid value: 'image_url'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and "
        "'file'.",
    ),
    "broken image": (with_image(URL), with_image(URL[:80]), 400, BAD_IMAGE),
    "mistaken image": (with_image(URL), with_image(URL.replace("png", "jpeg", 1)), 400, BAD_IMAGE),
    "image elsewhere": (with_image(URL), with_image("https://example.com/a.png"), 400, BAD_IMAGE),
    "no content": (
        body({"role": "user", "content": ""}),
        body({"role": "user", "content": None}),
        400,
        "Invalid value for 'content': expected a string, got null.",
    ),
    "call without result": (ROUND, body(USER, calling()), 400, NO_RESULT + "1"),
    "result behind another message": (
        body(USER, calling(), RESULT, USER),
        body(USER, calling(), USER, RESULT),
        400,
        NO_CALL,
    ),
    "one of two results": (
        body(USER, calling(call(1), call(2)), {**RESULT, "tool_call_id": "call_2"}, RESULT),
        body(USER, calling(call(1), call(2)), RESULT),
        400,
        NO_RESULT + "2",
    ),
    "result without call": (ROUND, body(USER, RESULT), 400, NO_CALL),
    "result twice": (ROUND, body(USER, calling(), RESULT, RESULT), 400, NO_CALL),
    "arguments": (
        ROUND,
        body(USER, calling(call(arguments='{"city')), RESULT),
        400,
        "Invalid 'messages[1].tool_calls[0].function.arguments': expected a JSON object.",
    ),
    "arguments that are no object": (
        ROUND,
        body(USER, calling(call(arguments="[]")), RESULT),
        400,
        "Invalid 'messages[1].tool_calls[0].function.arguments': expected a JSON object.",
    ),
    "choice without tools": (
        body(USER, tools=TOOLS, tool_choice="required"),
        body(USER, tool_choice="required"),
        400,
        "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
    ),
    "unknown choice": (
        body(USER, tools=TOOLS, tool_choice=KNOWN),
        body(USER, tools=TOOLS, tool_choice=UNKNOWN),
        400,
        "Invalid value for 'tool_choice': no function named 'tide' was specified in the 'tools' parameter.",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_one_change_is_refused(rule: str) -> None:
    passes, changed, status, words = RULES[rule]
    with VLLMDouble() as double:
        accepted = post(double, PATH, passes)
        assert accepted.status_code == 200, accepted.text
        refused = post(double, PATH, changed)
        assert (refused.status_code, refused.json()["error"]["message"]) == (status, words)


@pytest.mark.parametrize("family", CLOUDS)
def test_a_cloud_wants_a_key(family: str) -> None:
    sent = {"model": CLOUDS[family].model, "messages": [USER]}
    with ChatDouble(family) as double:
        assert post(double, PATH, sent, authorization="Bearer key").status_code == 200
        assert post(double, PATH, sent).status_code == 401
