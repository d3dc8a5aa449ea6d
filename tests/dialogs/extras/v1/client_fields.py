"""Every field that the official clients can send is honoured, refused by its name, or known to change nothing here.
What a new version of theirs adds is in none of these lists, and fails here first."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import anthropic.types as messages_types
import pytest
from anthropic.types.message_create_params import MessageCreateParamsBase
from openai.types import chat, responses
from openai.types.chat.chat_completion_content_part_image_param import ImageURL
from openai.types.chat.chat_completion_content_part_param import File, FileFile
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from openai.types.responses.response_input_item_param import AdditionalTools, FunctionCallOutput, Message
from openai.types.shared_params import FunctionDefinition, Reasoning

from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.messages.request import chat_request_of
from dialogs.extras.v1.parsing import ChatRequest, chat_request
from dialogs.extras.v1.responses.request import read
from dialogs.extras.v1.wire import Sent
from dialogs.models import ApiKey
from tests.pixels import coded, picture

API = Path(__file__).parents[4] / "docs" / "api.md"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
IMAGE = f"data:image/png;base64,{coded(picture())}"
TEXT = "data:text/plain;base64,SGVsbG8="
CALL = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
HI = {"role": "user", "content": "Hi"}
BREAKS = {"prompt_cache_breakpoint": {"type": "explicit"}}
CACHED = {"cache_control": {"type": "ephemeral"}}


def of_response(body: dict[str, Any]) -> ChatRequest:
    return read(Sent(body, "", "", cast(ApiKey, None))).request


@dataclass(frozen=True)
class Kind:
    """``always_given`` is the least of its objects, and ``body`` a request that holds one. The other fields have values
    that ask for something. ``where`` is how an error's ``param`` begins."""

    type: Any
    body: Callable[[dict[str, Any]], dict[str, Any]]
    always_given: Mapping[str, Any]
    honoured: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, Any] = field(default_factory=dict)
    harmless: Mapping[str, Any] = field(default_factory=dict)
    reader: Callable[[dict[str, Any]], ChatRequest] = chat_request

    def read(self, **more: Any) -> ChatRequest:
        return self.reader(self.body({**self.always_given, **more}))


def of_chat(message: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "messages": [message, HI]}


def of_chat_tool(function: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "messages": [HI], "tools": [{"type": "function", "function": function}]}


def of_chat_part(part: dict[str, Any]) -> dict[str, Any]:
    return of_chat({"role": "user", "content": [part]})


def of_item(item: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "input": [item, HI]}


def of_input(part: dict[str, Any]) -> dict[str, Any]:
    return of_item({"role": "user", "content": [part]})


def of_block(block: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "max_tokens": 9, "messages": [{"role": "user", "content": [block]}]}


def of_used(block: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "max_tokens": 9, "messages": [HI, {"role": "assistant", "content": [block]}, HI]}


