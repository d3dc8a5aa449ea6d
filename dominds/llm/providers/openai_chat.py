"""OpenAI's chat completions, the wire format that most servers speak."""

from dataclasses import dataclass
from typing import Any

import orjson

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.headers import openai_exchange
from dominds.llm.json_text import dump
from dominds.llm.messages import ANY_TOOL, NO_TOOL, Request, ToolSpec
from dominds.llm.models.model import Forcing, ModelInfo, ProviderKind
from dominds.llm.models.params import in_body, turn_thinking_off
from dominds.llm.providers.chat_history import messages_json
from dominds.llm.providers.chat_reader import ChatReader
from dominds.llm.providers.echoes import Owner
from dominds.llm.providers.listed_window import listed_window
from dominds.llm.providers.outgoing import fit, form_of
from dominds.llm.providers.parts import ends_with_files, refuse_unseen
from dominds.llm.providers.wire import WireStream


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """A provider that speaks chat completions at ``endpoint``."""

    endpoint: Endpoint
    model: ModelInfo

    def stream(self, request: Request) -> WireStream:
        refuse_unseen(request, self.model)
        owner = Owner.of(self.model.provider_id, request.model, self.endpoint.key, request.epoch)
        body = request_body(request, owner, self.model)
        exchange = openai_exchange(self.endpoint, "/chat/completions", body, has_files=ends_with_files(request))
        return WireStream(exchange, ChatReader(request, owner, self.model.echo), self.endpoint)


def connect(model: ModelInfo, key: str) -> OpenAIChat:
    return OpenAIChat(Endpoint(model.base_url, key), model)


OPENAI_COMPATIBLE = ProviderKind(
    "openai-compatible",
    connect,
    label="OpenAI-compatible (chat completions)",
    takes_several_system=True,
    embeds=True,
    modalities=("text", "image"),
    loaded_window=listed_window,
)


def request_body(request: Request, owner: Owner, model: ModelInfo) -> bytes:
    request = fit(request, form_of(model))
    messages = messages_json(request, owner, model)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": orjson.Fragment(b"[%b]" % b",".join(filter(None, (_system(request.instructions), messages)))),
        "stream": True,
        "stream_options": {"include_usage": True},
        **in_body(model.model_params),
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.force == NO_TOOL:
            body["tool_choice"] = "none"
        elif request.force and model.forcing is not Forcing.NONE:
            body["tool_choice"] = _choice(request.force, request.tools, model.forcing)
            turn_thinking_off(body, model.thinking_off)
    if request.max_output_tokens is not None:
        body[model.max_tokens_field] = request.max_output_tokens
    return dump(body)


def _choice(name: str, tools: tuple[ToolSpec, ...], forcing: Forcing) -> Any:
    """Return ``tool_choice``. If only one tool is offered, "required" forces it: fewer servers know the object form."""
    if name == ANY_TOOL or len(tools) == 1 or forcing is Forcing.REQUIRED:
        return "required"
    return {"type": "function", "function": {"name": name}}


def _system(instructions: str) -> bytes:
    return dump({"role": "system", "content": instructions}) if instructions else b""


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    if tool.strict:
        function["strict"] = True
    return {"type": "function", "function": function}
