"""The double of Anthropic's Messages API: for each rule a request that passes, and the same with one change."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic

from tests.doubles.asking import TOOL_SCHEMA, events_of, post
from tests.doubles.brains import Call, Reply, Scripted
from tests.doubles.messages import MessagesDouble
from tests.doubles.messages_family import FAMILIES
from tests.pixels import coded, picture

pytestmark = pytest.mark.server

Body = dict[str, Any]
TOOLS = [{"name": "weather", "description": "Tells it", "input_schema": TOOL_SCHEMA}]
USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Ulm"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}
HEADERS = {"x_api_key": "key-1", "anthropic_version": "2023-06-01"}
PATH = "/v1/messages"


def base(**fields: Any) -> Body:
    body = {"model": "claude-opus-5-5", "max_tokens": 1_000, "messages": [{"role": "user", "content": "hello"}]}
    return {**body, **fields}


def messages(*pairs: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"role": role, "content": content} for role, content in pairs]


def talk(*pairs: tuple[str, Any], **fields: Any) -> Body:
    return base(messages=messages(*pairs), tools=TOOLS, **fields)


def image(content: bytes = picture(), media_type: str = "image/png") -> Body:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": coded(content)}}


SEEN = talk(("user", [image()]))
BUDGET = {"type": "enabled", "budget_tokens": 2_000}
ROUND = talk(("user", "hello"), ("assistant", [USE]), ("user", [RESULT]))
DOCS = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
NO_CHOICE = 'tool_choice: type "tool" and "any" are not supported for this model.'
UNSUPPORTED = (
    '"thinking.type.{}" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" '
    "to control thinking behavior."
)
NO_PREFILL = "This model does not support assistant message prefill. The conversation must end with a user message."
NO_RESULT = (
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` "
    "block must have a corresponding `tool_result` block in the next message."
)

# family, a request that passes, the same with one change, the words of its refusal
RULES: dict[str, tuple[str, Body, Body, str]] = {
    "any": (
        "anthropic-5.5",
        base(tools=TOOLS, tool_choice={"type": "auto"}),
        base(tools=TOOLS, tool_choice={"type": "any"}),
        NO_CHOICE,
    ),
    "tool": (
        "anthropic-5.5",
        base(tools=TOOLS, tool_choice={"type": "none"}),
        base(tools=TOOLS, tool_choice={"type": "tool", "name": "weather"}),
        NO_CHOICE,
    ),
    "disabled": (
        "anthropic-5.5",
        base(thinking={"type": "adaptive"}),
        base(thinking={"type": "disabled"}),
        UNSUPPORTED.format("disabled"),
    ),
    "budget": (
        "anthropic-5.5",
        base(thinking={"type": "adaptive"}),
        base(thinking=BUDGET),
        UNSUPPORTED.format("enabled"),
    ),
    "between tools": (
        "anthropic-5.5",
        base(),
        base(thinking={"type": "between_tools"}),
        UNSUPPORTED.format("between_tools"),
    ),
    "haiku's effort": (
        "anthropic-5.5-haiku",
        base(thinking={"type": "disabled"}),
        base(thinking={"type": "disabled"}, output_config={"effort": "xhigh"}),
        UNSUPPORTED.format("disabled"),
    ),
    "deepseek: missing thinking": (
        "deepseek",
        talk(("user", "hello"), ("assistant", [{"type": "thinking", "thinking": ""}, USE]), ("user", [RESULT])),
        ROUND,
        "The `content[].thinking` in the thinking mode must be passed back to the API.",
    ),
    "deepseek: missing thinking while it thinks": (
        "deepseek",
        {**ROUND, "thinking": {"type": "disabled"}},
        ROUND,
        "The `content[].thinking` in the thinking mode must be passed back to the API.",
    ),
    "deepseek: any": (
        "deepseek",
        base(tools=TOOLS, tool_choice={"type": "any"}, thinking={"type": "disabled"}),
        base(tools=TOOLS, tool_choice={"type": "any"}),
        "Thinking mode does not support this tool_choice",
    ),
    "deepseek: effort without thinking": (
        "deepseek",
        base(output_config={"effort": "high"}),
        base(output_config={"effort": "high"}, thinking={"type": "disabled"}),
        "thinking options type cannot be disabled when reasoning_effort is set",
    ),
    "glm: tool": (
        "glm",
        base(tools=TOOLS, tool_choice={"type": "auto"}),
        base(tools=TOOLS, tool_choice={"type": "tool", "name": "weather"}),
        "Tool choice must be auto",
    ),
    "sampling": (
        "anthropic-5.5",
        base(temperature=1),
        base(temperature=0.5),
        "`temperature` is deprecated for this model.",
    ),
    "top_k": ("anthropic-5", base(), base(top_k=5), "`top_k` is deprecated for this model."),
    "image source": (
        "anthropic-5.5",
        SEEN,
        talk(("user", [{"type": "image"}])),
        "messages.0.content.0.image.source: Field required",
    ),
    "image type": (
        "anthropic-5.5",
        SEEN,
        talk(("user", [image(media_type="image/bmp")])),
        "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' "
        "or 'image/webp'",
    ),
    "image base64": (
        "anthropic-5.5",
        SEEN,
        talk(("user", [{"type": "image", "source": {**image()["source"], "data": "a!"}}])),
        "messages.0.content.0.image.source.base64: invalid base64 data",
    ),
    "long image": (
        "anthropic-5.5",
        talk(("user", [image(picture() + bytes(3_900_000))])),
        talk(("user", [image(picture() + bytes(4_000_000))])),
        "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: "
        f"{len(coded(picture() + bytes(4_000_000)))} bytes > 5242880 bytes",
    ),
    "broken image": ("anthropic-5.5", SEEN, talk(("user", [image(picture()[:60])])), "Could not process image"),
    "mistaken image": (
        "anthropic-5.5",
        SEEN,
        talk(("user", [image(picture("JPEG"))])),
        "messages.0.content.0.image.source.base64.data: The image was specified using the image/png media type, but "
        "the image appears to be a image/jpeg image",
    ),
    "large image": (
        "anthropic-5.5",
        talk(("user", [image(picture("PNG", (8_000, 1)))])),
        talk(("user", [image(picture("PNG", (8_001, 1)))])),
        "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: "
        "8000 pixels",
    ),
    "too many images": (
        "anthropic-4",
        talk(("user", [image()] * 100)),
        talk(("user", [image()] * 101)),
        "Too much media: 0 document pages + 101 images > 100",
    ),
    "large image of many": (
        "anthropic-5.5",
        talk(("user", [image(picture("PNG", (2_001, 1)))] * 20)),
        talk(("user", [image(picture("PNG", (2_001, 1)))] * 21)),
        "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size "
        "for many-image requests: 2000 pixels",
    ),
    "prefill": ("anthropic-5.5", base(), talk(("user", "hello"), ("assistant", "Well,")), NO_PREFILL),
    "system first": (
        "anthropic-5.5",
        talk(("user", "a"), ("system", "b")),
        talk(("system", "b"), ("user", "a")),
        "messages.0: use the top-level 'system' parameter for the initial system prompt",
    ),
    "answer first": (
        "anthropic-5.5",
        talk(("user", "a"), ("assistant", "b"), ("user", "c")),
        talk(("assistant", "b"), ("user", "c")),
        'messages: first message must use the "user" role',
    ),
    "system after an answer": (
        "anthropic-5.5",
        talk(("user", "a"), ("system", "b")),
        talk(("user", "a"), ("assistant", "b"), ("system", "c"), ("user", "d")),
        "messages.2: a `system` message must follow a user turn",
    ),
    "system between use and result": (
        "anthropic-5.5",
        talk(("user", "a"), ("assistant", [USE]), ("user", [RESULT]), ("system", "b")),
        talk(("user", "a"), ("assistant", [USE]), ("system", "b"), ("user", [RESULT])),
        "messages.2: a `system` message must follow a user turn",
    ),
    "system before a user": (
        "anthropic-5.5",
        talk(("user", "a"), ("system", "b"), ("assistant", "c"), ("user", "d")),
        talk(("user", "a"), ("system", "b"), ("user", "c")),
        "messages.1: a `system` message must precede an assistant turn or be last",
    ),
    "system before 4.8": (
        "anthropic-4",
        base(),
        talk(("user", "a"), ("system", "b")),
        "role 'system' is not supported on this model",
    ),
    "use without result": (
        "anthropic-5.5",
        ROUND,
        talk(("user", "hello"), ("assistant", [USE]), ("user", "and?")),
        NO_RESULT,
    ),
    "result after text": (
        "anthropic-5.5",
        talk(("user", "a"), ("assistant", [USE]), ("user", [RESULT, {"type": "text", "text": "b"}])),
        talk(("user", "a"), ("assistant", [USE]), ("user", [{"type": "text", "text": "b"}, RESULT])),
        NO_RESULT,
    ),
    "result without use": (
        "anthropic-5.5",
        ROUND,
        talk(("user", [RESULT])),
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. Each `tool_result` "
        "block must have a corresponding `tool_use` block in the previous message.",
    ),
    "input": (
        "anthropic-5.5",
        ROUND,
        talk(("user", "a"), ("assistant", [{**USE, "input": "{}"}]), ("user", [RESULT])),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    "id": (
        "anthropic-5.5",
        ROUND,
        talk(("user", "a"), ("assistant", [{**USE, "id": "call:1"}]), ("user", [{**RESULT, "tool_use_id": "call:1"}])),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "empty text": (
        "anthropic-5.5",
        talk(("user", "a")),
        talk(("user", "")),
        "messages: text content blocks must be non-empty",
    ),
    "blank text": (
        "anthropic-5.5",
        talk(("user", "a")),
        talk(("user", " \n")),
        "messages: text content blocks must contain non-whitespace text",
    ),
    "no content": (
        "anthropic-5.5",
        talk(("user", "a")),
        talk(("user", "a"), ("assistant", []), ("user", "b")),
        "messages.1: all messages must have non-empty content except for the optional final assistant message",
    ),
    "missing content": (
        "anthropic-5.5",
        base(),
        base(messages=[{"role": "user"}]),
        "messages.0.content: Field required",
    ),
    "no messages": ("anthropic-5.5", base(), base(messages=[]), "messages: at least one message is required"),
    "role": (
        "anthropic-5.5",
        base(),
        talk(("tool", "a")),
        "messages.0.role: Input should be 'user', 'assistant' or 'system'",
    ),
    "output size": (
        "anthropic-5.5",
        base(max_tokens=128_000),
        base(max_tokens=128_001),
        "max_tokens: 128001 > 128000, which is the maximum allowed number of output tokens for claude-opus-5-5",
    ),
    "no output": (
        "anthropic-5.5",
        base(max_tokens=1),
        base(max_tokens=0),
        "max_tokens: Input should be greater than or equal to 1",
    ),
    "unknown field": (
        "anthropic-5.5",
        base(),
        base(max_completion_tokens=5),
        "max_completion_tokens: Extra inputs are not permitted",
    ),
    "missing field": (
        "anthropic-5.5",
        base(),
        {key: value for key, value in base().items() if key != "max_tokens"},
        "max_tokens: Field required",
    ),
    "binding without header": (
        "anthropic-5.5",
        base(thinking={"type": "adaptive"}),
        base(thinking={"type": "adaptive", "block_binding": {}}),
        "thinking.adaptive.block_binding: Extra inputs are not permitted",
    ),
    "editing without header": (
        "anthropic-5.5",
        base(),
        base(context_management={"edits": []}),
        "context_management: Extra inputs are not permitted",
    ),
    "compaction without header": (
        "anthropic-5.5",
        base(),
        base(compaction={"type": "summarize"}),
        "compaction: Extra inputs are not permitted",
    ),
    "clear_at without header": (
        "anthropic-5.5",
        talk(("user", "a"), ("system", "b")),
        base(messages=[*messages(("user", "a")), {"role": "system", "content": "b", "clear_at": "next_user_message"}]),
        "messages.1.clear_at: Extra inputs are not permitted",
    ),
    "updates without header": (
        "anthropic-5.5",
        base(thinking={"type": "adaptive", "display": "summarized"}),
        base(thinking={"type": "adaptive", "display": "updates"}),
        "thinking.adaptive.display: Extra inputs are not permitted",
    ),
    "tool change without header": (
        "anthropic-5.5",
        talk(("user", "a"), ("system", "b")),
        talk(("user", "a"), ("system", [{"type": "tool_removal", "tool_name": "weather"}])),
        "messages.1.content.0.tool_removal: Extra inputs are not permitted",
    ),
    "choice without tools": (
        "anthropic-5",
        base(tools=TOOLS, tool_choice={"type": "any"}),
        base(tool_choice={"type": "any"}),
        "tool_choice may only be specified while providing tools.",
    ),
    "unknown tool": (
        "anthropic-5",
        base(tools=TOOLS, tool_choice={"type": "tool", "name": "weather"}),
        base(tools=TOOLS, tool_choice={"type": "tool", "name": "tide"}),
        "Tool 'tide' not found in provided tools",
    ),
    "tool twice": ("anthropic-5", base(tools=TOOLS), base(tools=TOOLS * 2), "tools: Tool names must be unique."),
    "forced with a budget": (
        "anthropic-5",
        base(tools=TOOLS, tool_choice={"type": "any"}, thinking={"type": "adaptive"}),
        base(tools=TOOLS, tool_choice={"type": "any"}, thinking=BUDGET, max_tokens=4_000),
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    "adaptive before 4.6": (
        "anthropic-4",
        base(thinking=BUDGET, max_tokens=4_000),
        base(thinking={"type": "adaptive"}),
        UNSUPPORTED.format("adaptive"),
    ),
    "budget size": (
        "anthropic-4",
        base(thinking=BUDGET, max_tokens=4_000),
        base(thinking={**BUDGET, "budget_tokens": 1_000}, max_tokens=4_000),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    "budget room": (
        "anthropic-4",
        base(thinking=BUDGET, max_tokens=4_000),
        base(thinking=BUDGET, max_tokens=2_000),
        "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at "
        f"{DOCS}#max-tokens-and-context-window-size",
    ),
    "sampling with a budget": (
        "anthropic-4",
        base(temperature=0.5),
        base(temperature=0.5, thinking=BUDGET, max_tokens=4_000),
        "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. Please consult our "
        f"documentation at {DOCS}",
    ),
    "round without thinking": (
        "anthropic-4",
        ROUND,
        {**ROUND, "thinking": BUDGET, "max_tokens": 4_000},
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` "
        "is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of "
        "`tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid "
        "this requirement, disable `thinking`. Please consult our documentation at " + DOCS,
    ),
    "breakpoints": (
        "anthropic-5.5",
        talk(*[("user", [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}])] * 4),
        talk(*[("user", [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}])] * 5),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_one_change_is_refused(rule: str) -> None:
    family, passes, changed, words = RULES[rule]
    with MessagesDouble(family) as double:
        accepted = post(double, PATH, passes, **HEADERS)
        assert accepted.status_code == 200, accepted.text
        refused = post(double, PATH, changed, **HEADERS)
        assert refused.status_code == 400
        error = refused.json()
        assert error["type"] == "error"
        assert error["error"] == {"type": "invalid_request_error", "message": words}
        assert [refusal.message for refusal in double.refusals] == [words]


@pytest.mark.parametrize(
    ("change", "status", "kind", "words"),
    [
        ({"anthropic_version": None}, 400, "invalid_request_error", "anthropic-version: header is required"),
        ({"x_api_key": None}, 401, "authentication_error", "x-api-key header is required"),
    ],
)
def test_headers_are_needed(change: dict[str, None], status: int, kind: str, words: str) -> None:
    headers = {name: value for name, value in HEADERS.items() if name not in change}
    with MessagesDouble() as double:
        refused = post(double, PATH, base(), **headers)
    assert (refused.status_code, refused.json()["error"]) == (status, {"type": kind, "message": words})


def test_another_model_is_not_found() -> None:
    with MessagesDouble() as double:
        refused = post(double, PATH, base(model="claude-opus-5.5"), **HEADERS)
    assert refused.status_code == 404
    assert refused.json()["error"] == {"type": "not_found_error", "message": "model: claude-opus-5.5"}


def test_a_beta_field_passes_with_its_header() -> None:
    fields = base(thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}})
    with MessagesDouble() as double:
        headers = {**HEADERS, "anthropic_beta": "other-2026-01-01, thinking-binding-controls-2026-08-01"}
        assert post(double, PATH, fields, **headers).status_code == 200


@pytest.mark.parametrize("family", FAMILIES)
def test_an_input_longer_than_the_window_is_refused_by_every_family(family: str) -> None:
    with MessagesDouble(family, window=1_000) as double:
        assert post(double, PATH, base(max_tokens=10), **HEADERS).status_code == 200
        counted = post(double, f"{PATH}/count_tokens", base_count("x" * 3_600), **HEADERS).json()["input_tokens"]
        refused = post(double, PATH, base(max_tokens=10, messages=messages(("user", "x" * 4_400))), **HEADERS)
        assert refused.status_code == 400
        assert refused.json()["error"]["message"] == "prompt is too long: 1109 tokens > 1000 maximum"
        assert 900 < counted < 1_000


def base_count(text: str) -> Body:
    return {"model": "claude-opus-5-5", "messages": messages(("user", text))}


@pytest.mark.parametrize("family", ["anthropic-5.5", "anthropic-5", "anthropic-4"])
def test_new_families_stop_at_the_window(family: str) -> None:
    with MessagesDouble(family, Scripted(Reply("y" * 4_000)), window=1_000) as double:
        answered = post(double, PATH, base(max_tokens=900, messages=messages(("user", "x" * 3_000))), **HEADERS).json()
    assert answered["stop_reason"] == "model_context_window_exceeded"
    assert answered["usage"]["input_tokens"] + answered["usage"]["output_tokens"] == 1_000


def test_old_families_refuse_what_does_not_fit() -> None:
    with MessagesDouble("anthropic-3", window=1_000) as double:
        body = base(max_tokens=200, messages=messages(("user", "x" * 3_000)))
        assert post(double, PATH, body, **HEADERS).status_code == 200
        refused = post(double, PATH, {**body, "max_tokens": 900}, **HEADERS)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == (
        "input length and `max_tokens` exceed context limit: 759 + 900 > 1000, decrease input length or `max_tokens` "
        "and try again"
    )


# -- answers, read by Anthropic's own client


def client(double: MessagesDouble) -> Anthropic:
    return Anthropic(base_url=double.url, api_key="key-1", max_retries=0)


THOUGHT = Reply("It is sunny.", (Call("weather", {"city": "Ulm"}),), "Let me think of Ulm.", chunk_chars=5)


@pytest.mark.parametrize(
    ("family", "fields", "shown"),
    [
        ("anthropic-5.5", {}, ""),
        ("anthropic-5.5", {"thinking": {"type": "adaptive", "display": "summarized"}}, THOUGHT.reasoning),
        ("anthropic-4", {"thinking": BUDGET}, THOUGHT.reasoning),
    ],
)
def test_the_sdk_reads_a_stream(family: str, fields: Any, shown: str) -> None:
    with MessagesDouble(family, Scripted(THOUGHT)) as double:
        body = base(tools=TOOLS, **{**fields, "max_tokens": 4_000})
        with client(double).messages.stream(**body) as stream:
            message = stream.get_final_message()
    thinking, text, use = message.content
    assert (thinking.type, thinking.thinking, text.type, text.text) == ("thinking", shown, "text", "It is sunny.")
    assert thinking.signature
    assert (use.type, use.name, use.input) == ("tool_use", "weather", {"city": "Ulm"})
    assert message.stop_reason == "tool_use"
    assert message.usage.output_tokens == THOUGHT.tokens


def test_the_sdk_reads_a_whole_answer_and_counts_and_models() -> None:
    with MessagesDouble() as double:
        message = client(double).messages.create(**base())
        counted = client(double).messages.count_tokens(model="claude-opus-5-5", messages=base()["messages"])
        (listed,) = client(double).models.list().data
    assert message.content[0].text == "You said: hello"
    assert message.usage.input_tokens == counted.input_tokens
    assert (listed.id, listed.max_input_tokens, listed.max_tokens) == ("claude-opus-5-5", 1_000_000, 128_000)


def test_output_ends_at_max_tokens() -> None:
    with MessagesDouble(brain=Scripted(Reply("y" * 400))) as double:
        message = client(double).messages.create(**base(max_tokens=10))
    assert (message.stop_reason, message.content[0].text, message.usage.output_tokens) == ("max_tokens", "y" * 40, 10)


def marked(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]


def test_the_cache_holds_what_was_marked_and_is_the_accounts_own() -> None:
    first = base(messages=messages(("user", marked("x" * 4_000))))
    second = base(messages=messages(("user", "x" * 4_000), ("assistant", "yes"), ("user", marked("and now?"))))
    with MessagesDouble() as double:
        usages = [
            post(double, PATH, body, **{**HEADERS, "x_api_key": key}).json()["usage"]
            for body, key in ((first, "a"), (second, "a"), (second, "b"))
        ]
    wholes = [u["input_tokens"] + u["cache_read_input_tokens"] + u["cache_creation_input_tokens"] for u in usages]
    assert usages[0]["cache_creation_input_tokens"] == wholes[0] > 1_000
    assert usages[1]["cache_read_input_tokens"] == wholes[0]
    assert usages[2]["cache_read_input_tokens"] == 0
    assert wholes[1] == wholes[2]


@pytest.mark.parametrize(
    "change",
    [
        lambda body: {**body, "tools": [*TOOLS, {**TOOLS[0], "name": "tide"}]},
        lambda body: {**body, "system": "You are another."},
        lambda body: {**body, "tool_choice": {"type": "none"}},
        lambda body: {**body, "output_config": {"effort": "low"}},
    ],
)
def test_a_changed_prefix_is_not_read_from_the_cache(change: Callable[[Body], Body]) -> None:
    body = base(messages=messages(("user", marked("x" * 4_000))), tools=TOOLS, system="You are one.")
    with MessagesDouble() as double:
        reads = [
            post(double, PATH, sent, **HEADERS).json()["usage"]["cache_read_input_tokens"]
            for sent in (body, body, change(body))
        ]
    assert reads[0] == reads[2] == 0 < reads[1]


def test_a_short_prompt_is_not_cached() -> None:
    with MessagesDouble() as double:
        for _ in range(2):
            usage = post(double, PATH, base(messages=messages(("user", marked("x" * 400)))), **HEADERS).json()["usage"]
    assert (usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]) == (0, 0)


@pytest.mark.parametrize(
    ("usage", "first", "last"), [("whole", 11, 11), ("last", 0, 11), ("zero", 0, 0), ("missing", None, None)]
)
def test_usage_in_a_stream(usage: Any, first: int | None, last: int | None) -> None:
    with MessagesDouble(usage=usage) as double:
        start, *_, delta, _ = events_of(post(double, PATH, base(stream=True), **HEADERS))
    assert start["message"]["usage"].get("input_tokens") == first
    assert delta["usage"].get("input_tokens") == last


@pytest.mark.parametrize(("usage", "expected"), [("zero", 0), ("missing", None)])
def test_usage_can_be_zero_or_missing(usage: Any, expected: int | None) -> None:
    with MessagesDouble(usage=usage) as double:
        assert post(double, PATH, base(), **HEADERS).json()["usage"].get("input_tokens") == expected


def test_a_message_for_one_turn_ends_with_the_next_message() -> None:
    passing = {"role": "system", "content": "Remember the milk. " * 20, "clear_at": "next_user_message"}
    headers = {**HEADERS, "anthropic_beta": "mid-conversation-system-clear-at-2026-08-21"}
    later = messages(("assistant", "ok"), ("user", "b"))
    with MessagesDouble() as double:
        for tail in ([], later):
            post(double, PATH, base(messages=[*messages(("user", "a")), passing, *tail]), **headers)
        shown = [["milk" in answer.text for answer in request.prompt.messages] for request in double.requests]
    assert shown == [[False, True], [False, False, False]]


def test_a_stream_may_end_badly() -> None:
    with MessagesDouble(brain=Scripted(Reply("half", error_event="busy"), Reply("half", breaks_off=True))) as double:
        last = events_of(post(double, PATH, base(stream=True), **HEADERS))[-1]
        assert last == {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
        with pytest.raises(httpx2.RemoteProtocolError):
            post(double, PATH, base(stream=True), **HEADERS)