def chat_message_kinds() -> Iterator[Kind]:
    yield Kind(
        CompletionCreateParamsBase,
        lambda fields: fields,
        {"model": "a", "messages": [HI]},
        honoured={
            "frequency_penalty": 0.5,
            "logit_bias": {"5": 1},
            "max_completion_tokens": 5,
            "max_tokens": 5,
            "metadata": {"a": "b"},
            "parallel_tool_calls": False,
            "presence_penalty": 0.5,
            "reasoning_effort": "low",
            "response_format": {"type": "json_object"},
            "safety_identifier": "ada",
            "seed": 1,
            "service_tier": "flex",
            "stop": "x",
            "store": False,
            "stream_options": {"include_usage": True},
            "temperature": 0.5,
            "tools": [{"type": "function", "function": {"name": "weather"}}],
            "top_p": 0.5,
            "user": "ada",
            "verbosity": "low",
        },
        refused={
            "audio": {"voice": "alloy", "format": "wav"},
            "function_call": "auto",
            "functions": [{"name": "a"}],
            "logprobs": True,
            "modalities": ["text", "audio"],
            "moderation": {"model": "a"},
            "n": 2,
            "prediction": {"type": "content", "content": "a"},
            "tool_choice": "required",
            "top_logprobs": 2,
            "web_search_options": {},
        },
        harmless={
            "prompt_cache_key": "a",
            "prompt_cache_options": {"mode": "explicit"},
            "prompt_cache_retention": "24h",
        },
    )
    for kind, role in (
        (chat.ChatCompletionUserMessageParam, "user"),
        (chat.ChatCompletionSystemMessageParam, "system"),
        (chat.ChatCompletionDeveloperMessageParam, "developer"),
    ):
        yield Kind(kind, of_chat, {"role": role, "content": "Hello"}, {"name": "Ada"})
    yield Kind(
        chat.ChatCompletionAssistantMessageParam,
        of_chat,
        {"role": "assistant"},
        {"content": "Hello", "refusal": "No.", "tool_calls": [CALL]},
        {"audio": {"id": "a"}, "function_call": {"name": "a", "arguments": "{}"}},
        {"name": "helper"},
    )
    result = {"role": "tool", "tool_call_id": "a"}
    yield Kind(chat.ChatCompletionToolMessageParam, of_chat, result, {"content": "12 degrees"})


def chat_part_kinds() -> Iterator[Kind]:
    text = {"type": "text", "text": "Hello"}
    yield Kind(chat.ChatCompletionContentPartTextParam, of_chat_part, text, harmless=BREAKS)
    image = {"type": "image_url", "image_url": {"url": IMAGE}}
    yield Kind(chat.ChatCompletionContentPartImageParam, of_chat_part, image, harmless=BREAKS)
    yield Kind(
        ImageURL, lambda url: of_chat_part({"type": "image_url", "image_url": url}), {"url": IMAGE}, {"detail": "low"}
    )
    file = {"type": "file", "file": {"file_data": TEXT}}
    yield Kind(File, of_chat_part, file, harmless=BREAKS)
    yield Kind(
        FileFile,
        lambda file: of_chat_part({"type": "file", "file": file}),
        {"file_data": TEXT},
        {"filename": "a.txt"},
        harmless={"file_id": "a"},  # beside the file itself
    )
    yield Kind(
        FunctionDefinition,
        of_chat_tool,
        {"name": "weather"},
        {"description": "Tells it.", "parameters": SCHEMA, "strict": True},
    )
    yield Kind(
        chat.ChatCompletionFunctionToolParam,
        lambda tool: {"model": "a", "messages": [HI], "tools": [tool]},
        {"type": "function", "function": {"name": "weather"}},
    )


def response_kinds() -> Iterator[Kind]:
    yield Kind(
        ResponseCreateParamsBase,
        lambda fields: fields,
        {"model": "a", "input": "Hi"},
        honoured={
            "instructions": "Be brief.",
            "max_output_tokens": 5,
            "metadata": {"a": "b"},
            "parallel_tool_calls": False,
            "reasoning": {"effort": "low"},
            "safety_identifier": "ada",
            "service_tier": "flex",
            "store": False,
            "temperature": 0.5,
            "text": {"verbosity": "low"},
            "tools": [{"type": "function", "name": "weather"}],
            "top_p": 0.5,
            "user": "ada",
        },
        refused={
            "access_programs": ["a"],
            "background": True,
            "background_options": {"a": 1},
            "conversation": "c",
            "max_tool_calls": 3,
            "moderation": {"model": "a"},
            "prompt": {"id": "p"},
            "image": {"a": 1},
            "include": ["message.output_text.logprobs"],
            "tool_choice": "required",
            "top_logprobs": 2,
        },
        harmless={
            "context_management": [{"type": "compaction"}],
            "previous_response_id": None,
            "prompt_cache_key": "a",
            "prompt_cache_options": {"mode": "explicit"},
            "prompt_cache_retention": "24h",
            "stream_options": {"include_obfuscation": False},
            "truncation": "auto",
        },
    )
    yield Kind(
        Reasoning,
        lambda reasoning: {"model": "a", "input": "Hi", "reasoning": reasoning},
        {},
        {"effort": "low", "summary": "auto", "generate_summary": "auto"},
        {"mode": "pro"},
        {"context": "all_turns"},
    )
    yield Kind(
        responses.ResponseTextConfigParam,
        lambda text: {"model": "a", "input": "Hi", "text": text},
        {},
        {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}, "verbosity": "low"},
    )


