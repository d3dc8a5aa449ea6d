"""``/v1/messages`` with the official client, and with what Claude Code sends."""

import json
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import Anthropic
from django.contrib.auth.models import User

from dialogs.models import Client, Dialog, Turn
from tests.dialogs.extras.v1.protocols.conftest import LONG, PICTURES, SCHEMA, SCRIPTS, dialog_of, seen
from tests.doubles.serving import Double
from tests.harness.stack import Stack


@pytest.fixture
def claude(stack: Stack, key: str) -> Anthropic:
    return Anthropic(base_url=stack.base_url, api_key=key)


WEATHER: Any = {"name": "get_weather", "description": "The weather in a city.", "input_schema": SCHEMA}


def asked(claude: Anthropic, model: str, messages: list[Any], *, stream: bool = False, **options: Any) -> Any:
    options = {"model": model, "max_tokens": 1000, "messages": messages, **options}
    if not stream:
        return claude.messages.create(**options)
    with claude.messages.stream(**options) as events:
        return events.get_final_message()


def result_of(message: Any) -> list[dict[str, Any]]:
    calls = [block for block in message.content if block.type == "tool_use"]
    return [{"type": "tool_result", "tool_use_id": call.id, "content": "30 degrees"} for call in calls]


@pytest.mark.parametrize("stream", [False, True])
def test_ten_turns_with_tools_and_thinking_are_one_dialog(claude: Anthropic, stream: bool) -> None:
    options: Any = {"tools": [WEATHER], "thinking": {"type": "adaptive"}, "stream": stream}
    messages: list[Any] = []
    ids = set()
    for number in range(5):
        messages.append({"role": "user", "content": f"How is the weather on day {number}?"})
        called = asked(claude, "weather", messages, **options)
        assert [block.type for block in called.content] == ["thinking", "text", "tool_use"]
        assert (called.content[0].thinking, called.content[1].text) == ("I must look.", "Let me look.")
        assert (called.content[2].name, called.content[2].input) == ("get_weather", {"city": "Rome"})
        assert (called.stop_reason, called.usage.input_tokens, called.usage.output_tokens) == ("tool_use", 50, 5)
        messages += [{"role": "assistant", "content": called.content}, {"role": "user", "content": result_of(called)}]
        answer = asked(claude, "weather", messages, **options)
        assert [(block.type, block.text) for block in answer.content] == [("text", "It is warm.")]
        assert answer.stop_reason == "end_turn"
        messages.append({"role": "assistant", "content": answer.content})
        ids |= {dialog_of(called.id).pk, dialog_of(answer.id).pk}
    assert len(ids) == 1
    assert [turn.role for turn in Turn.objects.filter(dialog__in=ids).order_by("position")] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ] * 5


def test_a_message_streams_its_events_in_the_protocols_order(stack: Stack, key: str) -> None:
    body = {
        "model": "weather",
        "max_tokens": 100,
        "stream": True,
        "tools": [WEATHER],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "messages": [{"role": "user", "content": "How is the weather?"}],
    }
    answer = httpx2.post(f"{stack.base_url}/v1/messages?beta=true", json=body, headers={"x-api-key": key}, timeout=30)
    lines = [line for line in answer.text.splitlines() if line]
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert [line[7:] for line in lines if line.startswith("event: ")] == [event["type"] for event in events]
    kinds = [event["type"].removeprefix("content_block_") for event in events]
    assert (
        [kind for kind, before in zip(kinds, ["", *kinds], strict=False) if kind != before]
        == """
        message_start ping start delta stop start delta stop start delta stop message_delta message_stop
        """.split()
    )
    assert [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"] == [
        "thinking",
        "text",
        "tool_use",
    ]
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_what_claude_code_sends_is_understood(stack: Stack, key: str) -> None:
    """Reminders beside a result are no message of a person's, and its changing first block no instruction."""
    ours = Anthropic(base_url=stack.base_url, auth_token=key, api_key=None)
    cached = {"cache_control": {"type": "ephemeral"}}
    options: Any = {
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.37; cc_entrypoint=cli; cch=fa690;"},
            {"type": "text", "text": "You are a coding agent.", **cached},
        ],
        "tools": [{**WEATHER, **cached}],
        "metadata": {"user_id": "user_1_account__session_2"},
        "betas": ["claude-code-20250219", "interleaved-thinking-2025-05-14"],
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "model": "weather",
        "max_tokens": 32_000,
        "extra_body": {"temperature": 1},
    }
    reminder = {"type": "text", "text": "<system-reminder>The list is empty.</system-reminder>"}
    messages: list[Any] = [
        {"role": "user", "content": [reminder, {"type": "text", "text": "How is the weather?", **cached}]}
    ]

    def streamed() -> Any:
        with ours.beta.messages.stream(messages=messages, **options) as events:
            return events.get_final_message()

    called = streamed()
    dialog = dialog_of(called.id)
    assert Client.objects.get(dialog=dialog).instructions == "You are a coding agent."
    messages += [{"role": "assistant", "content": called.content}]
    messages += [{"role": "user", "content": [*result_of(called), reminder]}]
    answer = streamed()
    assert dialog_of(answer.id).pk == dialog.pk
    assert dialog.turns.get(role="tool").text == f"30 degrees\n{reminder['text']}"
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": "Thanks"}]
    assert dialog_of(streamed().id).pk == dialog.pk


