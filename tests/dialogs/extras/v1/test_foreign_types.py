"""Requests with a value of another type in any place: refused by name or understood, never a fault of ours."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from typing import Any, cast
from uuid import UUID

import pytest

from dialogs.errors import Refusal
from dialogs.extras.v1 import chat, conversations
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.gemini.request import read as read_content
from dialogs.extras.v1.history import Call
from dialogs.extras.v1.messages.counting import est_tokens
from dialogs.extras.v1.messages.request import read as read_message
from dialogs.extras.v1.options import check_model_honours
from dialogs.extras.v1.pieces import Ended, Reasoning, Text
from dialogs.extras.v1.responses.request import read as read_response
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.wire import Reading, Sent
from dialogs.models import ApiKey
from dominds.llm.catalog.catalog import load_catalog
from dominds.llm.json_text import dump
from dominds.llm.models.model import ModelInfo
from dominds.llm.models.params import in_body, tune
from tests.pixels import coded, picture

Path = tuple[str | int, ...]
IMAGE = f"data:image/png;base64,{coded(picture())}"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
BODIES: dict[str, dict[str, Any]] = {
    "chat": {
        "model": "a",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}], "name": "site"},
            {
                "role": "user",
                "name": "Ada",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}},
                    {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,SGVsbG8="}},
                ],
            },
            {
                "role": "assistant",
                "content": "I look.",
                "refusal": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "dark"}]},
            {"role": "user", "content": "Go on."},
        ],
        "tools": [
            {"type": "function", "function": {"name": "look", "description": "", "parameters": SCHEMA, "strict": False}}
        ],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "stream": True,
        "stream_options": {"include_usage": True},
        "metadata": {"of": "mine", "notices": "off"},
        "user": "ada",
        "safety_identifier": "ada",
        "store": False,
        "temperature": 0.5,
        "top_p": 0.5,
        "seed": 1,
        "stop": ["x"],
        "max_tokens": 99,
        "logit_bias": {"5": 1},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}},
        "reasoning_effort": "low",
        "verbosity": "low",
        "parallel_tool_calls": True,
        "n": 1,
        "logprobs": False,
        "modalities": ["text"],
        "include_reasoning": True,
    },
    "responses": {
        "model": "a",
        "input": [
            {"role": "developer", "content": "Be brief."},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look."},
                    {"type": "input_image", "image_url": IMAGE, "detail": "low"},
                    {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,SGVsbG8="},
                ],
            },
            {"type": "reasoning", "id": "r", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c", "name": "look", "namespace": "eyes", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "d", "name": "patch", "input": "***"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "dark"}]},
            {"type": "custom_tool_call_output", "call_id": "d", "output": "done"},
            {"type": "additional_tools", "tools": [{"type": "function", "name": "listen", "parameters": SCHEMA}]},
            {"role": "user", "content": "Go on."},
        ],
        "instructions": "Be kind.",
        "tools": [
            {"type": "function", "name": "look", "description": "", "parameters": SCHEMA, "strict": False},
            {"type": "custom", "name": "patch", "description": "p", "format": {"type": "grammar", "definition": "x"}},
            {"type": "namespace", "name": "eyes", "tools": [{"type": "function", "name": "see", "parameters": SCHEMA}]},
            {"type": "web_search"},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]},
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}},
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 99,
        "service_tier": "auto",
        "metadata": {"of": "mine"},
        "store": False,
        "stream": True,
        "temperature": 0.5,
        "parallel_tool_calls": True,
        "user": "ada",
        "truncation": "auto",
        "previous_response_id": None,
    },
    "messages": {
        "model": "a",
        "max_tokens": 99,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": IMAGE.partition(",")[2]},
                    },
                    {"type": "document", "title": "t", "source": {"type": "text", "data": "d"}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "c", "name": "look", "input": {"city": "Rome"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c",
                        "is_error": True,
                        "content": [{"type": "text", "text": "dark"}, {"type": "tool_reference", "tool_name": "look"}],
                    },
                    {"type": "text", "text": "<system-reminder>Hurry.</system-reminder>"},
                ],
            },
            {"role": "system", "content": "Now.", "clear_at": "next_user_message"},
            {"role": "user", "content": "Go on."},
        ],
        "tools": [
            {
                "name": "look",
                "description": "",
                "input_schema": SCHEMA,
                "strict": False,
                "defer_loading": False,
                "input_examples": [{"city": "Rome"}],
                "allowed_callers": ["direct"],
            }
        ],
        "tool_choice": {"type": "tool", "name": "look", "disable_parallel_tool_use": True},
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        "stop_sequences": ["x"],
        "metadata": {"user_id": "ada"},
        "stream": True,
        "temperature": 0.5,
        "top_k": 3,
    },
}
BODIES["gemini"] = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "Look."},
                {"inlineData": {"mimeType": "image/png", "data": IMAGE.partition(",")[2]}},
                {"inline_data": {"mime_type": "text/plain", "data": "SGVsbG8=", "displayName": "a.txt"}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "Hm.", "thought": True},
                {"text": "I look.", "thoughtSignature": "s"},
                {"functionCall": {"name": "look", "args": {"city": "Rome"}}},
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "dark"}}}]},
        {"role": "user", "parts": [{"text": "Go on."}]},
    ],
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": "look",
                    "description": "",
                    "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING", "maxLength": "9"}}},
                }
            ]
        }
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
    "generationConfig": {
        "temperature": 0.5,
        "topP": 0.5,
        "topK": 3,
        "maxOutputTokens": 99,
        "stopSequences": ["x"],
        "candidateCount": 1,
        "responseMimeType": "application/json",
        "responseSchema": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}},
        "thinkingConfig": {"includeThoughts": True, "thinkingBudget": -1, "thinkingLevel": "LOW"},
    },
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
}
READERS: dict[str, Callable[[Sent], Reading]] = {
    "gemini": lambda sent: read_content(sent, str(sent.body.pop("model", "a")), stream=True),
    "chat": chat.read,
    "responses": read_response,
    "messages": read_message,
}
FOREIGN: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**62, 1e308, "", "x", "\x00", [], {}),
    *([None], [[]], [{}], ["x"], [1], {"x": None}, {"type": None}, {"type": ["x"]}, {"role": []}, {"text": 1}),
)
EACH = 40  # the others differ little, and to store one takes a twentieth of a second; all of them pass
RUN = Run(UUID(int=1), "a", 1, 1, queued=False, after_event=0, after_generation=0)
ENDED = Ended("tool_calls", (Call("c", "look", "{}"),), None, {})


def paths_in(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in a body, the whole of it left out."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, held in items:
        yield from paths_in(held, (*path, name))


def put(body: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    changed = copy.copy(body)
    changed[path[0]] = put(body[path[0]], path[1:], value)
    return changed


def confused(protocol: str) -> Iterator[tuple[Path, Any, dict[str, Any]]]:
    body = BODIES[protocol]
    return ((path, value, put(body, path, value)) for path in paths_in(body) for value in FOREIGN)


def read(protocol: str, body: dict[str, Any]) -> Reading | None:
    """None where it is refused."""
    try:
        return READERS[protocol](Sent(body, "", "", cast(ApiKey, None)))
    except (ApiError, Refusal) as refusal:
        assert (refusal.status if isinstance(refusal, ApiError) else 400) in (400, 404, 413)
        return None


def is_honoured(model: ModelInfo, params: dict[str, Any]) -> bool:
    """Whether the model takes the parameters; then they can be sent."""
    try:
        check_model_honours(model, {}, params)
    except ApiError:
        return False
    return bool(dump(in_body(tune(model, {}, params).model_params)))


@pytest.mark.unit
@pytest.mark.parametrize("protocol", READERS)
def test_any_value_anywhere_is_read_or_refused(protocol: str) -> None:
    assert read(protocol, BODIES[protocol]), "the body itself is sound"
    models = {model.kind.name: model for model in load_catalog(FilePath("/nonexistent")).models.values()}.values()
    for path, value, body in confused(protocol):
        try:
            reading = read(protocol, body)
            if reading is None:
                continue
            writer = reading.writer(RUN)
            writer.begin()
            for piece in (Reasoning("Hm."), Text("It is dark."), ENDED):
                assert writer.piece(piece)
            assert writer.whole()
            if path[0] not in ("messages", "input", "contents", "tools", "system"):
                for model in models:
                    is_honoured(model, reading.request.params)
        except Exception as error:  # noqa: BLE001  which one it is does not matter
            pytest.fail(f"{protocol} {path} = {value!r}: {error!r}")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("protocol", READERS)
def test_all_that_is_read_can_be_stored(key: ApiKey, agent: str, protocol: str) -> None:
    seen: set[str] = set()
    for path, value, body in confused(protocol):
        reading = read(protocol, body | {"model": agent} if path != ("model",) else body)
        if reading is None or (form := repr(reading.request)) in seen:
            continue
        seen.add(form)
        if len(seen) % EACH:
            continue
        try:
            est_tokens(reading.request)
            conversations.begin(key, reading.request)
        except (ApiError, Refusal):
            continue
        except Exception as error:  # noqa: BLE001  which one it is does not matter
            pytest.fail(f"{protocol} {path} = {value!r}: {error!r}")
