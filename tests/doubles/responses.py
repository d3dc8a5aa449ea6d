"""A strict double of OpenAI's Responses API."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from tests.doubles.brains import Brain, Call, Message, Prompt, Reply, arguments_text, cut, echo
from tests.doubles.counting import Unit
from tests.doubles.responses_rules import (
    FAMILIES,
    ITEM_RULES,
    LOGPROBS,
    SEALER,
    SHAPE,
    SIZE,
    Family,
    ResponsesRequest,
    kind_of,
    parts_of,
)
from tests.doubles.rules import Refusal, RequestRefused, check
from tests.doubles.serving import Answer, Double, Exchange, UsageMode
from tests.doubles.streams import BreaksOff, named, pieces, probable

CACHED_FROM, CACHED_STEP = 1_024, 128  # tokens


class ResponsesDouble(Double):
    """``overflow`` says how too long an input is refused: as an event in a stream of status 200, or by the status."""

    def __init__(
        self,
        family: str | Family = "openai-5.6",
        brain: Brain = echo,
        *,
        model: str = "gpt-5.6-terra",
        usage: UsageMode = "whole",
        weight: float = 1,
        window: int | None = None,
        maximum: int | None = None,
        overflow: Literal["event", "status"] = "event",
    ) -> None:
        super().__init__(brain, model=model, usage=usage, weight=weight)
        result = FAMILIES[family] if isinstance(family, str) else family
        self.family = replace(result, window=window or result.window, maximum=maximum or result.maximum)
        self.overflow = overflow
        self.stored: dict[str, Any] = {}  # items by id, and whole inputs by the response's id
        self.reasoning_of: dict[str, str] = {}
        self.routes = {("POST", "/v1/responses"): self.create, ("GET", "/v1/models"): self.list_models}

    def list_models(self, record: Exchange) -> Answer:
        entry = {"id": self.model, "object": "model", "created": 1, "owned_by": "openai", "shutdown_date": None}
        return Answer({"object": "list", "data": [entry]})

    def create(self, record: Exchange) -> Answer:
        request = ResponsesRequest(record.body, record.headers, self.family, record.account)
        check(SHAPE, request)
        if request.body["model"] != self.model:
            words = f"The model '{request.body['model']}' does not exist or you do not have access to it."
            raise RequestRefused(Refusal("model", 404, words, code="model_not_found"))
        items = self._items(request.body)
        request = replace(request, items=items, stored=self.stored, reasoning_of=self.reasoning_of)
        check(ITEM_RULES, request)
        units = self._units(request)
        request = replace(request, prompt_tokens=sum(unit.tokens for unit in units))
        try:
            check(SIZE, request)
        except RequestRefused as refused:
            if self.overflow == "status" or not request.body.get("stream"):
                raise
            record.refusal = refused.refusal
            return Answer(events=self._overflow_events(refused.refusal, request))
        reply = self.think(record, self._prompt(request))
        reply, is_cut = cut(reply, request.body.get("max_output_tokens") or self.family.maximum)
        response = self._response(request, "incomplete" if is_cut else "completed")
        response["output"] = self._output(request, reply)
        record.usage = response["usage"] = self._usage(record, request, reply, units)
        if request.body.get("store", True):
            self.stored[response["id"]] = [*items, *response["output"]]
            self.stored.update({item["id"]: item for item in response["output"]})
        return Answer(events=self._events(response, reply)) if request.body.get("stream") else Answer(response)

    # -- reading

    def _items(self, body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        given = body["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
        previous = body.get("previous_response_id")
        if previous is None:
            return items
        if previous not in self.stored:
            words = f"Previous response with id '{previous}' not found."
            raise RequestRefused(
                Refusal("previous", 400, words, code="previous_response_not_found", param="previous_response_id")
            )
        return [*self.stored[previous], *items]

    def _units(self, request: ResponsesRequest) -> list[Unit]:
        body = request.body
        first = [*(body.get("tools") or ()), body.get("instructions") or ""]
        return [self.unit(content) for content in [*first, *request.items] if content]

    def _prompt(self, request: ResponsesRequest) -> Prompt:
        body = request.body
        names = tuple(tool["name"] for tool in body.get("tools") or () if tool["type"] == "function")
        forced: tuple[str, ...] = ()
        match body.get("tool_choice"):
            case "required":
                forced = names
            case {"type": "function", "name": str(name)}:
                forced = (name,)
            case {"type": "allowed_tools", "mode": mode, "tools": allowed}:
                names = tuple(tool["name"] for tool in allowed)
                forced = names if mode == "required" else ()
        instructions = body.get("instructions")
        turns = [self._message_of(self.stored.get(item.get("id", ""), item)) for item in request.items]
        messages = (*((Message("system", instructions),) if instructions else ()), *turns)
        return Prompt(self.model, messages, names, forced, request.prompt_tokens, body)

    def _message_of(self, item: Mapping[str, Any]) -> Message:
        match kind_of(item):
            case "function_call":
                return Message("assistant", calls=(Call(item["name"], item["arguments"], item["call_id"]),))
            case "function_call_output":
                return Message("tool", str(item["output"]), call_id=item["call_id"])
            case "reasoning":
                return Message("assistant", reasoning="\n".join(part["text"] for part in item.get("summary") or ()))
        text = "\n".join(part.get("text", "") for part in parts_of(item))
        return Message("system" if item["role"] == "developer" else item["role"], text)

    # -- answering

    def _response(self, request: ResponsesRequest, status: str) -> dict[str, Any]:
        body = request.body
        return {
            "id": self.next_id("resp_"),
            "object": "response",
            "created_at": 1,
            "status": status,
            "model": self.model,
            "output": [],
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": body.get("instructions"),
            "tools": body.get("tools") or [],
            "tool_choice": body.get("tool_choice") or "auto",
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "store": body.get("store", True),
            "service_tier": "default",
            "usage": None,
        }

    def _output(self, request: ResponsesRequest, reply: Reply) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        if reply.reasoning and (request.body.get("reasoning") or {}).get("effort") != "none":
            items.append(self._reasoning(request, reply))
        if reply.text:
            part: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": []}
            if LOGPROBS in (request.body.get("include") or ()):
                part["logprobs"] = probable(reply.text, request.body.get("top_logprobs") or 0)
            part = {"type": "refusal", "refusal": reply.text} if reply.is_refusal else part
            message = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
            items.append({"id": self.next_id("msg_"), **message})
        for call in reply.calls:
            called = {"call_id": call.id or self.next_id("call_"), "name": call.name}
            arguments = {"arguments": arguments_text(call.arguments), "status": "completed"}
            items.append({"id": self.next_id("fc_"), "type": "function_call", **called, **arguments})
        if items and items[0]["type"] == "reasoning":
            self.reasoning_of.update({item["id"]: items[0]["id"] for item in items[1:]})
        return items

    def _reasoning(self, request: ResponsesRequest, reply: Reply) -> dict[str, Any]:
        item: dict[str, Any] = {"id": self.next_id("rs_"), "type": "reasoning", "summary": []}
        if (request.body.get("reasoning") or {}).get("summary"):
            item["summary"] = [{"type": "summary_text", "text": reply.reasoning}]
        if "reasoning.encrypted_content" in (request.body.get("include") or ()):
            item["encrypted_content"] = SEALER.seal({"id": item["id"], "account": request.account})
        return item

    def _usage(self, record: Exchange, request: ResponsesRequest, reply: Reply, units: list[Unit]) -> Any:
        common = self.cache.common(record.account, units)
        cached = common - common % CACHED_STEP if common >= CACHED_FROM else 0
        prompt, completion = reply.usage or (request.prompt_tokens, reply.tokens)
        cached = 0 if reply.usage else cached
        written = prompt - cached if prompt >= CACHED_FROM else 0
        thought = reply.reasoning_tokens
        if self.usage == "missing":
            return None
        if self.usage == "zero":
            prompt = completion = cached = written = thought = 0
        return {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
            "output_tokens": completion,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": prompt + completion,
        }

    def _overflow_events(self, refusal: Refusal, request: ResponsesRequest) -> Iterator[bytes]:
        yield named({"type": "response.created", "response": self._response(request, "in_progress")})
        error = {"type": refusal.type, "code": refusal.code, "message": refusal.message, "param": refusal.param}
        yield named({"type": "error", "error": error})

    def _events(self, response: dict[str, Any], reply: Reply) -> Iterator[bytes]:
        """Every event with its number."""
        for number, event in enumerate(_stream(response, reply)):
            yield named({**event, "sequence_number": number})
        if reply.breaks_off:
            raise BreaksOff


def _stream(response: dict[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
    first = {**response, "output": [], "status": "in_progress", "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": first}
    yield {"type": "response.in_progress", "response": first}
    for index, item in enumerate(response["output"]):
        empty = {name: [] if isinstance(part, list) else part for name, part in item.items()}
        empty |= {"arguments": ""} if "arguments" in item else {}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        yield from _parts(index, item, reply)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    if reply.error_event:
        yield {"type": "error", "code": "server_error", "message": reply.error_event, "param": None}
    elif not reply.breaks_off:
        yield {"type": f"response.{response['status']}", "response": response}


def _parts(index: int, item: Mapping[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
    """The text of an item in pieces: its summary, its content or its arguments."""
    where = {"item_id": item["id"], "output_index": index}
    if item["type"] == "function_call":
        kind, text = "response.function_call_arguments", item["arguments"]
        yield from ({"type": f"{kind}.delta", **where, "delta": piece} for piece in pieces(text, reply))
        yield {"type": f"{kind}.done", **where, "name": item["name"], "arguments": text}
        return
    is_summary = item["type"] == "reasoning"
    kind, part_kind = (
        ("reasoning_summary_text", "reasoning_summary_part") if is_summary else ("output_text", "content_part")
    )
    where["summary_index" if is_summary else "content_index"] = 0
    for part in item["summary" if is_summary else "content"]:
        name = "refusal" if part["type"] == "refusal" else "text"
        kind = "refusal" if name == "refusal" else kind
        yield {"type": f"response.{part_kind}.added", **where, "part": {**part, name: ""}}
        for piece in pieces(part[name], reply):
            yield {"type": f"response.{kind}.delta", **where, "delta": piece}
        yield {"type": f"response.{kind}.done", **where, name: part[name]}
        yield {"type": f"response.{part_kind}.done", **where, "part": part}
