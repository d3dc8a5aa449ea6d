"""OpenAI's Responses API, used statelessly: nothing is stored there, and reasoning travels with us, encrypted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.sse import ServerEvent
from dominds.llm.json_text import arguments_text, dumped
from dominds.llm.messages import Message, Request, Role, ToolCall, ToolSpec
from dominds.llm.providers.opaque_items import given_back, kept
from dominds.llm.providers.sdk_headers import openai_exchange
from dominds.llm.providers.wire import DONE, Complained, WireStream, json_of, offered_tools, text_in, with_own_ids
from dominds.llm.stream import Finished, StreamEvent, TextDelta, ToolCallDelta
from dominds.llm.usage import UsageReport, UsageUnavailable, usage_from

MODELS_WITHOUT_REASONING = ("gpt-3", "gpt-4", "chatgpt-4")  # they refuse to be asked for encrypted reasoning
# Placeholders among the stored reasoning items: where the answer's text and calls stood between them.
TEXT_PLACE = "text_place"
CALL_PLACE = "call_place"


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """A provider that speaks the Responses API at ``endpoint``. ``provider_id`` marks its reasoning items."""

    endpoint: Endpoint
    provider_id: str = "openai"
    supports_tool_choice: bool = True

    def stream(self, request: Request) -> WireStream:
        owner = f"{self.provider_id}/{request.model}"
        body = dumped(request_body(request, owner, supports_tool_choice=self.supports_tool_choice))
        exchange = openai_exchange(self.endpoint, "/responses", body, is_openai=True)
        reader = ResponsesReader(request, owner)
        return WireStream(exchange, reader, self.endpoint)


def request_body(request: Request, owner: str, *, supports_tool_choice: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": request.model,
        "input": [item for message in request.messages for item in _items(message, owner)],
        "stream": True,
        "store": False,
    }
    if not request.model.startswith(MODELS_WITHOUT_REASONING):
        body["include"] = ["reasoning.encrypted_content"]
    if request.instructions:
        body["instructions"] = request.instructions
    if request.conversation:
        body["prompt_cache_key"] = request.conversation
    if tools := offered_tools(request):
        body["tools"] = [_tool(tool) for tool in tools]
        if request.required_tool and supports_tool_choice:
            body["tool_choice"] = {"type": "function", "name": request.required_tool}
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = request.max_output_tokens
    return body


def _items(message: Message, owner: str) -> Iterator[dict[str, Any]]:
    match message.role:
        case Role.USER:
            yield {"role": "user", "content": message.text}
        case Role.TOOL:
            yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": message.text}
        case Role.ASSISTANT:
            yield from _assistant_items(message, owner)


def _assistant_items(message: Message, owner: str) -> Iterator[dict[str, Any]]:
    """Text and calls, with reasoning at its old place. Reasoning that nothing follows is left out: it is refused."""
    calls = {
        number: _call(call) for number, call in enumerate(message.tool_calls)
    }  # callers give calls ids of their own
    text = {"role": "assistant", "content": message.text} if message.text else None
    waiting: list[dict[str, Any]] = []
    for item in given_back(owner, message.provider_items):
        if item.get("type") == "reasoning":
            waiting.append(item)
            continue
        placed = text if item.get("type") == TEXT_PLACE else calls.pop(item.get("number", -1), None)
        if item.get("type") == TEXT_PLACE:
            text = None
        if placed is not None:
            yield from waiting
            yield placed
        waiting = []
    if text is not None:
        yield text
    yield from calls.values()


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = arguments_text(call.arguments)
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "strict": False,
    }


class ResponsesReader:
    """Folds events up to ``response.completed`` or ``response.incomplete``."""

    def __init__(self, request: Request, owner: str) -> None:
        self._messages = request.messages
        self._owner = owner
        self._items: list[dict[str, Any]] = []
        self._response: dict[str, Any] | None = None
        self._got_text = False
        self.is_done = False

    def read(self, event: ServerEvent) -> Iterable[StreamEvent]:
        if event.data.strip() == DONE:
            return ()
        found = json_of(event)
        match found.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                self._got_text = True
                return (TextDelta(text_in(found["delta"])),)
            case "response.function_call_arguments.delta":
                return (ToolCallDelta(text_in(found["delta"])),)
            case "response.output_item.done":
                self._items.append(found["item"])
            case "response.completed" | "response.incomplete":
                return self._end(found["response"])
            case "response.failed" | "error":
                raise Complained(found)
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
            finish_reason=_finish_reason(self._response, has_calls=bool(calls)),
            provider_items=kept(self._owner, _places(self._items)),
        )


def _text_of(item: dict[str, Any]) -> str:
    if item.get("type") != "message":
        return ""
    return "".join(part.get("text") or part.get("refusal") or "" for part in item.get("content") or ())


def _finish_reason(response: dict[str, Any], *, has_calls: bool) -> str:
    if response.get("status") == "incomplete":
        reason = str((response.get("incomplete_details") or {}).get("reason") or "incomplete")
        return "length" if reason == "max_output_tokens" else reason
    return "tool_calls" if has_calls else "stop"


def _places(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Reasoning items whole, and where text and calls stood among them; nothing when there was no reasoning."""
    if not any(item.get("type") == "reasoning" for item in items):
        return []
    numbers = count()
    places: list[dict[str, Any]] = []
    for item in items:
        match item.get("type"):
            case "reasoning":
                places.append({key: value for key, value in item.items() if key != "status"})
            case "message":
                places.append({"type": TEXT_PLACE})
            case "function_call":
                places.append({"type": CALL_PLACE, "number": next(numbers)})
    return places


def usage_of(reported: Any) -> UsageReport:
    """``input_tokens`` includes cached tokens here."""
    if not isinstance(reported, dict):
        return UsageUnavailable()
    return usage_from(reported.get("input_tokens"), reported.get("output_tokens"), reported.get("total_tokens"))
