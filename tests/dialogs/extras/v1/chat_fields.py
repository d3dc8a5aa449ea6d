"""Fields of the types with which OpenAI's client asks for chat completions."""

from collections.abc import Iterator
from typing import Any

from openai.types import chat
from openai.types.chat.chat_completion_content_part_image_param import ImageURL
from openai.types.chat.chat_completion_content_part_param import File, FileFile
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.shared_params import FunctionDefinition

from tests.dialogs.extras.v1.field_kinds import BREAKS, CALL, HI, IMAGE, SCHEMA, TEXT, Kind


def of_chat(message: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "messages": [message, HI]}


def of_chat_tool(function: dict[str, Any]) -> dict[str, Any]:
    return {"model": "a", "messages": [HI], "tools": [{"type": "function", "function": function}]}


def of_chat_part(part: dict[str, Any]) -> dict[str, Any]:
    return of_chat({"role": "user", "content": [part]})


def chat_message_kinds() -> Iterator[Kind]:
    yield Kind(
        CompletionCreateParamsBase,
        lambda fields: fields,
        {"model": "a", "messages": [HI]},
        honoured={
            "frequency_penalty": 0.5,
            "logit_bias": {"5": 1},
            "logprobs": True,
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
            "top_logprobs": 2,
            "top_p": 0.5,
            "user": "ada",
            "verbosity": "low",
        },
        refused={
            "audio": {"voice": "alloy", "format": "wav"},
            "function_call": "auto",
            "functions": [{"name": "a"}],
            "modalities": ["text", "audio"],
            "moderation": {"model": "a"},
            "n": 2,
            "prediction": {"type": "content", "content": "a"},
            "tool_choice": "required",
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
