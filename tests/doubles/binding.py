"""Anthropic's preserved thinking: a signed block is valid only behind the prefix that it was made on.

The prefix is the system prompt, the tools and all that is no thinking in the messages before the block. Of the thinking
before it, what is kept must be the end of what stood there when it was made: a gap, or a block that is back after it
was left out, makes the block and all later ones invalid.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from tests.doubles.counting import canonical
from tests.doubles.rules import Refusal, RequestRefused
from tests.doubles.signing import Signer, digest

Binding = Literal["enforce", "record", "drop"]
THINKING = ("thinking", "redacted_thinking")
CONTROLS = "thinking-binding-controls-2026-08-01"
TAMPERED = "{path}: Invalid `signature` in `{type}` block"
BOUND = (
    "{path}: Invalid `signature` in `{type}` block. The block is bound to a different conversation. Remove the block, "
    'or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
NEEDS_HEADER = f" That setting requires the `{CONTROLS}` value in the `anthropic-beta` header."
REASONS = {
    "system": " The `system` prompt differs from the one this block was created with.",
    "tools": " The `tools` differ from the ones this block was created with.",
    "messages": " The `messages` before this block differ from the ones it was created with.",
    "run": " The `thinking` block that preceded this one when it was created is missing from this request.",
}


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """A text in place of a list is one block of text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


@dataclass(frozen=True)
class Place:
    """A thinking block of a request, and what names the prefix before it."""

    at: tuple[int, int]
    block: Mapping[str, Any]
    messages: str

    @property
    def path(self) -> str:
        return "messages.{}.content.{}".format(*self.at)


@dataclass
class BindingResult:
    """What the binding check left: blocks that are not shown to the model, and what the answer says of them."""

    dropped: set[tuple[int, int]] = field(default_factory=set)
    transformations: list[dict[str, Any]] = field(default_factory=list)
    run: list[str] = field(default_factory=list)  # ids of the blocks that are shown

    def note(self, kind: str, place: Place, reason: str) -> None:
        self.transformations.append({"type": kind, "path": place.path, "reason": reason})
        if kind == "thinking_dropped":
            self.dropped.add(place.at)


class Binder:
    """Signs the thinking of ``model`` and checks what comes back. ``reads`` are models whose blocks it understands."""

    def __init__(self, model: str, *, binds_prefix: bool, binds_account: bool, reads: tuple[str, ...] = ()) -> None:
        self._model, self._reads = model, (model, *reads)
        self._binds_prefix, self._binds_account = binds_prefix, binds_account
        self._signer = Signer("anthropic")

    def sign(self, block_id: str, text: str, body: Mapping[str, Any], account: str, run: list[str]) -> str:
        """The signature of a block that answers ``body``, after the blocks ``run``."""
        prefix = {"system": _system(body), "tools": _tools(body), "messages": _messages(body)}
        previous = run[-1] if run else ""
        made = {"id": block_id, "model": self._model, "account": account, "text": digest(text)}
        return self._signer.seal({**made, **prefix, "previous": previous, "run": len(run)})

    def check(self, body: Mapping[str, Any], account: str, behaviour: Binding, *, has_header: bool) -> BindingResult:
        """Raises the refusal of the first block that the request may not hold."""
        checked = BindingResult()
        now = {"system": _system(body), "tools": _tools(body)}
        for place in _places(body):
            made = self._opened(place)
            if self._binds_account and made["account"] != account:
                checked.note("thinking_dropped", place, "organization_binding_mismatch")
            elif made["model"] not in self._reads:
                checked.note("thinking_dropped", place, "model_binding_mismatch")
            elif not self._binds_prefix:
                checked.run.append(made["id"])
            elif reason := _mismatch(made, now, place, checked.run):
                if behaviour == "enforce":
                    words = BOUND + ("" if has_header else NEEDS_HEADER) + REASONS[reason]
                    raise _refused("bound thinking", words, place)
                kind = "thinking_dropped" if behaviour == "drop" else "thinking_mismatch_allowed"
                checked.note(kind, place, "prefix_binding_mismatch")
                if behaviour == "record":
                    checked.run.append(made["id"])
            else:
                checked.run.append(made["id"])
        return checked

    def _opened(self, place: Place) -> dict[str, Any]:
        block = place.block
        is_redacted = block["type"] == "redacted_thinking"
        made = self._signer.open(block.get("data" if is_redacted else "signature"))
        if made is None or (not is_redacted and made["text"] != digest(str(block.get("thinking")))):
            raise _refused("tampered thinking", TAMPERED, place)
        return made


def _mismatch(made: Mapping[str, Any], now: Mapping[str, str], place: Place, run: list[str]) -> str:
    """What differs from the block's making, or nothing."""
    for name, value in {**now, "messages": place.messages}.items():
        if made[name] != value:
            return name
    return "run" if run and (run[-1] != made["previous"] or len(run) > made["run"]) else ""


def _refused(rule: str, words: str, place: Place) -> RequestRefused:
    return RequestRefused(Refusal(rule, 400, words.format(path=place.path, type=place.block["type"])))


def _system(body: Mapping[str, Any]) -> str:
    return digest(canonical(blocks_of(body.get("system"))))


def _tools(body: Mapping[str, Any]) -> str:
    """Tools that wait to be loaded and were not used do not count."""
    blocks = [block for message in body["messages"] for block in blocks_of(message["content"])]
    used = {block.get("name") or block.get("tool_name") for block in blocks}
    shown = [tool for tool in body.get("tools") or () if not tool.get("defer_loading") or tool["name"] in used]
    return digest(canonical(shown))


def _messages(body: Mapping[str, Any]) -> str:
    *_, end = _walk(body)
    return end.messages


def _places(body: Mapping[str, Any]) -> Iterator[Place]:
    return (place for place in _walk(body) if place.block.get("type") in THINKING)


def _walk(body: Mapping[str, Any]) -> Iterator[Place]:
    """Every block with the name of what stands before it, and an end without a block."""
    name = sha256()
    for number, message in enumerate(body["messages"]):
        head: dict[str, Any] | None = {key: part for key, part in message.items() if key != "content"}
        for position, block in enumerate(blocks_of(message["content"])):
            yield Place((number, position), block, name.hexdigest()[:16])
            if block.get("type") in THINKING:
                continue
            if head is not None:
                name.update(b"\x1e" + canonical(head).encode())
                head = None
            name.update(b"\0" + canonical(block).encode())
    yield Place((len(body["messages"]), 0), {}, name.hexdigest()[:16])
