"""The opaque pieces of an answer that a provider wants back unchanged, such as signed or encrypted reasoning.

Each piece is stored as a JSON text with its owner and epoch. It is useless for another model, key or account, and after
the conversation was rewritten.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dominds.llm.json_text import NotJson, dump, parse
from dominds.llm.messages import Message, ToolCall


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of reasoning. ``name`` holds provider, model and a digest of the key; ``epoch`` is the request's."""

    name: str
    epoch: int = 0

    @classmethod
    def of(cls, provider_id: str, model: str, key: str, epoch: int) -> "Owner":
        digest = hashlib.blake2b(key.encode(), digest_size=6).hexdigest()
        return cls(f"{provider_id}/{model}#{digest}", epoch)


@dataclass(frozen=True, slots=True)
class Spoken:
    """A stretch of the answer's text, as a number of characters, in its place among the pieces."""

    chars: int


@dataclass(frozen=True, slots=True)
class Called:
    """The answer's next call, in its place among the pieces."""


@dataclass(frozen=True, slots=True)
class Opaque:
    item: dict[str, Any]


Piece = Spoken | Called | Opaque


def serialise(owner: Owner, pieces: Iterable[Piece]) -> tuple[str, ...]:
    """Return an answer's pieces in stored form.

    Without an opaque piece there are none, since text and calls are stored elsewhere.
    """
    pieces = list(pieces)
    if not any(isinstance(piece, Opaque) for piece in pieces):
        return ()
    return tuple(dump({"of": owner.name, "epoch": owner.epoch, **_shape(piece)}).decode() for piece in pieces)


def _shape(piece: Piece) -> dict[str, Any]:
    match piece:
        case Spoken(chars):
            return {"text": chars}
        case Called():
            return {"call": True}
        case Opaque(item):
            return {"item": item}


def replay(owner: Owner, message: Message) -> Iterator[str | ToolCall | Opaque]:
    """Yield the pieces of an answer in order: stretches of text, calls, and opaque pieces between them.

    Opaque pieces are left out if the owner or the epoch differs, or if text or calls have changed since.
    """
    pieces = list(_pieces(owner, message.provider_items))
    spoken = sum(piece.chars for piece in pieces if isinstance(piece, Spoken))
    called = sum(isinstance(piece, Called) for piece in pieces)
    if (spoken, called) != (len(message.text), len(message.tool_calls)):
        pieces = [Spoken(len(message.text)), *[Called()] * len(message.tool_calls)]
    at, calls = 0, iter(message.tool_calls)
    for piece in pieces:
        match piece:
            case Spoken(chars):
                if chars:
                    yield message.text[at : at + chars]
                at += chars
            case Called():
                yield next(calls)
            case Opaque():
                yield piece


def _pieces(owner: Owner, stored: Iterable[str]) -> Iterator[Piece]:
    for text in stored:
        try:
            entry = parse(text)
        except NotJson:
            continue
        if not isinstance(entry, dict) or (entry.get("of"), entry.get("epoch")) != (owner.name, owner.epoch):
            continue
        if isinstance(entry.get("item"), dict):
            yield Opaque(entry["item"])
        elif isinstance(entry.get("text"), int):
            yield Spoken(entry["text"])
        elif entry.get("call"):
            yield Called()
