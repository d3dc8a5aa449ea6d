"""OpenAI's Responses API, used without state: the provider stores nothing, and we send encrypted reasoning back."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.headers import openai_exchange
from dominds.llm.json_text import arguments_text, dump
from dominds.llm.messages import ANY_TOOL, NO_TOOL, ImagePart, Message, Part, Request, Role, ToolCall, ToolSpec
from dominds.llm.models.dialects import RESPONSES
from dominds.llm.models.model import MODALITIES, Forcing, Form, ImageBounds, ModelInfo, PartSizes, ProviderKind
from dominds.llm.models.params import in_body
from dominds.llm.providers.echoes import Opaque, Owner, replay
from dominds.llm.providers.listed_window import listed_window
from dominds.llm.providers.outgoing import fit, form_of
from dominds.llm.providers.parts import data_url, ends_with_files, in_order, refuse_unseen
from dominds.llm.providers.responses_reader import ResponsesReader
from dominds.llm.providers.wire import WireStream

MODELS_WITHOUT_REASONING = ("gpt-3", "gpt-4", "chatgpt-4")  # they refuse requests for encrypted reasoning
OPENAI_HOST = "api.openai.com"
LEAST_OUTPUT_TOKENS = 16  # OpenAI refuses less


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """A provider that speaks the Responses API at ``endpoint``."""

    endpoint: Endpoint
    model: ModelInfo

    def stream(self, request: Request) -> WireStream:
        refuse_unseen(request, self.model)
        owner = Owner.of(self.model.provider_id, request.model, self.endpoint.key, request.epoch)
        body = dump(request_body(request, owner, self.model))
        exchange = openai_exchange(
            self.endpoint, "/responses", body, is_openai=True, has_files=ends_with_files(request)
        )
        # OpenAI's own models never write thinking into the answer's text.
        is_thinking = urlsplit(self.endpoint.base_url).hostname != OPENAI_HOST
        return WireStream(exchange, ResponsesReader(request, owner, is_thinking=is_thinking), self.endpoint)


def connect(model: ModelInfo, key: str) -> OpenAIResponses:
    return OpenAIResponses(Endpoint(model.base_url, key), model)


OPENAI = ProviderKind(
    "openai",
    connect,
    label="OpenAI (Responses)",
    takes_several_system=True,
    embeds=True,
    forcing=Forcing.ALLOWED,
    max_tokens_field="max_output_tokens",
    params=RESPONSES,
    form=Form(most_tools=128),
    modalities=MODALITIES,
    part_sizes=PartSizes(patch=32, most_patches=2500, page=3000),
    # From developers.openai.com, "Images and vision". OpenAI also takes 50 MB of images, which is more than a worker
    # should hold unless the operator says so.
    image_bounds=ImageBounds(most=500),
    loaded_window=listed_window,
)


def request_body(request: Request, owner: Owner, model: ModelInfo) -> dict[str, Any]:
    request = fit(request, form_of(model))
    body: dict[str, Any] = {
        "model": request.model,
        "input": [item for message in request.messages for item in _items(message, owner)],
        "stream": True,
        "store": False,
        **in_body(model.model_params),
    }
    included = [] if request.model.startswith(MODELS_WITHOUT_REASONING) else ["reasoning.encrypted_content"]
    included += ["message.output_text.logprobs"] if body.pop("logprobs", False) else []
    if included:
        body["include"] = included
    if request.instructions:
        body["instructions"] = request.instructions
    if request.conversation:
        body["prompt_cache_key"] = request.conversation
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.force == NO_TOOL:
            body["tool_choice"] = "none"
        elif request.force and model.forcing is not Forcing.NONE:
            body["tool_choice"] = _choice(request.force, model.forcing)
            body.update(model.thinking_off)
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = max(LEAST_OUTPUT_TOKENS, request.max_output_tokens)
    return body


def _choice(name: str, forcing: Forcing) -> Any:
    if name == ANY_TOOL:
        return "required"
    named = {"type": "function", "name": name}
    match forcing:
        case Forcing.ALLOWED:
            return {"type": "allowed_tools", "mode": "required", "tools": [named]}
        case Forcing.REQUIRED:
            return "required"
        case _:
            return named


def _items(message: Message, owner: Owner) -> Iterator[dict[str, Any]]:
    match message.role:
        case Role.SYSTEM:
            yield {"role": "developer", "content": message.text}
        case Role.USER:
            yield {"role": "user", "content": _content(message) if message.parts else message.text}
        case Role.TOOL:
            yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": message.text}
        case Role.ASSISTANT:
            yield from _answer(message, owner)


def _content(message: Message) -> list[dict[str, Any]]:
    return [*map(_part, in_order(message))]


def _part(given: str | Part) -> dict[str, Any]:
    if isinstance(given, str):
        return {"type": "input_text", "text": given}
    if isinstance(given, ImagePart):
        detail = {"detail": given.detail} if given.detail else {}
        return {"type": "input_image", "image_url": data_url(given), **detail}
    return {"type": "input_file", "filename": given.name, "file_data": data_url(given)}


def _answer(message: Message, owner: Owner) -> Iterator[dict[str, Any]]:
    """Write text and calls, with reasoning in its old place. Reasoning at the end is dropped, since it is refused."""
    waiting: list[dict[str, Any]] = []
    for piece in replay(owner, message):
        match piece:
            case Opaque(item):
                waiting.append(item)
            case ToolCall():
                yield from (*waiting, _call(piece))
                waiting = []
            case text:
                yield from (*waiting, {"role": "assistant", "content": text})
                waiting = []


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = arguments_text(call.arguments)
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "strict": tool.strict,
    }
