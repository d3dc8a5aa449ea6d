"""Anthropic's Messages API, for Anthropic and for compatible servers."""

from dataclasses import dataclass
from typing import Any

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.headers import anthropic_exchange
from dominds.llm.json_text import dump
from dominds.llm.messages import ANY_TOOL, NO_TOOL, Request, ToolSpec
from dominds.llm.models.dialects import ANTHROPIC_MESSAGES, MESSAGES, ONE_CALL, SAMPLING
from dominds.llm.models.model import (
    MODALITIES,
    Echo,
    Forcing,
    Form,
    ImageBounds,
    ModelInfo,
    PartSizes,
    ProviderKind,
    Thinking,
)
from dominds.llm.models.params import in_body, turn_thinking_off
from dominds.llm.providers.anthropic_history import CACHE_HERE, THINKING, messages_of
from dominds.llm.providers.anthropic_reader import MessagesReader
from dominds.llm.providers.echoes import Owner
from dominds.llm.providers.listed_window import anthropic_window
from dominds.llm.providers.outgoing import fit, form_of
from dominds.llm.providers.parts import ends_with_files, refuse_unseen
from dominds.llm.providers.wire import WireStream

DEFAULT_MAX_TOKENS = 4096  # the API requires a number
LEAST_BUDGET_TOKENS = 1024  # a smaller budget of thinking is refused
# Asks the server to drop thinking whose conversation was changed. Otherwise it would refuse every later request.
DROP_STALE = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
DROP_STALE_BETA = "thinking-binding-controls-2026-08-01"


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """A provider that speaks the Messages API at ``endpoint``."""

    endpoint: Endpoint
    model: ModelInfo

    def stream(self, request: Request) -> WireStream:
        refuse_unseen(request, self.model)
        owner = Owner.of(self.model.provider_id, request.model, self.endpoint.key, request.epoch)
        body = dump(request_body(request, owner, self.model))
        is_anthropic = self.model.kind == ANTHROPIC
        betas = (DROP_STALE_BETA,) if _drops_stale(request, self.model) else ()
        exchange = anthropic_exchange(
            self.endpoint,
            "/v1/messages",
            body,
            is_anthropic=is_anthropic,
            betas=betas,
            has_files=ends_with_files(request),
        )
        return WireStream(exchange, MessagesReader(request, owner, needs_signature=is_anthropic), self.endpoint)


def connect(model: ModelInfo, key: str) -> AnthropicMessages:
    return AnthropicMessages(Endpoint(model.base_url, key), model)


ANTHROPIC = ProviderKind(
    "anthropic",
    connect,
    label="Anthropic (Messages)",
    echo=Echo.SENT,
    params=ANTHROPIC_MESSAGES,
    form=Form(plain_keys=True),
    takes_blank=False,
    modalities=MODALITIES,
    # The bound since Opus 4.7. Images of earlier models take a third of it at most.
    part_sizes=PartSizes(patch=28, most_patches=4784, page=3000),
    # From platform.claude.com, "Vision". Windows above 200,000 tokens allow 600 images. A request may have 32 MB, with
    # the images in base64.
    image_bounds=ImageBounds(most=100, most_bytes=20_000_000, large=2_000, most_with_large=20),
    loaded_window=anthropic_window,
)
ANTHROPIC_COMPATIBLE = ProviderKind(
    "anthropic-compatible",
    connect,
    echo=Echo.SENT,
    params=MESSAGES,
    form=Form(plain_keys=True),
    takes_blank=False,
    loaded_window=anthropic_window,
)


def request_body(request: Request, owner: Owner, model: ModelInfo) -> dict[str, Any]:
    request = fit(request, form_of(model))
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or model.output_length or DEFAULT_MAX_TOKENS,
        "messages": messages_of(request, owner, model.echo),
        "stream": True,
        **in_body(model.model_params),
    }
    if model.kind == ANTHROPIC:
        for name in SAMPLING:  # the API version that we name refuses them with any value
            body.pop(name, None)
    if request.instructions:
        body["system"] = [{"type": "text", "text": request.instructions, **CACHE_HERE}]
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.force == NO_TOOL:
            body["tool_choice"] = {"type": "none"}
        elif request.force and model.forcing is not Forcing.NONE:
            body["tool_choice"] = _choice(request.force, model.forcing)
            turn_thinking_off(body, model.thinking_off)
    if thinking := _thinking(request, model, body):
        body["thinking"] = thinking
    else:
        body.pop("thinking", None)
    if body.pop(ONE_CALL, False) and request.tools and request.force != NO_TOOL:
        body["tool_choice"] = {"type": "auto", **body.get("tool_choice", {}), ONE_CALL: True}
    return body


def _choice(name: str, forcing: Forcing) -> dict[str, Any]:
    return {"type": "any"} if name == ANY_TOOL or forcing is Forcing.REQUIRED else {"type": "tool", "name": name}


def _thinking(request: Request, model: ModelInfo, body: dict[str, Any]) -> dict[str, Any]:
    """Return the field ``thinking``: as stated, and with a request for visible text if the model thinks anyway.

    A budget is left out if a tool is forced, or if the answer that results belong to lacks its thinking, since the API
    refuses both. A budget leaves a quarter of the output to the answer.
    """
    stated: dict[str, Any] = dict(body.get("thinking") or {})
    if stated.get("type") == "enabled":
        room = body["max_tokens"] * 3 // 4
        is_forced = body.get("tool_choice") not in (None, {"type": "none"})
        if is_forced or room < LEAST_BUDGET_TOKENS or _lacks_thinking(body["messages"]):
            return {}
        stated["budget_tokens"] = min(stated.get("budget_tokens", room), room)
    if model.kind == ANTHROPIC and model.thinking in (Thinking.ALWAYS, Thinking.ON):
        stated = {"type": "adaptive", **stated}
    if stated.get("type") in ("adaptive", "between_tools"):
        stated = {"display": "summarized", **stated}
    if _drops_stale(request, model):
        stated = {**stated, **DROP_STALE}
    return stated


def _drops_stale(request: Request, model: ModelInfo) -> bool:
    return model.is_bound and request.epoch > 0 and model.kind == ANTHROPIC


def _lacks_thinking(messages: list[dict[str, Any]]) -> bool:
    """Check whether the answer before the newest tool results has no thinking."""
    if len(messages) < 2 or messages[-1]["content"][0]["type"] != "tool_result":
        return False
    return messages[-2]["content"][0]["type"] not in THINKING


def _tool(tool: ToolSpec) -> dict[str, Any]:
    fields = {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
    return {**fields, "strict": True} if tool.strict else fields
