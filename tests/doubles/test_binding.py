"""Preserved thinking: what may stand before a signed block, and what becomes of it when something else does."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from anthropic import Anthropic, BadRequestError

from tests.doubles.asking import TOOL_SCHEMA, last_refusal, post
from tests.doubles.binding import CONTROLS
from tests.doubles.brains import Prompt, Reply
from tests.doubles.messages import MessagesDouble

pytestmark = pytest.mark.server

Body = dict[str, Any]
PATH = "/v1/messages"
HEADERS = {"x_api_key": "key-1", "anthropic_version": "2023-06-01"}
WITH_CONTROLS = {**HEADERS, "anthropic_beta": CONTROLS}
TOOLS = [{"name": "weather", "description": "Tells it", "input_schema": TOOL_SCHEMA}]
BOUND = (
    "messages.{at}.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


def brain(asked: Prompt) -> Reply:
    return Reply(f"Answer {len(asked.messages)}", reasoning=f"Thought {len(asked.messages)}")


@pytest.fixture
def double() -> Iterator[MessagesDouble]:
    with MessagesDouble(brain=brain) as running:
        yield running


def start() -> Body:
    messages = [{"role": "user", "content": "one"}]
    return {
        "model": "claude-opus-5-5",
        "max_tokens": 1_000,
        "system": "You are one.",
        "tools": deepcopy(TOOLS),
        "messages": messages,
    }


def body_with(double: MessagesDouble, body: Body, text: str = "go on", **headers: str) -> Body:
    """The body of the next request, after this one was answered."""
    answered = post(double, PATH, body, **(headers or HEADERS))
    assert answered.status_code == 200, answered.text
    turn = [{"role": "assistant", "content": answered.json()["content"]}, {"role": "user", "content": text}]
    return {**body, "messages": [*body["messages"], *turn]}


def talked(double: MessagesDouble, turns: int = 3) -> Body:
    """A dialog with thinking at messages 1, 3, 5 ..."""
    body = start()
    for _ in range(turns):
        body = body_with(double, body)
    return body


def without_thinking(body: Body, *at: int) -> Body:
    body = deepcopy(body)
    for position in at:
        body["messages"][position]["content"] = [
            block for block in body["messages"][position]["content"] if block["type"] != "thinking"
        ]
    return body


def changed(body: Body, change: Callable[[Body], Any]) -> Body:
    body = deepcopy(body)
    change(body)
    return body


MARK = {"cache_control": {"type": "ephemeral"}}
HARMLESS: dict[str, Callable[[Body], Any]] = {
    "nothing": lambda body: None,
    "marks for the cache": lambda body: (
        body.update(system=[{"type": "text", "text": "You are one.", **MARK}]),
        body["tools"][0].update(MARK),
        body["messages"].__setitem__(0, {"role": "user", "content": [{"type": "text", "text": "one", **MARK}]}),
    ),
    "effort": lambda body: body.update(output_config={"effort": "low"}),
    "max_tokens": lambda body: body.update(max_tokens=50),
    "tool_choice": lambda body: body.update(tool_choice={"type": "none"}),
    "a tool to be loaded": lambda body: body["tools"].append(
        {"name": "tide", "input_schema": TOOL_SCHEMA, "defer_loading": True}
    ),
    "more at the end": lambda body: body["messages"].append({"role": "user", "content": "more"}),
    "a system message at the end": lambda body: body["messages"].append({"role": "system", "content": "more"}),
}


@pytest.mark.parametrize("change", HARMLESS)
def test_what_is_no_prefix_may_change(double: MessagesDouble, change: str) -> None:
    answered = post(double, PATH, changed(talked(double), HARMLESS[change]), **HEADERS)
    assert answered.status_code == 200, answered.text


HARMFUL: dict[str, tuple[Callable[[Body], Any], int, str]] = {
    "system": (lambda body: body.update(system="You are two."), 1, " The `system` prompt differs"),
    "no system": (lambda body: body.pop("system"), 1, " The `system` prompt differs"),
    "one tool less": (lambda body: body.update(tools=[]), 1, " The `tools` differ"),
    "a tool's words": (lambda body: body["tools"][0].update(description="Tells"), 1, " The `tools` differ"),
    "an earlier message": (lambda body: body["messages"][0].update(content="two"), 1, " The `messages`"),
    "one added text": (
        lambda body: body["messages"][2].update(
            content=[{"type": "text", "text": "go on"}, {"type": "text", "text": "reminder"}]
        ),
        3,
        " The `messages`",
    ),
    "an added message": (
        lambda body: body["messages"].insert(2, {"role": "user", "content": "b"}),
        4,
        " The `messages`",
    ),
    "a rewritten start": (lambda body: body["messages"].__delitem__(slice(0, 2)), 1, " The `messages`"),
}


@pytest.mark.parametrize("change", HARMFUL)
def test_a_changed_prefix_is_refused(double: MessagesDouble, change: str) -> None:
    change_it, at, reason = HARMFUL[change]
    body = changed(talked(double), change_it)
    refused = post(double, PATH, body, **WITH_CONTROLS)
    assert refused.status_code == 400
    assert refused.json()["error"]["type"] == "invalid_request_error"
    message = refused.json()["error"]["message"]
    assert message.startswith(BOUND.format(at=at) + reason)
    assert post(double, PATH, body, **WITH_CONTROLS).json()["error"]["message"] == message  # for ever
    counted = {key: value for key, value in body.items() if key != "max_tokens"}
    assert post(double, f"{PATH}/count_tokens", counted, **WITH_CONTROLS).json()["error"]["message"] == message


def test_without_the_header_the_refusal_asks_for_it(double: MessagesDouble) -> None:
    post(double, PATH, changed(talked(double), HARMFUL["system"][0]), **HEADERS)
    needs = f" That setting requires the `{CONTROLS}` value in the `anthropic-beta` header."
    reason = " The `system` prompt differs from the one this block was created with."
    assert last_refusal(double).message == BOUND.format(at=1) + needs + reason


KEPT = {(1,): True, (1, 3): True, (5,): True, (3, 5): True, (1, 3, 5): True, (3,): False}


@pytest.mark.parametrize("dropped", KEPT)
def test_kept_thinking_is_an_unbroken_run(double: MessagesDouble, dropped: tuple[int, ...]) -> None:
    answered = post(double, PATH, without_thinking(talked(double), *dropped), **WITH_CONTROLS)
    assert (answered.status_code == 200) is KEPT[dropped]
    if not KEPT[dropped]:
        gap = " The `thinking` block that preceded this one when it was created is missing from this request."
        assert answered.json()["error"]["message"] == BOUND.format(at=5) + gap


@pytest.mark.parametrize("dropped", [(1,), (3,), (1, 3)])
def test_a_dropped_block_stays_dropped(double: MessagesDouble, dropped: tuple[int, ...]) -> None:
    whole = talked(double, turns=2)
    shorter = body_with(double, without_thinking(whole, *dropped))
    assert post(double, PATH, shorter, **HEADERS).status_code == 200
    back = {**shorter, "messages": [*whole["messages"], *shorter["messages"][len(whole["messages"]) :]]}
    assert post(double, PATH, back, **WITH_CONTROLS).status_code == 400


def test_drop_block_drops_that_block_and_all_later_ones(double: MessagesDouble) -> None:
    thinking = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    body = {**changed(talked(double), HARMFUL["one added text"][0]), "thinking": thinking}
    answered = post(double, PATH, body, **WITH_CONTROLS).json()
    dropped = {"type": "thinking_dropped", "reason": "prefix_binding_mismatch"}
    assert answered["input_transformations"] == [
        {**dropped, "path": "messages.3.content.0"},
        {**dropped, "path": "messages.5.content.0"},
    ]
    later = body_with(double, body, **WITH_CONTROLS)
    assert len(post(double, PATH, later, **WITH_CONTROLS).json()["input_transformations"]) == 2
    del later["thinking"]
    assert post(double, PATH, later, **WITH_CONTROLS).status_code == 400


def test_the_sdk_reads_transformations_in_a_stream(double: MessagesDouble) -> None:
    body = changed(talked(double), HARMFUL["system"][0])
    client = Anthropic(base_url=double.url, api_key="key-1", max_retries=0)
    thinking: Any = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    with client.beta.messages.stream(**body, betas=[CONTROLS], thinking=thinking) as stream:
        result = stream.get_final_message().input_transformations
    assert [entry.path for entry in result or ()] == [f"messages.{at}.content.0" for at in (1, 3, 5)]
    with pytest.raises(BadRequestError, match="bound to a different conversation"):
        client.beta.messages.create(**body, betas=[CONTROLS])


def test_an_older_account_only_records_what_would_be_refused() -> None:
    with MessagesDouble(brain=brain, binding="record") as double:
        body = changed(talked(double), HARMFUL["one added text"][0])
        answered = post(double, PATH, body, **WITH_CONTROLS).json()
        entry = {"type": "thinking_mismatch_allowed", "reason": "prefix_binding_mismatch"}
        assert answered["input_transformations"] == [{**entry, "path": f"messages.{at}.content.0"} for at in (3, 5)]
        asked_for = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}
        assert post(double, PATH, {**body, "thinking": asked_for}, **WITH_CONTROLS).status_code == 400


def test_an_account_may_drop_by_itself() -> None:
    with MessagesDouble(brain=brain, binding="drop") as double:
        answered = post(double, PATH, changed(talked(double), HARMFUL["system"][0]), **WITH_CONTROLS).json()
    assert [entry["type"] for entry in answered["input_transformations"]] == ["thinking_dropped"] * 3


@pytest.mark.parametrize("field", ["signature", "thinking"])
@pytest.mark.parametrize("family", ["anthropic-5.5", "anthropic-5"])
def test_tampered_thinking_is_refused_by_all(family: str, field: str) -> None:
    with MessagesDouble(family, brain) as double:
        body = talked(double)
        assert post(double, PATH, body, **HEADERS).status_code == 200
        body["messages"][3]["content"][0][field] += "A"
        refused = post(double, PATH, body, **HEADERS)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == "messages.3.content.0: Invalid `signature` in `thinking` block"


@pytest.mark.parametrize("change", HARMFUL)
def test_families_before_5_5_check_no_prefix(change: str) -> None:
    with MessagesDouble("anthropic-5", brain) as double:
        assert post(double, PATH, changed(talked(double), HARMFUL[change][0]), **HEADERS).status_code == 200


def test_another_models_thinking_is_dropped_silently(double: MessagesDouble) -> None:
    body = {**talked(double), "model": "claude-fable-5-2"}
    for reads, expected in (((), 3), (("claude-opus-5-5",), 0)):
        with MessagesDouble(brain=brain, model="claude-fable-5-2", reads=reads) as other:
            result = post(other, PATH, body, **WITH_CONTROLS).json()["input_transformations"]
        assert [entry["reason"] for entry in result] == ["model_binding_mismatch"] * expected


def test_sonnets_thinking_is_the_accounts_own() -> None:
    with MessagesDouble("anthropic-5.5-sonnet", brain) as double:
        body = talked(double)
        result = post(double, PATH, body, **{**WITH_CONTROLS, "x_api_key": "key-2"}).json()["input_transformations"]
    assert [entry["reason"] for entry in result] == ["organization_binding_mismatch"] * 3


def test_thinking_takes_no_mark_for_the_cache(double: MessagesDouble) -> None:
    body = talked(double)
    body["messages"][1]["content"][0].update(MARK)
    words = "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted"
    assert post(double, PATH, body, **HEADERS).json()["error"]["message"] == words


def test_redacted_thinking_is_bound_as_well(double: MessagesDouble) -> None:
    body = talked(double, turns=1)
    thinking, *rest = body["messages"][1]["content"]
    body["messages"][1]["content"] = [{"type": "redacted_thinking", "data": thinking["signature"]}, *rest]
    assert post(double, PATH, body, **HEADERS).status_code == 200
    post(double, PATH, changed(body, HARMFUL["system"][0]), **WITH_CONTROLS)
    assert "Invalid `signature` in `redacted_thinking` block" in last_refusal(double).message
