"""OpenAI's Responses API, used statelessly: nothing is stored there, and reasoning travels with us, encrypted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dominds import budgets
from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.headers import openai_exchange
from dominds.llm.http.sse import ServerEvent
from dominds.llm.json_text import arguments_text, dumped
from dominds.llm.messages import ANY_TOOL, ImagePart, Message, Part, Request, Role, ToolCall, ToolSpec
from dominds.llm.models.dialects import RESPONSES
from dominds.llm.models.model import MODALITIES, Forcing, ImageBounds, ModelInfo, PartSizes, ProviderKind
from dominds.llm.models.params import in_body
from dominds.llm.providers.echoes import Called, Opaque, Owner, Piece, Spoken, kept, replayed
from dominds.llm.providers.parts import data_url, refuse_unseen
from dominds.llm.providers.wire import DONE, Complained, WireStream, finish_reason_of, json_of, text_in, with_own_ids
from dominds.llm.stream import Finished, FinishReason, ReasoningDelta, StreamEvent, TextDelta, ToolCallDelta
from dominds.llm.usage import Shares, UsageReport, UsageUnavailable, part, usage_from

MODELS_WITHOUT_REASONING = ("gpt-3", "gpt-4", "chatgpt-4")  # they refuse to be asked for encrypted reasoning
LEAST_OUTPUT_TOKENS = 16  # less is refused
INCOMPLETE = {"max_output_tokens": FinishReason.LENGTH, "content_filter": FinishReason.REFUSAL}


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """A provider that speaks the Responses API at ``endpoint``."""

    endpoint: Endpoint
    model: ModelInfo

    def stream(self, request: Request) -> WireStream:
        refuse_unseen(request, self.model)
        owner = Owner.of(self.model.provider_id, request.model, self.endpoint.key, request.epoch)
        body = dumped(request_body(request, owner, self.model))
        exchange = openai_exchange(self.endpoint, "/responses", body, is_openai=True)
        return WireStream(exchange, ResponsesReader(request, owner), self.endpoint)


def connected(model: ModelInfo, key: str) -> OpenAIResponses:
    return OpenAIResponses(Endpoint(model.base_url, key), model)


OPENAI = ProviderKind(
    "openai",
    connected,
    label="OpenAI (Responses)",
    can_force=True,
    takes_several_system=True,
    embeds=True,
    forcing=Forcing.ALLOWED,
    max_tokens_field="max_output_tokens",
    params=RESPONSES,
    modalities=MODALITIES,
    part_sizes=PartSizes(patch=32, most_patches=2500, page=3000),
    # developers.openai.com, "Images and vision"; it takes 50 MB of them,
    # more than a worker should hold unless it is told to
    image_bounds=ImageBounds(most=500),
)


def request_body(request: Request, owner: Owner, model: ModelInfo) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": request.model,
        "input": [item for message in request.messages for item in _items(message, owner)],
        "stream": True,
        "store": False,
        **in_body(model.model_params),
    }
    if not request.model.startswith(MODELS_WITHOUT_REASONING):
        body["include"] = ["reasoning.encrypted_content"]
    if request.instructions:
        body["instructions"] = request.instructions
    if request.conversation:
        body["prompt_cache_key"] = request.conversation
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.force and model.forcing is not Forcing.NONE:
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
    text = [{"type": "input_text", "text": message.text}] if message.text else []
    return [*text, *map(_part, message.parts)]


def _part(given: Part) -> dict[str, Any]:
    if isinstance(given, ImagePart):
        detail = {"detail": given.detail} if given.detail else {}
        return {"type": "input_image", "image_url": data_url(given), **detail}
    return {"type": "input_file", "filename": given.name, "file_data": data_url(given)}


def _answer(message: Message, owner: Owner) -> Iterator[dict[str, Any]]:
    """Text and calls, with reasoning at its old place. Reasoning that nothing follows is left out: it is refused."""
    waiting: list[dict[str, Any]] = []
    for piece in replayed(owner, message):
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


class ResponsesReader:
    """Folds events up to ``response.completed`` or ``response.incomplete``."""

    def __init__(self, request: Request, owner: Owner) -> None:
        self._messages = request.messages
        self._owner = owner
        self._items: list[dict[str, Any]] = []
        self._response: dict[str, Any] | None = None
        self._got_text = False
        self.is_done = False

    def read(self, event: ServerEvent) -> Iterable[StreamEvent]:
        if event.data.strip() == DONE:
            return ()
        result = json_of(event)
        match result.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                self._got_text = True
                return (TextDelta(text_in(result["delta"])),)
            case "response.function_call_arguments.delta":
                return (ToolCallDelta(text_in(result["delta"])),)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return (ReasoningDelta(text_in(result["delta"])),)
            case "response.reasoning_summary_part.added" if result.get("summary_index"):
                return (ReasoningDelta("\n\n"),)
            case "response.output_item.done":
                self._items.append(result["item"])
                budgets.CALLS.check(len(self._items) // 4)  # texts and thoughts stand between calls
            case "response.completed" | "response.incomplete":
                return self._end(result["response"])
            case "response.failed" | "error":
                raise Complained(result)
        return ()

    def close(self) -> Iterable[StreamEvent]:
        return ()

    def _end(self, response: dict[str, Any]) -> Iterable[StreamEvent]:
        self._response = response
        self._items = response.get("output") or self._items
        self.is_done = True
        text = "" if self._got_text else "".join(map(_text_of, self._items))
        return (TextDelta(text),) if text else ()

    def finished(self) -> Finished | None:
        if self._response is None:
            return None
        sources = [item for item in self._items if item.get("type") == "function_call"]
        calls = with_own_ids(
            (
                ToolCall(str(item.get("call_id") or ""), str(item["name"]), item.get("arguments") or "{}")
                for item in sources
            ),
            self._messages,
        )
        return Finished(
            usage=usage_of(self._response.get("usage")),
            tool_calls=calls,
            finish_reason=self._finish_reason(self._response, has_calls=bool(calls)),
            provider_items=kept(self._owner, _pieces(self._items)),
        )

    def _finish_reason(self, response: dict[str, Any], *, has_calls: bool) -> FinishReason:
        texts = [_text_of(item) for item in self._items]
        if response.get("status") == "incomplete":
            word = str((response.get("incomplete_details") or {}).get("reason") or "")
            return finish_reason_of(INCOMPLETE, word, has_answer=has_calls or self._got_text or any(texts))
        if has_calls:
            return FinishReason.TOOL_CALLS
        is_refusal = any(part.get("type") == "refusal" for item in self._items for part in item.get("content") or ())
        return FinishReason.REFUSAL if is_refusal else FinishReason.STOP


def _text_of(item: dict[str, Any]) -> str:
    if item.get("type") != "message":
        return ""
    return "".join(part.get("text") or part.get("refusal") or "" for part in item.get("content") or ())


def _pieces(items: list[dict[str, Any]]) -> Iterator[Piece]:
    """Reasoning items whole, and where text and calls stood among them."""
    for item in items:
        match item.get("type"):
            case "reasoning":
                yield Opaque({key: value for key, value in item.items() if key != "status"})
            case "message":
                yield Spoken(len(_text_of(item)))
            case "function_call":
                yield Called()


def usage_of(reported: Any) -> UsageReport:
    """``input_tokens`` includes cached tokens here, and ``output_tokens`` the reasoning."""
    if not isinstance(reported, dict):
        return UsageUnavailable()
    shares = Shares(
        cache_read=part(reported, "input_tokens_details", "cached_tokens"),
        cache_write=part(reported, "input_tokens_details", "cache_write_tokens"),
        reasoning=part(reported, "output_tokens_details", "reasoning_tokens"),
    )
    return usage_from(reported.get("input_tokens"), reported.get("output_tokens"), reported.get("total_tokens"), shares)
