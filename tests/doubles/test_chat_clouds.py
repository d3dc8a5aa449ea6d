"""The clouds that speak chat completions: for each rule a request that passes, and the same with one change."""

from typing import Any

import pytest
from openai import BadRequestError, OpenAI

from tests.doubles.asking import TOOL_SCHEMA, events_of, post
from tests.doubles.brains import Call, Reply, Scripted, echo
from tests.doubles.chat import ChatDouble
from tests.doubles.chat_families import CLOUDS, NO_EFFORT, SKIPS_SIGNATURE

pytestmark = pytest.mark.server

Body = dict[str, Any]
PATH = "/v1/chat/completions"
KEY = {"authorization": "Bearer key-1"}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": TOOL_SCHEMA}}]
NAMED = {"type": "function", "function": {"name": "weather"}}
USER = {"role": "user", "content": "hello"}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}
NAMED_RESULT = {**RESULT, "name": "weather"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Ulm"}'}}
CALLING: Body = {"role": "assistant", "content": "", "tool_calls": [CALL]}
THOUGHT = {**CALLING, "reasoning_content": ""}  # empty is enough


def base(family: str, *messages: Body, **fields: Any) -> Body:
    return {"model": CLOUDS[family].model, "messages": list(messages) or [USER], **fields}


def long(family: str, tokens: int, **fields: Any) -> Body:
    return base(family, {"role": "user", "content": "x" * 4 * tokens}, **fields)


def openai_error(message: str, code: Any = None, param: Any = None, kind: str = "invalid_request_error") -> Body:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def google_error(message: str) -> list[Body]:
    return [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]


NO_SIGNATURE = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:weather` , position 1. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for "
    "more details."
)
DEEPSEEK_THINKS = "The reasoning_content in the thinking mode must be passed back to the API."
KIMI_THINKS = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
QWEN_SAYS = "<400> InternalError.Algo.InvalidParameter: "
QWEN_FORCED = QWEN_SAYS + "The tool_choice parameter does not support being set to required or object in thinking mode"


def signed(signature: str) -> Body:
    extra = {"google": {"thought_signature": signature}}
    return {**CALLING, "tool_calls": [{**CALL, "extra_content": extra}]}


# family, a request that passes, the same with one change, the body of its refusal
RULES: dict[str, tuple[str, Body, Body, Any]] = {
    "openai: max_tokens": (
        "openai",
        base("openai", max_completion_tokens=50),
        base("openai", max_tokens=50),
        openai_error(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
            "instead.",
            "unsupported_parameter",
            "max_tokens",
        ),
    ),
    "openai: tools with effort": (
        "openai",
        base("openai", tools=TOOLS, reasoning_effort="none"),
        base("openai", tools=TOOLS, reasoning_effort="low"),
        openai_error(
            "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use "
            "function tools, use /v1/responses or set reasoning_effort to 'none'.",
            None,
            "reasoning_effort",
        ),
    ),
    "openai: tools with effort unset": (
        "openai",
        base("openai"),
        base("openai", tools=TOOLS),
        openai_error(
            "Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use "
            "function tools, use /v1/responses or set reasoning_effort to 'none'.",
            None,
            "reasoning_effort",
        ),
    ),
    "openai: no effort none": (
        "openai-6.1",
        base("openai-6.1", reasoning_effort="low"),
        base("openai-6.1", reasoning_effort="none"),
        openai_error(
            "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: "
            "'low', 'medium', 'high', 'xhigh', and 'max'.",
            "unsupported_value",
            "reasoning_effort",
        ),
    ),
    "openai: unknown field": (
        "openai",
        base("openai"),
        base("openai", enable_thinking=True),
        openai_error("Unrecognized request argument supplied: enable_thinking"),
    ),
    "openai: sampling": (
        "openai",
        base("openai", temperature=1),
        base("openai", temperature=0.5),
        openai_error(
            "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is "
            "supported.",
            "unsupported_value",
            "temperature",
        ),
    ),
    "openai: great output": (
        "openai",
        base("openai", max_completion_tokens=5_000),
        base("openai", max_completion_tokens=5_001),
        openai_error(
            "max_tokens is too large: 5001. This model supports at most 5000 completion tokens, whereas you provided "
            "5001.",
            "invalid_value",
            "max_completion_tokens",
        ),
    ),
    "openai: too long": (
        "openai",
        long("openai", 4_900),
        long("openai", 5_100),
        openai_error(
            "Input tokens exceed the configured limit of 5000 tokens. Your messages resulted in 5107 tokens. Please "
            "reduce the length of the messages.",
            "context_length_exceeded",
            "messages",
        ),
    ),
    "deepseek: missing reasoning": (
        "deepseek",
        base("deepseek", USER, THOUGHT, RESULT),
        base("deepseek", USER, CALLING, RESULT),
        openai_error(DEEPSEEK_THINKS, "invalid_request_error"),
    ),
    "deepseek: missing reasoning while it thinks": (
        "deepseek",
        base("deepseek", USER, CALLING, RESULT, thinking={"type": "disabled"}),
        base("deepseek", USER, CALLING, RESULT, thinking={"type": "enabled"}),
        openai_error(DEEPSEEK_THINKS, "invalid_request_error"),
    ),
    "deepseek: effort without thinking": (
        "deepseek",
        base("deepseek", reasoning_effort="high"),
        base("deepseek", reasoning_effort="high", thinking={"type": "disabled"}),
        openai_error(NO_EFFORT, "invalid_request_error"),
    ),
    "deepseek: required": (
        "deepseek",
        base("deepseek", tools=TOOLS, tool_choice="required", thinking={"type": "disabled"}),
        base("deepseek", tools=TOOLS, tool_choice="required"),
        openai_error("Thinking mode does not support this tool_choice", "invalid_request_error"),
    ),
    "deepseek: named": (
        "deepseek",
        base("deepseek", tools=TOOLS, tool_choice="auto"),
        base("deepseek", tools=TOOLS, tool_choice=NAMED),
        openai_error("Thinking mode does not support this tool_choice", "invalid_request_error"),
    ),
    "deepseek: no room": (
        "deepseek",
        long("deepseek", 6_900, max_tokens=3_000),
        long("deepseek", 6_900, max_tokens=4_000),
        openai_error(
            "This model's maximum context length is 10000 tokens. However, you requested 10907 tokens (6907 in the "
            "messages, 4000 in the completion). Please reduce the length of the messages or completion.",
            "invalid_request_error",
        ),
    ),
    "deepseek: call without result": (
        "deepseek",
        base("deepseek", USER, THOUGHT, RESULT),
        base("deepseek", USER, THOUGHT, USER),
        openai_error(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. (insufficient tool messages following tool_calls message)",
            None,
            "messages",
        ),
    ),
    "kimi: missing reasoning": (
        "kimi",
        base("kimi", USER, THOUGHT, RESULT),
        base("kimi", USER, CALLING, RESULT),
        openai_error(KIMI_THINKS),
    ),
    "kimi k2: missing reasoning": (
        "kimi-k2",
        base("kimi-k2", USER, CALLING, RESULT, thinking={"type": "disabled"}),
        base("kimi-k2", USER, CALLING, RESULT),
        openai_error(KIMI_THINKS),
    ),
    "kimi: named": (
        "kimi",
        base("kimi", tools=TOOLS, tool_choice="required"),
        base("kimi", tools=TOOLS, tool_choice=NAMED),
        openai_error("tool_choice 'specified' is incompatible with thinking enabled"),
    ),
    "kimi k2: required": (
        "kimi-k2",
        base("kimi-k2", tools=TOOLS),
        base("kimi-k2", tools=TOOLS, tool_choice="required"),
        openai_error("tool_choice 'required' is incompatible with thinking enabled"),
    ),
    "kimi: too long": (
        "kimi",
        long("kimi", 9_900),
        long("kimi", 10_100),
        openai_error("Invalid request: Your request exceeded model token limit: 10000 (requested: 10107)"),
    ),
    "qwen: required": (
        "qwen",
        base("qwen", tools=TOOLS, tool_choice="required", enable_thinking=False),
        base("qwen", tools=TOOLS, tool_choice="required"),
        openai_error(QWEN_FORCED, "invalid_parameter_error"),
    ),
    "qwen: named": (
        "qwen",
        base("qwen", USER, CALLING, RESULT, tools=TOOLS),
        base("qwen", USER, CALLING, RESULT, tools=TOOLS, tool_choice=NAMED),
        openai_error(QWEN_FORCED, "invalid_parameter_error"),
    ),
    "qwen: too long": (
        "qwen",
        long("qwen", 9_900),
        long("qwen", 10_100),
        openai_error(QWEN_SAYS + "Range of input length should be [1, 10000]", "invalid_parameter_error"),
    ),
    "gemini: missing signature": (
        "gemini",
        base("gemini", USER, signed(SKIPS_SIGNATURE), NAMED_RESULT),
        base("gemini", USER, CALLING, RESULT),
        google_error(NO_SIGNATURE),
    ),
    "gemini: wrong signature": (
        "gemini",
        base("gemini", USER, signed(SKIPS_SIGNATURE), NAMED_RESULT),
        base("gemini", USER, signed("c2lnbmVk"), RESULT),
        google_error("Thought signature is not valid"),
    ),
    "gemini: a result without the name of its tool": (
        "gemini",
        base("gemini", USER, signed(SKIPS_SIGNATURE), NAMED_RESULT),
        base("gemini", USER, signed(SKIPS_SIGNATURE), RESULT),
        google_error("Request contains an invalid argument."),
    ),
    "gemini: too long": (
        "gemini",
        long("gemini", 9_900),
        long("gemini", 10_100),
        google_error("The input token count (10107) exceeds the maximum number of tokens allowed (10000)."),
    ),
    "glm: required": (
        "glm",
        base("glm", tools=TOOLS, tool_choice="auto"),
        base("glm", tools=TOOLS, tool_choice="required"),
        {"error": {"code": "1210", "message": "Tool choice must be auto"}},
    ),
    "glm: too long": (
        "glm",
        long("glm", 9_900),
        long("glm", 10_100),
        {"error": {"code": "1261", "message": "Prompt exceeds max length"}},
    ),
    "minimax: too long": (
        "minimax",
        long("minimax", 9_900),
        long("minimax", 10_100),
        openai_error("invalid params, context window exceeds limit (2013)", kind="bad_request_error"),
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_one_change_is_refused(rule: str) -> None:
    family, passes, changed, error = RULES[rule]
    with ChatDouble(family, window=10_000, maximum=5_000) as double:
        accepted = post(double, PATH, passes, **KEY)
        assert accepted.status_code == 200, accepted.text
        refused = post(double, PATH, changed, **KEY)
        assert (refused.status_code, refused.json()) == (400, error)
        assert len(double.refusals) == 1


@pytest.mark.parametrize("family", ["gemini", "minimax"])
def test_a_forced_tool_passes(family: str) -> None:
    with ChatDouble(family) as double:
        answered = post(double, PATH, base(family, tools=TOOLS, tool_choice="required"), **KEY).json()
    assert answered["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "weather"


@pytest.mark.parametrize("family", ["qwen", "glm", "minimax"])
def test_reasoning_need_not_come_back(family: str) -> None:
    with ChatDouble(family) as double:
        assert post(double, PATH, base(family, USER, CALLING, RESULT), **KEY).status_code == 200


def test_a_gemini_signature_holds_for_its_key_and_model() -> None:
    with ChatDouble("gemini", Scripted(Reply(calls=(Call("weather"), Call("weather"))), echo)) as double:
        message = post(double, PATH, base("gemini", tools=TOOLS), **KEY).json()["choices"][0]["message"]
        assert ["extra_content" in call for call in message["tool_calls"]] == [True, False]
        results = [{**NAMED_RESULT, "tool_call_id": call["id"]} for call in message["tool_calls"]]
        body = base("gemini", USER, message, *results)
        assert post(double, PATH, body, **KEY).status_code == 200
        refused = post(double, PATH, body, authorization="Bearer key-2")
        assert refused.json() == google_error("Thought signature is not valid")
        with ChatDouble("gemini", model="gemini-3.8-flash") as other:
            assert post(other, PATH, {**body, "model": "gemini-3.8-flash"}, **KEY).status_code == 400


# -- answers, read by OpenAI's own client

THINKS = Reply("It is sunny.", (Call("weather", {"city": "Ulm"}),), "Let me think of Ulm.", chunk_chars=5)
SHOWN = {"deepseek": "reasoning_content", "kimi": "reasoning_content", "qwen": "reasoning_content"}


def client(double: ChatDouble) -> OpenAI:
    return OpenAI(base_url=f"{double.url}/v1", api_key="key-1", max_retries=0)


def read(double: ChatDouble, **fields: Any) -> tuple[list[Any], Any]:
    """The chunks of a stream and the usage that it ended with."""
    sent = base(double.family.name, stream_options={"include_usage": True}, **fields)
    chunks = list(client(double).chat.completions.create(**sent, stream=True))
    return [chunk.choices[0].delta for chunk in chunks if chunk.choices], chunks[-1].usage


@pytest.mark.parametrize("family", SHOWN)
def test_the_sdk_reads_a_stream_with_reasoning(family: str) -> None:
    with ChatDouble(family, Scripted(THINKS)) as double:
        deltas, usage = read(double, tools=TOOLS)
    assert "".join(getattr(delta, SHOWN[family], None) or "" for delta in deltas) == THINKS.reasoning
    assert "".join(delta.content or "" for delta in deltas) == THINKS.text
    calls = [call for delta in deltas for call in delta.tool_calls or ()]
    assert calls[0].function.name == "weather"
    assert "".join(call.function.arguments or "" for call in calls) == '{"city": "Ulm"}'
    assert usage.completion_tokens == THINKS.tokens
    assert usage.completion_tokens_details.reasoning_tokens == THINKS.reasoning_tokens


def test_minimax_thinks_in_the_content_unless_it_is_to_split() -> None:
    with ChatDouble("minimax", Scripted(THINKS)) as double:
        deltas, _ = read(double)
        assert (
            "".join(delta.content or "" for delta in deltas)
            == f"<think>\n{THINKS.reasoning}\n</think>\n\n{THINKS.text}"
        )
        deltas, _ = read(double, extra_body={"reasoning_split": True})
    assert "".join(delta.content or "" for delta in deltas) == THINKS.text
    details = [part for delta in deltas for part in getattr(delta, "reasoning_details", None) or ()]
    assert "".join(part["text"] for part in details) == THINKS.reasoning


def test_hidden_reasoning_is_only_counted() -> None:
    with ChatDouble("openai", Scripted(THINKS)) as double:
        deltas, usage = read(double)
        assert usage.completion_tokens_details.reasoning_tokens == THINKS.reasoning_tokens > 0
        assert "think" not in str(deltas)
        _, usage = read(double, reasoning_effort="none")
        assert usage.completion_tokens_details.reasoning_tokens == 0


def test_any_cloud_may_show_its_reasoning_elsewhere() -> None:
    with ChatDouble("qwen", Scripted(THINKS), reasoning="think") as double:
        deltas, _ = read(double)
    assert "".join(delta.content or "" for delta in deltas).startswith(f"<think>\n{THINKS.reasoning}\n</think>")


def test_the_sdk_reads_a_refusal() -> None:
    with ChatDouble("deepseek") as double, pytest.raises(BadRequestError) as caught:
        client(double).chat.completions.create(**base("deepseek", USER, CALLING, RESULT))
    assert caught.value.body["message"] == DEEPSEEK_THINKS  # type: ignore[index]


USAGES: dict[str, tuple[bool, list[Any], Any]] = {
    # mode: whether the stream was asked for usage, what its chunks before the last say, the last one's prompt count
    "whole": (True, [None], 8),
    "last": (False, [], 8),
    "zero": (True, [], 0),
    "missing": (True, [], None),
}


@pytest.mark.parametrize("mode", USAGES)
def test_usage_in_a_stream(mode: Any) -> None:
    is_asked, before, count = USAGES[mode]
    options = {"stream_options": {"include_usage": True}} if is_asked else {}
    with ChatDouble("qwen", usage=mode) as double:
        events = events_of(post(double, PATH, base("qwen", stream=True, **options), **KEY))
    *first, last = events
    assert [event["usage"] for event in first if "usage" in event][:1] == before
    if count is None:
        assert "usage" not in last and last["choices"][0]["finish_reason"] == "stop"
    else:
        assert (last["choices"], last["usage"]["prompt_tokens"]) == ([], count)


def test_usage_that_nobody_asked_for_is_not_sent() -> None:
    with ChatDouble("qwen") as double:
        assert "usage" not in str(events_of(post(double, PATH, base("qwen", stream=True), **KEY)))


def test_what_an_earlier_request_had_too_is_cached() -> None:
    with ChatDouble("deepseek") as double:
        first = long("deepseek", 2_000)
        bodies = [first, {**first, "messages": [*first["messages"], THOUGHT, RESULT]}, base("deepseek")]
        usages = [post(double, PATH, body, **KEY).json()["usage"] for body in bodies]
    assert [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages] == [0, usages[0]["prompt_tokens"], 0]
