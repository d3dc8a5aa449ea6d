"""Chat completions, as OpenAI once defined them and most servers speak them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.sse import ServerEvent
from dominds.llm.json_text import arguments_text, dumped
from dominds.llm.messages import Message, Request, Role, ToolCall, ToolSpec
from dominds.llm.providers.message_json import MessageJson
from dominds.llm.providers.sdk_headers import openai_exchange
from dominds.llm.providers.wire import DONE, WireStream, json_of, offered_tools, with_own_ids
from dominds.llm.stream import Finished, StreamEvent, TextDelta, ToolCallDelta
from dominds.llm.usage import UsageReport, UsageUnavailable, usage_from

FINISH_REASONS = {"function_call": "tool_calls", "eos": "stop", "max_tokens": "length"}


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """A provider that speaks chat completions at ``endpoint``."""

    endpoint: Endpoint
    supports_tool_choice: bool = False

    def stream(self, request: Request) -> WireStream:
        body = request_body(request, supports_tool_choice=self.supports_tool_choice)
        exchange = openai_exchange(self.endpoint, "/chat/completions", body)
        return WireStream(exchange, ChatReader(request), self.endpoint)


def request_body(request: Request, *, supports_tool_choice: bool) -> bytes:
    said = _SAID.json(request.conversation, request.messages)
    body: dict[str, Any] = {
        "model": request.model,
        "messages": orjson.Fragment(b"[%b]" % b",".join(filter(None, (_system(request.instructions), said)))),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if tools := offered_tools(request):
        body["tools"] = [_tool(tool) for tool in tools]
        if request.required_tool and supports_tool_choice:
            # Only one tool is offered, so "required" names it; servers that know the object form are fewer.
            body["tool_choice"] = "required"
    if request.max_output_tokens is not None:
        body["max_tokens"] = request.max_output_tokens
    return dumped(body)


def _system(instructions: str) -> bytes:
    return dumped({"role": "system", "content": instructions}) if instructions else b""


def _write(messages: Sequence[Message]) -> bytes:
    said = [  # a function call for each of a thousand plain messages would take longer than to write their JSON
        _tool_message(message)
        if message.tool_calls or message.role is Role.TOOL
        else {"role": message.role, "content": message.text}
        for message in messages
    ]
    return dumped(said)[1:-1]


_SAID = MessageJson(_write)


def _tool_message(message: Message) -> dict[str, Any]:
    """A result, or an answer with calls."""
    if message.role is Role.TOOL:
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
    calls = [_call(call) for call in message.tool_calls]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


def _call(call: ToolCall) -> dict[str, Any]:
    # Several servers parse the arguments of past calls and refuse the request when they are malformed.
    function = {"name": call.name, "arguments": arguments_text(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


@dataclass(slots=True)
class _CallUnderWay:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ChatReader:
    """Folds chunks. Reasoning text is not part of the answer and is left out."""

    def __init__(self, request: Request) -> None:
        self._messages = request.messages
        self._calls: list[_CallUnderWay] = []
        self._call_of_index: dict[int, _CallUnderWay] = {}
        self._finish_reason = ""
        self._usage: Any = None
        self.is_done = False

    def read(self, event: ServerEvent) -> Iterable[StreamEvent]:
        if event.data.strip() == DONE:
            self.is_done = True
            return ()
        chunk = json_of(event)
        if chunk.get("usage"):
            self._usage = chunk["usage"]
        choices = chunk.get("choices")
        return self._read_choice(choices[0]) if choices else ()

    def _read_choice(self, choice: dict[str, Any]) -> Iterable[StreamEvent]:
        if choice.get("usage"):  # Moonshot
            self._usage = choice["usage"]
        if choice.get("finish_reason"):
            self._finish_reason = str(choice["finish_reason"])
        delta = choice.get("delta") or {}
        events: list[StreamEvent] = []
        if isinstance(text := delta.get("content") or delta.get("refusal"), str) and text:
            events.append(TextDelta(text))
        for piece in delta.get("tool_calls") or ():
            if text := self._read_call(piece):
                events.append(ToolCallDelta(text))
        return events

    def _read_call(self, piece: dict[str, Any]) -> str:
        """Add a piece to its call and answer its characters."""
        function = piece.get("function") or {}
        name, arguments = function.get("name") or "", function.get("arguments") or ""
        if not isinstance(arguments, str):
            arguments = dumped(arguments).decode()
        call = self._call_of(piece.get("index"), piece.get("id") or "", name)
        call.id = call.id or str(piece.get("id") or "")
        is_named_now = bool(name) and not call.name
        call.name = call.name or str(name)
        call.arguments.append(arguments)
        return name + arguments if is_named_now else arguments

    def _call_of(self, index: Any, call_id: str, name: str) -> _CallUnderWay:
        """The call a piece belongs to. Some servers number all parallel calls 0 or not at all: a new id begins one."""
        place = index if isinstance(index, int) else 0
        call = self._call_of_index.get(place)
        begins_another = call is not None and bool(call_id and call.id and name) and call_id != call.id
        if call is None or begins_another:
            call = self._call_of_index[place] = _CallUnderWay()
            self._calls.append(call)
        return call

    def finished(self) -> Finished | None:
        if not self._finish_reason:
            return None
        calls = [ToolCall(call.id, call.name, "".join(call.arguments) or "{}") for call in self._calls]
        return Finished(
            usage=usage_of(self._usage),
            tool_calls=with_own_ids(calls, self._messages),
            finish_reason=FINISH_REASONS.get(self._finish_reason, self._finish_reason),
        )


def usage_of(reported: Any) -> UsageReport:
    """``prompt_tokens`` includes cached tokens here, so they are not added; more cached than sent cannot be true."""
    if reported is None:
        return UsageUnavailable()
    if not isinstance(reported, dict):
        return UsageUnavailable(f"usage is {reported!r}, not an object")
    prompt = reported.get("prompt_tokens")
    details = reported.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    if isinstance(cached, int) and isinstance(prompt, int) and cached > prompt:
        return UsageUnavailable(f"prompt tokens are {prompt}, fewer than the {cached} cached ones among them")
    return usage_from(prompt, reported.get("completion_tokens"), reported.get("total_tokens"))