def test_a_result_and_a_new_message_go_on_together(claude: Anthropic) -> None:
    messages: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    called = asked(claude, "weather", messages, tools=[WEATHER])
    text = {"type": "text", "text": "Never mind, thank you."}
    messages += [
        {"role": "assistant", "content": called.content},
        {"role": "user", "content": [*result_of(called), text]},
    ]
    answer = asked(claude, "weather", messages, tools=[WEATHER])
    dialog = dialog_of(called.id)
    assert list(dialog.turns.order_by("position").values_list("role", "text")) == [
        ("user", "How is the weather?"),
        ("assistant", "Let me look."),
        ("tool", "30 degrees"),
        ("user", "Never mind, thank you."),
        ("assistant", "It is warm."),
    ]
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": "Bye"}]
    assert dialog_of(asked(claude, "weather", messages, tools=[WEATHER]).id).pk == dialog.pk


def block(number: int) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURES[number]}}


def test_images_of_messages_and_of_tool_results_reach_the_model(claude: Anthropic, seer: Double) -> None:
    def counted(content: Any) -> int:
        return claude.messages.count_tokens(model="seer", messages=[{"role": "user", "content": content}]).input_tokens

    assert counted([block(0), {"type": "text", "text": "What is it?"}]) > counted("What is it?")
    messages: list[Any] = [{"role": "user", "content": [block(0), {"type": "text", "text": "The weather here?"}]}]
    called = asked(claude, "seer", messages, tools=[WEATHER])
    assert seen(seer) == PICTURES[:1]
    result = {**result_of(called)[0], "content": [block(1)]}
    messages += [{"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}]
    answer = asked(claude, "seer", messages, tools=[WEATHER])
    assert (answer.content[-1].text, seen(seer)) == ("I see.", PICTURES[:2])
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [block(2)]}]
    last = asked(claude, "seer", messages, tools=[WEATHER], stream=True)
    assert seen(seer) == PICTURES
    assert {dialog_of(message.id).pk for message in (called, answer, last)} == {dialog_of(called.id).pk}
    with pytest.raises(anthropic.BadRequestError, match="damaged"):
        source = {"type": "base64", "media_type": "image/png", "data": PICTURES[0][:60]}
        asked(claude, "seer", [{"role": "user", "content": [{"type": "image", "source": source}]}])
    with pytest.raises(anthropic.BadRequestError, match="takes no image"):
        asked(claude, "blind", messages[:1])
    assert seer.refusals == []


def test_models_are_the_agents(claude: Anthropic) -> None:
    result = {model.id: model.display_name for model in claude.models.list()}
    assert {name: result[name] for name in SCRIPTS} == {name: name for name in SCRIPTS}
    assert claude.models.retrieve("plain").type == "model"


