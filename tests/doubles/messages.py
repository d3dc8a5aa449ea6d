"""A strict double of Anthropic's Messages API."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.doubles.binding import CONTROLS, THINKING, Binder, Binding, BindingResult, blocks_of
from tests.doubles.brains import Brain, Call, Message, Prompt, Reply, Role, arguments_text, cut, echo
from tests.doubles.counting import Unit
from tests.doubles.messages_compatible import COMPATIBLE
from tests.doubles.messages_content import CONTENT
from tests.doubles.messages_family import FAMILIES, Family, MessagesRequest
from tests.doubles.messages_rules import SHAPE, SIZE
from tests.doubles.rules import Refusal, RequestRefused, check
from tests.doubles.serving import Answer, Double, Exchange, UsageMode
from tests.doubles.streams import BreaksOff, named, pieces

BEHAVIOURS: dict[Any, Binding] = {"error": "enforce", "drop_block": "drop"}


class MessagesDouble(Double):
    """``binding`` is what the account does by itself with thinking behind a changed prefix.

    ``enforce`` refuses, as for accounts since 31 August 2026; ``record`` lets it pass and says so, as for older ones;
    ``drop`` leaves it out. A request's ``prefix_mismatch_behavior`` goes before it.
    """

    def __init__(
        self,
        family: str | Family = "anthropic-5.5",
        brain: Brain = echo,
        *,
        model: str = "claude-opus-5-5",
        usage: UsageMode = "whole",
        weight: float = 1,
        binding: Binding = "enforce",
        reads: tuple[str, ...] = (),
        window: int | None = None,
    ) -> None:
        super().__init__(brain, model=model, usage=usage, weight=weight)
        result = (FAMILIES | COMPATIBLE)[family] if isinstance(family, str) else family
        self.family = result if window is None else replace(result, window=window)
        self.binding = binding
        is_bound = {"binds_prefix": self.family.binds_prefix, "binds_account": self.family.binds_account}
        self.binder = Binder(model, **is_bound, reads=reads)
        self.routes = {
            ("POST", "/v1/messages"): self.create,
            ("POST", "/v1/messages/count_tokens"): self.count,
            ("GET", "/v1/models"): self.list_models,
        }

    def refused(self, refusal: Refusal, record: Exchange) -> Answer:
        error = {"type": refusal.type, "message": refusal.message}
        return Answer({"type": "error", "error": error, "request_id": self.next_id("req_")}, refusal.status)

    # -- routes

    def list_models(self, record: Exchange) -> Answer:
        family = self.family
        entry: dict[str, Any] = {
            "type": "model",
            "id": self.model,
            "display_name": self.model,
            "created_at": "2026-09-01T00:00:00Z",
        }
        entry |= {"max_input_tokens": family.window, "max_tokens": family.maximum}
        return Answer({"data": [entry], "has_more": False, "first_id": self.model, "last_id": self.model})

    def count(self, record: Exchange) -> Answer:
        request, _, _ = self._checked(record, is_count=True)
        return Answer({"input_tokens": request.prompt_tokens})

    def create(self, record: Exchange) -> Answer:
        request, checked, units = self._checked(record, is_count=False)
        reply = self.think(record, self._prompt(request))
        reply, stop_reason = self._fitted(request, reply)
        usage = self._usage(record, request, reply, units)
        content = self._content(record, request, reply, checked.run)
        message = {
            "id": self.next_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": usage,
        }
        if request.betas & {CONTROLS} and self.family.binds_prefix:
            message["input_transformations"] = checked.transformations
        if request.body.get("stream"):
            return Answer(events=self._events(message, reply))
        return Answer(message)

    # -- judging

    def _checked(self, record: Exchange, *, is_count: bool) -> tuple[MessagesRequest, BindingResult, list[Unit]]:
        request = MessagesRequest(record.body, record.headers, self.family, is_count)
        check(SHAPE, request)
        if request.body["model"] != self.model:
            raise RequestRefused(Refusal("model", 404, f"model: {request.body['model']}", "not_found_error"))
        check(CONTENT, request)
        wish = ((request.body.get("thinking") or {}).get("block_binding") or {}).get("prefix_mismatch_behavior")
        behaviour = BEHAVIOURS.get(wish, self.binding)
        has_header = CONTROLS in request.betas
        checked = BindingResult()
        if self.family.signs:
            checked = self.binder.check(request.body, record.account, behaviour, has_header=has_header)
        units = self._units(request, checked)
        request = replace(request, prompt_tokens=sum(unit.tokens for unit in units))
        check((*self.family.rules, *SIZE), request)
        return request, checked, units

    def _units(self, request: MessagesRequest, checked: BindingResult) -> list[Unit]:
        """The prompt as the cache sees it. Another tool choice or effort makes other messages."""
        body = request.body
        units = [self.unit(tool, "cache_control" in tool) for tool in body.get("tools") or ()]
        units += [self.unit(block, "cache_control" in block) for block in blocks_of(body.get("system"))]
        settings = f"{body.get('tool_choice')}{(body.get('output_config') or {}).get('effort')}"
        units.append(Unit(settings, 0))
        units += [
            self.unit({"role": message["role"], **block}, "cache_control" in block)
            for at, position, block, message in request.blocks
            if (at, position) not in checked.dropped and not self._is_cleared(body["messages"], at)
        ]
        if "cache_control" in body:
            units[-1] = replace(units[-1], is_breakpoint=True)
        return units

    def _is_cleared(self, messages: Sequence[Mapping[str, Any]], at: int) -> bool:
        """A system message of one turn is gone once a later user message is there."""
        is_passing = messages[at].get("clear_at") == "next_user_message"
        return is_passing and any(later["role"] == "user" for later in messages[at + 1 :])

    def _prompt(self, request: MessagesRequest) -> Prompt:
        names = tuple(tool["name"] for tool in request.body.get("tools") or ())
        choice = request.body.get("tool_choice") or {}
        forced = {"any": names, "tool": (choice.get("name"),)}.get(request.choice, ())
        turns = [
            part
            for at, message in enumerate(request.body["messages"])
            if not self._is_cleared(request.body["messages"], at)
            for part in _messages_of(message["role"], blocks_of(message["content"]))
        ]
        system = "\n".join(block["text"] for block in blocks_of(request.body.get("system")))
        messages = (Message("system", system), *turns) if system else tuple(turns)
        return Prompt(self.model, messages, names, forced, request.prompt_tokens, request.body)

    # -- answering

    def _fitted(self, request: MessagesRequest, reply: Reply) -> tuple[Reply, str]:
        asked, room = request.body["max_tokens"], self.family.window - request.prompt_tokens
        reply, is_cut = cut(reply, min(asked, room))
        if is_cut:
            return reply, "max_tokens" if asked <= room else "model_context_window_exceeded"
        return reply, reply.finish or ("tool_use" if reply.calls else "end_turn")

    def _usage(self, record: Exchange, request: MessagesRequest, reply: Reply, units: list[Unit]) -> dict[str, Any]:
        read, written = self.cache.marked(record.account, units, self.family.cache_minimum)
        prompt, completion = reply.usage or (request.prompt_tokens, reply.tokens)
        read, written = (0, 0) if reply.usage else (read, written)
        counts = {
            "input_tokens": prompt - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": max(1, completion),
        }
        if self.usage == "missing":
            return {}
        if self.usage == "zero":
            counts = dict.fromkeys(counts, 0)
        lives = {"ephemeral_5m_input_tokens": counts["cache_creation_input_tokens"], "ephemeral_1h_input_tokens": 0}
        record.usage = {**counts, "cache_creation": lives}
        return dict(record.usage)

    def _content(
        self, record: Exchange, request: MessagesRequest, reply: Reply, run: list[str]
    ) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = []
        if reply.reasoning and request.thinking != "disabled":
            display = (request.body.get("thinking") or {}).get("display")
            is_shown = display in ("summarized", "updates") or request.thinking == "enabled" or not self.family.signs
            text = reply.reasoning if is_shown else ""
            block_id, signed = self.next_id("")[-8:], {}
            if self.family.signs:
                signed = {"signature": self.binder.sign(block_id, text, request.body, record.account, run)}
            content.append({"type": "thinking", "thinking": text, **signed})
        if reply.text:
            content.append({"type": "text", "text": reply.text})
        for call in reply.calls:
            call_id = call.id or self.next_id("toolu_")
            content.append({"type": "tool_use", "id": call_id, "name": call.name, "input": call.arguments})
        return content

    def _events(self, message: dict[str, Any], reply: Reply) -> Iterator[bytes]:
        usage = message["usage"]
        zeros = {"input_tokens": 0, "output_tokens": 0}
        first: Any = {**usage, "output_tokens": 1} if self.usage == "whole" else zeros
        start: dict[str, Any] = {**message, "content": [], "stop_reason": None, "usage": first if usage else {}}
        yield named({"type": "message_start", "message": start})
        yield named({"type": "ping"})
        for index, block in enumerate(message["content"]):
            yield from _block_events(index, block, reply)
        if reply.error_event:
            error = {"type": "overloaded_error", "message": reply.error_event}
            yield named({"type": "error", "error": error})
            return
        if reply.breaks_off:
            raise BreaksOff
        delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        last: dict[str, Any] = {"type": "message_delta", "delta": delta, "usage": usage}
        if "input_transformations" in message:
            last["input_transformations"] = message["input_transformations"]
        yield named(last)
        yield named({"type": "message_stop"})


def _block_events(index: int, block: dict[str, Any], reply: Reply) -> Iterator[bytes]:
    deltas: list[tuple[str, str, str]]  # type of the delta, field, whole text
    empty: dict[str, Any]
    if block["type"] == "thinking":
        deltas, empty = [("thinking_delta", "thinking", block["thinking"])], {**block, "thinking": ""}
        if "signature" in block:
            deltas, empty = [*deltas, ("signature_delta", "signature", "")], {**empty, "signature": ""}
    elif block["type"] == "text":
        deltas, empty = [("text_delta", "text", block["text"])], {"type": "text", "text": ""}
    else:
        deltas, empty = [("input_json_delta", "partial_json", arguments_text(block["input"]))], {**block, "input": {}}
    yield named({"type": "content_block_start", "index": index, "content_block": empty})
    for kind, name, text in deltas:
        parts = [block["signature"]] if kind == "signature_delta" else pieces(text, reply)
        for part in parts:
            yield named({"type": "content_block_delta", "index": index, "delta": {"type": kind, name: part}})
    yield named({"type": "content_block_stop", "index": index})


def _messages_of(role: Role, blocks: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    """A message in one form for all dialects; results are messages of their own."""
    texts = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    calls = tuple(Call(b["name"], b["input"], b["id"]) for b in blocks if b["type"] == "tool_use")
    thoughts = "\n".join(block.get("thinking", "") for block in blocks if block["type"] in THINKING)
    for block in blocks:
        if block["type"] == "tool_result":
            text = "\n".join(part.get("text", "") for part in blocks_of(block.get("content")))
            yield Message("tool", text, call_id=block["tool_use_id"])
    if texts or calls or thoughts or any(block["type"] == "image" for block in blocks):
        yield Message(role, texts, calls, reasoning=thoughts)