def response_item_kinds() -> Iterator[Kind]:
    message = {"type": "message", "role": "assistant", "content": "Hello"}
    marks = {"phase": "commentary", "status": "completed", "id": "m"}
    for kind in (responses.EasyInputMessageParam, Message, responses.ResponseOutputMessageParam):
        has = {name: value for name, value in marks.items() if name in kind.__annotations__}
        yield Kind(kind, of_item, message, harmless=has)
    called = {"call_id": "a", "name": "weather", "id": "i"}
    meant = {"async": True, "caller": {"type": "program", "caller_id": "p"}}
    yield Kind(
        responses.ResponseFunctionToolCallParam,
        of_item,
        {"type": "function_call", "arguments": "{}", **called},
        {"namespace": "files"},
        meant,
        {"status": "completed"},
    )
    yield Kind(
        responses.ResponseCustomToolCallParam,
        of_item,
        {"type": "custom_tool_call", "input": "a", **called},
        {"namespace": "files"},
        meant,
    )
    output = {"call_id": "a", "output": "12 degrees"}
    beside = {"caller": {"type": "direct"}, "id": "i", "name": "weather", "namespace": "files", "status": "completed"}
    yield Kind(FunctionCallOutput, of_item, {"type": "function_call_output", **output}, harmless=beside)
    custom = {name: beside[name] for name in ("caller", "id")}
    yield Kind(
        responses.ResponseCustomToolCallOutputParam,
        of_item,
        {"type": "custom_tool_call_output", **output},
        harmless=custom,
    )
    tools = {"type": "additional_tools", "tools": [{"type": "function", "name": "weather"}]}
    yield Kind(AdditionalTools, of_item, tools, harmless={"id": "i", "role": "developer"})


def response_part_kinds() -> Iterator[Kind]:
    text = {"type": "input_text", "text": "Hello"}
    yield Kind(responses.ResponseInputTextParam, of_input, text, harmless=BREAKS)
    yield Kind(
        responses.ResponseInputImageParam,
        of_input,
        {"type": "input_image", "image_url": IMAGE},
        {"detail": "low"},
        harmless={"file_id": "a", **BREAKS},
    )
    yield Kind(
        responses.ResponseInputFileParam,
        of_input,
        {"type": "input_file", "file_data": TEXT},
        {"filename": "a.txt"},
        {"detail": "high"},
        {"file_id": "a", "file_url": "https://example.org/a", **BREAKS},
    )
    yield Kind(
        responses.ResponseOutputTextParam,
        lambda part: of_item({"role": "assistant", "content": [part]}),
        {"type": "output_text", "text": "Hello"},
        harmless={"annotations": [{"type": "url_citation"}], "logprobs": [{"token": "a"}]},
    )
    offered = {"allowed_callers": ["programmatic"], "async": True}
    for kind, name, more in (
        (responses.FunctionToolParam, "function", {"parameters": SCHEMA, "strict": True}),
        (responses.CustomToolParam, "custom", {"format": {"type": "grammar", "syntax": "lark", "definition": "s: x"}}),
    ):
        yield Kind(
            kind,
            lambda tool: {"model": "a", "input": "Hi", "tools": [tool]},
            {"type": name, "name": "weather"},
            {"description": "Tells it.", **more},
            offered,
            {"defer_loading": True} | ({"output_schema": SCHEMA} if name == "function" else {}),
        )