def test_errors_beside_messages_speak_anthropics_words_to_its_client(claude: Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as missing:
        claude.models.retrieve("nobody")
    assert missing.value.body["type"] == "error"  # type: ignore[index]
    with pytest.raises(anthropic.NotFoundError) as batches:
        claude.messages.batches.list()
    assert batches.value.body["error"]["type"] == "not_found_error"  # type: ignore[index]


def test_tokens_are_counted_and_nothing_is_kept(claude: Anthropic, person: User) -> None:
    def counted(text: str, **options: Any) -> int:
        messages: Any = [{"role": "user", "content": text}]
        return claude.messages.count_tokens(model="plain", messages=messages, **options).input_tokens

    short = counted("Hi")
    assert counted("Hi " * 1_000) - short == pytest.approx(1_000, rel=0.2)
    assert counted("Hi", tools=[WEATHER]) > short
    assert not Dialog.objects.filter(owner=person).exists()


def test_unknown_usage_of_a_message_is_null(claude: Anthropic) -> None:
    for stream in (False, True):
        assert asked(claude, "quiet", [{"role": "user", "content": "Hi"}], stream=stream).usage.output_tokens is None


def test_errors_of_messages_have_that_protocols_shape(stack: Stack, claude: Anthropic, person: User) -> None:
    hi = [{"role": "user", "content": "Hi"}]
    with pytest.raises(anthropic.AuthenticationError) as unauthorized:
        asked(Anthropic(base_url=stack.base_url, api_key="dmk_wrong"), "plain", hi)
    assert unauthorized.value.body["error"]["type"] == "authentication_error"  # type: ignore[index]
    with pytest.raises(anthropic.NotFoundError, match="not_found_error"):
        asked(claude, "nobody", hi)
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.0\.role: role must be"):
        asked(claude, "plain", [{"role": "robot", "content": "Hi"}])
    with pytest.raises(anthropic.BadRequestError, match=r"tools\.0\.type: 'web_search_20250305'"):
        asked(claude, "plain", hi, tools=[{"type": "web_search_20250305", "name": "web_search"}])
    with pytest.raises(anthropic.RequestTooLargeError, match="request_too_large"):
        asked(claude, "plain", [{"role": "user", "content": "a" * 1_000_001}])
    assert not Dialog.objects.filter(owner=person).exists()
    for stream in (False, True):
        with pytest.raises(anthropic.AuthenticationError, match="provider_authentication") as failed:
            asked(claude, "failing", [{"role": "user", "content": f"Hi {stream}"}], stream=stream)
        assert failed.value.request_id, "by which the log is searched"
    assert Turn.objects.filter(dialog__owner=person).count() == 2, "no client asked twice"
    with (
        pytest.raises(anthropic.APIStatusError, match="authentication_error"),
        claude.messages.stream(model="breaks", max_tokens=100, messages=hi) as events,  # type: ignore[arg-type]
    ):
        frame = ""
        for event in events:
            frame += event.text if event.type == "text" else ""
    assert frame == "Let me see."


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_is_compacted_by_a_block(claude: Anthropic, stream: bool) -> None:
    def sent(messages: list[Any], **options: Any) -> Any:
        fields: Any = {"model": "plain", "max_tokens": 100, "messages": messages, **options}
        if not stream:
            return claude.beta.messages.create(**fields)
        with claude.beta.messages.stream(**fields) as events:
            return events.get_final_message()

    alone = sent(LONG, compaction={"type": "summarize"}, betas=["compact-2026-09-04"])
    assert ([block.type for block in alone.content], alone.stop_reason) == (["compaction"], "compaction")
    assert "[Summary of turns 1-" in alone.content[0].content
    assert alone.usage.input_tokens == 10 * alone.usage.output_tokens
    messages: list[Any] = [{"role": "assistant", "content": alone.content}, {"role": "user", "content": "And now?"}]
    trigger = {"type": "input_tokens", "value": 100}
    edits = {"edits": [{"type": "compact_20260112", "trigger": trigger}]}
    answer = sent(messages, context_management=edits, betas=["compact-2026-01-12"])
    assert [block.type for block in answer.content] == ["compaction", "text"]
    assert answer.content[1].text == "You said: And now?"
    assert answer.context_management.applied_edits == []
    assert dialog_of(answer.id).pk == dialog_of(alone.id).pk
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": "And then?"}]
    last = sent(messages)
    assert (last.content[0].text, dialog_of(last.id).pk) == ("You said: And then?", dialog_of(alone.id).pk)
    paused = sent(messages, context_management={"edits": [{**edits["edits"][0], "pause_after_compaction": True}]})
    assert ([block.type for block in paused.content], paused.stop_reason) == (["compaction"], "compaction")
    with pytest.raises(anthropic.BadRequestError, match="compaction_nothing_to_summarize"):
        sent([{"role": "user", "content": "Hi"}], compaction={"type": "summarize"})
