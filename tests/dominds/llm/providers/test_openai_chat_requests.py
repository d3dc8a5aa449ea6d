"""Chat completions: what is sent, and how a tool is forced."""

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest

from dominds.llm.messages import NO_TOOL, FilePart, ImagePart, Message, Request, Role, ToolCall
from dominds.llm.models.model import ProviderKind
from dominds.llm.models.traits import traits_of, with_traits
from dominds.llm.provider import RequestRefused
from dominds.llm.providers.anthropic_messages import ANTHROPIC
from dominds.llm.providers.lmstudio import LMSTUDIO
from dominds.llm.providers.ollama import OLLAMA
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE, request_body
from dominds.llm.providers.openai_responses import OPENAI
from dominds.llm.providers.vllm import VLLM
from tests.dominds.llm.asking import ADD_REMINDER, CLEAR_MIND, HELLO, ask, info, owner
from tests.dominds.llm.model_server import ModelServer
from tests.dominds.llm.providers.chat_chunks import chat

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


@pytest.mark.parametrize("number", [2**64, 10**309])
def test_params_may_hold_numbers_of_any_size(number: int) -> None:
    """PostgreSQL gives 1e308 of a schema back as an integer of 309 digits, which orjson does not write."""
    params = {"response_format": {"type": "json_schema", "json_schema": {"schema": {"maximum": number}}}}
    model = info(OPENAI_COMPATIBLE, model_params=params)
    body = json.loads(request_body(TALK, owner(), model))
    assert body["response_format"] == params["response_format"]
    assert body["messages"][0] == {"role": "user", "content": "Do it"}
    assert with_traits(info(OPENAI_COMPATIBLE), traits_of(model)).model_params == params


NAMED = {"type": "function", "function": {"name": "clear_mind"}}


@pytest.mark.parametrize(
    ("kind", "fields", "choice"),
    [
        (OPENAI_COMPATIBLE, {}, NAMED),
        (OPENAI_COMPATIBLE, {"supports_tool_choice": False}, None),
        (OPENAI_COMPATIBLE, {"supports_tool_choice": True}, NAMED),
        (OPENAI_COMPATIBLE, {"forced_tool": "yes"}, NAMED),
        (OPENAI_COMPATIBLE, {"forced_tool": "required"}, "required"),
        (OPENAI_COMPATIBLE, {"forced_tool": "no"}, None),
        (OPENAI_COMPATIBLE, {"forced_tool": "no", "supports_tool_choice": True}, NAMED),
        (OPENAI_COMPATIBLE, {"forced_tool": "yes", "supports_tool_choice": False}, None),
        (LMSTUDIO, {}, "required"),  # it refuses the object form
        (OLLAMA, {}, None),  # it does not read it
        (VLLM, {}, NAMED),
    ],
)
def test_a_forced_tool_leaves_the_list_whole(kind: ProviderKind, fields: dict[str, Any], choice: Any) -> None:
    body = orjson.loads(request_body(replace(TALK, force="clear_mind"), owner(), info(kind, **fields)))
    assert [tool["function"]["name"] for tool in body["tools"]] == ["clear_mind", "add_reminder"]
    assert body.get("tool_choice") == choice


@pytest.mark.parametrize("kind", [OPENAI_COMPATIBLE, OPENAI, ANTHROPIC])
def test_a_call_is_forbidden_where_it_could_not_be_forced(kind: ProviderKind) -> None:
    """Budgets of thinking stay, and so does the list of tools."""
    params = {"thinking": {"type": "enabled", "budget_tokens": 1_024}, "disable_parallel_tool_use": True}
    model = info(kind, forced_tool="no", model_params=params if kind is ANTHROPIC else {})
    request = replace(TALK, force=NO_TOOL, max_output_tokens=4_000)
    body = orjson.loads(model.kind.connect(model, "").stream(request).body)
    assert (body["tool_choice"], len(body["tools"])) == ({"type": "none"} if kind is ANTHROPIC else "none", 2)
    assert kind is not ANTHROPIC or body["thinking"]["type"] == "enabled"


def test_a_list_of_one_is_named_by_required() -> None:
    request = replace(TALK, tools=(CLEAR_MIND,), force="clear_mind")
    model = info(OPENAI_COMPATIBLE, supports_tool_choice=True)
    assert orjson.loads(request_body(request, owner(), model))["tool_choice"] == "required"


def test_a_model_that_cannot_think_when_forced_is_told_so() -> None:
    model = info(OPENAI_COMPATIBLE, forced_tool="thinking_off", thinking_off={"enable_thinking": False})
    assert "enable_thinking" not in orjson.loads(request_body(TALK, owner(), model))
    forced = orjson.loads(request_body(replace(TALK, force="clear_mind"), owner(), model))
    assert (forced["enable_thinking"], forced["tool_choice"]) == (False, NAMED)


def test_an_effort_goes_with_the_thinking() -> None:
    off = {"thinking": {"type": "disabled"}}
    params = {"reasoning_effort": "high", "output_config": {"effort": "high", "format": {"type": "text"}}}
    model = info(OPENAI_COMPATIBLE, forced_tool="thinking_off", thinking_off=off, model_params=params)
    assert orjson.loads(request_body(TALK, owner(), model)).items() >= params.items()
    forced = orjson.loads(request_body(replace(TALK, force="clear_mind"), owner(), model))
    assert "reasoning_effort" not in forced
    assert forced.items() >= {**off, "output_config": {"format": {"type": "text"}}}.items()


@pytest.mark.parametrize(("kind", "silence"), [(OPENAI_COMPATIBLE, None), (VLLM, "")])
def test_an_answer_without_text_is_no_null_for_templates(kind: ProviderKind, silence: str | None) -> None:
    history = (Message(Role.ASSISTANT, "", (ToolCall("a", "read", "{}"),)), Message(Role.TOOL, "x", tool_call_id="a"))
    body = orjson.loads(request_body(replace(TALK, messages=history), owner(), info(kind)))
    (answer,) = [message for message in body["messages"] if message["role"] == "assistant"]
    assert answer["content"] == silence


def test_params_and_the_models_output_field_are_sent() -> None:
    model = info(OPENAI_COMPATIBLE, max_tokens_field="max_completion_tokens", model_params={"reasoning_split": True})
    body = orjson.loads(request_body(TALK, owner(), model))
    assert (body["max_completion_tokens"], body["reasoning_split"]) == (50, True)
    assert "max_tokens" not in body


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