def message_kinds() -> Iterator[Kind]:
    yield Kind(
        MessageCreateParamsBase,
        lambda fields: fields,
        {"model": "a", "messages": [HI]},
        honoured={
            "max_tokens": 5,
            "metadata": {"user_id": "ada"},
            "output_config": {"effort": "low"},
            "stop_sequences": ["x"],
            "system": "Be brief.",
            "thinking": {"type": "adaptive"},
            "tools": [{"name": "weather", "input_schema": SCHEMA}],
        },
        refused={"container": "c", "tool_choice": {"type": "any"}},
        harmless={
            **CACHED,
            "diagnostics": {},
            "inference_geo": "eu",
            "service_tier": "auto",
            "speed": "fast",
            "user_profile_id": "u",
            "workspace_id": "w",
        },
    )
    yield Kind(
        messages_types.ThinkingConfigEnabledParam,
        lambda thinking: {"model": "a", "max_tokens": 9, "messages": [HI], "thinking": thinking},
        {"type": "enabled"},
        {"display": "omitted"},
        harmless={"budget_tokens": 2_000},
    )


def message_block_kinds() -> Iterator[Kind]:
    text = {"type": "text", "text": "Hello"}
    yield Kind(messages_types.TextBlockParam, of_block, text, harmless={**CACHED, "citations": []})
    png = {"type": "base64", "media_type": "image/png", "data": coded(picture())}
    yield Kind(
        messages_types.ImageBlockParam,
        of_block,
        {"type": "image", "source": png},
        refused={"transformations": {"oversized_image": "error"}},
        harmless=CACHED,
    )
    yield Kind(
        messages_types.DocumentBlockParam,
        of_block,
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Hello"}},
        {"title": "Letter"},
        {"citations": {"enabled": True}, "context": "A letter."},
        CACHED,
    )
    yield Kind(
        messages_types.ToolUseBlockParam,
        of_used,
        {"type": "tool_use", "id": "a", "name": "weather"},
        {"input": {"city": "Rome"}},
        {"caller": {"type": "code_execution_20260120", "tool_id": "t"}},
        {**CACHED, "toolset_name": "t"},
    )
    yield Kind(
        messages_types.ToolResultBlockParam,
        of_block,
        {"type": "tool_result", "tool_use_id": "a"},
        {"content": "12 degrees", "is_error": True},
        harmless={**CACHED, "toolset_name": "t"},
    )
    yield Kind(
        messages_types.ToolParam,
        lambda tool: {"model": "a", "max_tokens": 9, "messages": [HI], "tools": [tool]},
        {"name": "weather", "input_schema": SCHEMA},
        {
            "defer_loading": True,
            "description": "Tells it.",
            "input_examples": [{"city": "Rome"}],
            "strict": True,
        },
        {"allowed_callers": ["code_execution_20260120"], "type": "bash_20250124"},
        {**CACHED, "eager_input_streaming": True},
    )


PROTOCOLS = (
    (chat_request, (*chat_message_kinds(), *chat_part_kinds())),
    (of_response, (*response_kinds(), *response_item_kinds(), *response_part_kinds())),
    (chat_request_of, (*message_kinds(), *message_block_kinds())),
)
KINDS = {kind.type.__name__: replace(kind, reader=reader) for reader, kinds in PROTOCOLS for kind in kinds}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_field_is_honoured_refused_or_harmless(kind: Kind) -> None:
    judged = {*kind.always_given, *kind.honoured, *kind.refused, *kind.harmless}
    assert set(kind.type.__annotations__) <= judged, "fields that nobody judged"
    plain = kind.read()
    assert {name for name, value in kind.honoured.items() if kind.read(**{name: value}) == plain} == set()
    assert {name for name, value in kind.harmless.items() if kind.read(**{name: value}) != plain} == set()
    for name, value in kind.refused.items():
        with pytest.raises(ApiError) as refused:
            kind.read(**{name: value})
        assert refused.value.status == 400
        assert name in f"{refused.value.param} {refused.value.message}"


def test_what_is_passed_over_is_documented() -> None:
    message = API.read_text()
    fields = {name for kind in KINDS.values() for name in kind.harmless}
    assert {name for name in fields if f"`{name}`" not in message} == set()
