"""A strict double of chat completions; what a server does of its own is in its family and its subclass."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.doubles.brains import Brain, Call, Message, Prompt, Reply, Role, arguments_text, cut, echo
from tests.doubles.chat_families import CLOUDS, SIGNER
from tests.doubles.chat_rules import PROTOCOL, ChatRequest, Family, Reasoning, text_of
from tests.doubles.counting import Unit, canonical, count_text
from tests.doubles.rules import Refusal, check
from tests.doubles.serving import Answer, Double, Exchange, UsageMode
from tests.doubles.streams import BreaksOff, data, pieces, probable

HIDDEN_KEYS = frozenset({"extra_content"})  # signatures, which cost nothing
DONE = data(b"[DONE]")
OF_ANSWER = {"system_fingerprint": "fp_double", "service_tier": "default"}


class ChatDouble(Double):
    """``reasoning`` overrides where the family shows it. ``calls_as_text``: a parser is missing, calls come as text."""

    paths = ("/v1/chat/completions", "/chat/completions")

    def __init__(
        self,
        family: str | Family,
        brain: Brain = echo,
        *,
        model: str | None = None,
        usage: UsageMode = "whole",
        weight: float = 1,
        window: int | None = None,
        maximum: int | None = None,
        reasoning: Reasoning | None = None,
        calls_as_text: bool = False,
    ) -> None:
        result = CLOUDS[family] if isinstance(family, str) else family
        super().__init__(brain, model=model or result.model, usage=usage, weight=weight)
        result = replace(result, window=window or result.window, maximum=maximum or result.maximum)
        self.family = replace(result, reasoning=reasoning or result.reasoning)
        self.calls_as_text = calls_as_text
        self.routes = {("POST", path): self.create for path in self.paths}
        self.routes |= {("GET", path): self.list_models for path in ("/v1/models", "/models")}
        words = self.family.words or {}
        general = (replace(rule, words=words.get(rule.name, rule.words)) for rule in PROTOCOL)
        self.rules = (*general, *self.family.rules)

    def refused(self, refusal: Refusal, record: Exchange) -> Answer:
        return Answer(self.family.error(refusal), refusal.status)

    def list_models(self, record: Exchange) -> Answer:
        return Answer({"object": "list", "data": [{"id": self.model, "object": "model", **self.model_fields()}]})

    def model_fields(self) -> Mapping[str, Any]:
        """What the server's list says of its model."""
        return {"created": 1, "owned_by": self.family.name}

    # -- how it counts

    def count(self, text: str) -> int:
        return count_text(text)

    def count_prompt(self, request: ChatRequest, units: Sequence[Unit]) -> int:
        return sum(unit.tokens for unit in units)

    # -- hooks of servers that do not refuse what is too long

    def fit(self, request: ChatRequest, prompt: Prompt) -> Prompt:
        """What the model sees of the request; ``prompt_tokens`` is what the server reports."""
        return prompt

    def garble(self, request: ChatRequest, reply: Reply) -> Reply:
        return reply

    # -- one request

    def create(self, record: Exchange) -> Answer:
        request = ChatRequest(record.body, record.headers, self.family, record.account, self.model)
        units = self._units(request)
        request = replace(request, prompt_tokens=self.count_prompt(request, units))
        check(self.rules, request)
        prompt = self.fit(request, self._prompt(request))
        reply = self.garble(request, self.think(record, prompt))
        if not request.thinks:
            reply = replace(reply, reasoning="")
        room = min(self.family.maximum, max(1, self.family.window - prompt.prompt_tokens))
        budget = room if request.budget is None else min(room, request.budget)
        reply, is_cut = cut(reply, budget, self.count, keeps_half_calls=bool(record.body.get("stream")))
        record.is_full = is_cut and budget == room < self.family.maximum
        finish = "length" if is_cut else reply.finish or ("tool_calls" if reply.calls else "stop")
        cached = self.cache.common(record.account, units)
        usage = self._usage(reply, prompt.prompt_tokens, cached)
        is_asked = (record.body.get("stream_options") or {}).get("include_usage", False)
        is_due = is_asked or self.usage == "last" or not record.body.get("stream")
        is_reported = is_due and self.usage != "missing" and reply.is_reported
        record.usage = usage if is_reported else None
        head = {"id": self.next_id("chatcmpl-"), "created": 1, "model": self.model, **OF_ANSWER}
        calls = self._calls(request, reply)
        if record.body.get("stream"):
            return Answer(events=self._events(head, request, reply, calls, finish, record.usage))
        message = self._message(request, reply, calls)
        choice = {"index": 0, "message": message, **_probable(request, reply, reply.text), "finish_reason": finish}
        return Answer({**head, "object": "chat.completion", "choices": [choice], **_reported(record.usage)})

    def _units(self, request: ChatRequest) -> list[Unit]:
        return [self.unit(_without_hidden(part)) for part in [*(request.body.get("tools") or ()), *request.messages]]

    def _prompt(self, request: ChatRequest) -> Prompt:
        names = tuple(tool["function"]["name"] for tool in request.body.get("tools") or ())
        choice = request.body.get("tool_choice")
        forced = names if choice in ("required", "any") else ()
        if isinstance(choice, dict):
            forced = (choice["function"]["name"],)
        messages = tuple(_message_of(message) for message in request.messages)
        return Prompt(self.model, messages, names, forced, request.prompt_tokens, request.body)

    def _usage(self, reply: Reply, prompt_tokens: int, cached: int) -> dict[str, Any]:
        prompt, completion = reply.usage or (prompt_tokens, reply.counted(self.count))
        cached, thought = (0 if reply.usage else min(cached, prompt)), self.count(reply.reasoning)
        if self.usage == "zero":
            prompt = completion = cached = thought = 0
        sums = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        if self.usage == "sums":
            return sums
        return {
            **sums,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": thought},
        }

    # -- answering

    def _calls(self, request: ChatRequest, reply: Reply) -> list[dict[str, Any]]:
        calls = []
        for index, call in enumerate(() if self.calls_as_text else reply.calls):
            function = {"name": call.name, "arguments": arguments_text(call.arguments)}
            made = {"id": call.id or self.next_id("call_"), "type": "function", "function": function}
            if self.family.signs_calls and index == 0:
                signature = SIGNER.seal({"account": request.account, "model": self.model, "call": made["id"]})
                made["extra_content"] = {"google": {"thought_signature": signature}}
            calls.append(made)
        return calls

    def _content(self, request: ChatRequest, reply: Reply) -> str:
        """The text with what comes inside of it."""
        text = reply.text
        if self.calls_as_text:
            for call in reply.calls:
                called = {"name": call.name, "arguments": call.arguments}
                text += f"<tool_call>\n{canonical(called)}\n</tool_call>"
        is_inside = self._reasoning(request) == "think" and reply.reasoning
        return f"<think>\n{reply.reasoning}\n</think>\n\n{text}" if is_inside else text

    def _reasoning(self, request: ChatRequest) -> Reasoning:
        """MiniMax splits it off when it is asked to."""
        return "reasoning_details" if request.body.get("reasoning_split") else self.family.reasoning

    def _reasoning_part(self, request: ChatRequest, text: str) -> dict[str, Any]:
        match self._reasoning(request):
            case "reasoning_content" | "reasoning" as name:
                return {name: text}
            case "reasoning_details":
                return {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": text}]}
        return {}

    def _message(self, request: ChatRequest, reply: Reply, calls: list[dict[str, Any]]) -> dict[str, Any]:
        content = self._content(request, reply)
        message: dict[str, Any] = {"role": "assistant", "content": content or (None if calls else "")}
        if reply.reasoning:
            message |= self._reasoning_part(request, reply.reasoning)
        if reply.is_refusal:
            message |= {"content": None, "refusal": content}
        if reply.annotations:
            message["annotations"] = list(reply.annotations)
        return {**message, "tool_calls": calls} if calls else message

    def _events(
        self,
        head: dict[str, Any],
        request: ChatRequest,
        reply: Reply,
        calls: list[dict[str, Any]],
        finish: str,
        usage: dict[str, Any] | None,
    ) -> Iterator[bytes]:
        is_open = {"usage": None} if usage and self.usage == "whole" else {}
        head = {**head, "object": "chat.completion.chunk"}

        def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
            choice = {"index": 0, "delta": delta, **more, "finish_reason": reason}
            return data({**head, "choices": [choice], **is_open})

        yield chunk({"role": "assistant", "content": ""})
        if self._reasoning_part(request, ""):
            for piece in pieces(reply.reasoning, reply):
                yield chunk(self._reasoning_part(request, piece))
        for piece in pieces(self._content(request, reply), reply):
            yield chunk({"refusal" if reply.is_refusal else "content": piece}, **_probable(request, reply, piece))
        if reply.annotations:
            yield chunk({"annotations": list(reply.annotations)})
        for index, call in enumerate(calls):
            function = {"name": call["function"]["name"], "arguments": ""}
            yield chunk({"tool_calls": [{"index": index, **call, "function": function}]})
            for piece in pieces(call["function"]["arguments"], reply):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        if reply.breaks_off:
            raise BreaksOff
        if reply.error_event:
            yield data(self.family.error(Refusal("error event", 500, reply.error_event, "server_error")))
            return
        yield chunk({}, finish)
        if usage is not None:
            yield data({**head, "choices": [], "usage": usage})
        yield DONE


def _reported(usage: dict[str, Any] | None) -> dict[str, Any]:
    return {} if usage is None else {"usage": usage}


def _probable(request: ChatRequest, reply: Reply, text: str) -> dict[str, Any]:
    """The tokens of a text with their probabilities, if they were asked for."""
    if not request.body.get("logprobs"):
        return {}
    tokens = probable(text, request.body.get("top_logprobs") or 0)
    kind, other = ("refusal", "content") if reply.is_refusal else ("content", "refusal")
    return {"logprobs": {kind: tokens, other: None}}


def _without_hidden(part: Mapping[str, Any]) -> dict[str, Any]:
    calls = part.get("tool_calls")
    plain = {name: value for name, value in part.items() if name not in HIDDEN_KEYS}
    return {**plain, "tool_calls": [_without_hidden(call) for call in calls]} if calls else plain


def _message_of(message: Mapping[str, Any]) -> Message:
    role: Role = "system" if message["role"] == "developer" else message["role"]
    calls = tuple(
        Call(call["function"]["name"], call["function"]["arguments"], call["id"])
        for call in message.get("tool_calls") or ()
    )
    reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
    return Message(role, text_of(message), calls, message.get("tool_call_id") or "", reasoning)
