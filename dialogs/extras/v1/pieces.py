"""The pieces in which an answer reaches its program, whatever the protocol."""

from dataclasses import dataclass, field
from typing import Any

from dialogs.extras.v1.health import Report
from dialogs.extras.v1.history import Call


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The end of a text in which the model refuses, as its provider tells it apart."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice that is no part of the text."""

    text: str


@dataclass(frozen=True, slots=True)
class KeepAlive:
    pass


@dataclass(frozen=True, slots=True)
class Ended:
    """``usage`` is null when the model call that ended this answer reported none. ``fields`` is what else its provider
    said: annotations, and fields of the whole answer."""

    finish_reason: str
    calls: tuple[Call, ...]
    usage: dict[str, Any] | None
    health: Report
    fields: dict[str, Any] = field(default_factory=dict)


Piece = Text | Refusal | Reasoning | Notice | KeepAlive | Ended
