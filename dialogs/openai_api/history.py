"""Conversations as clients tell them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """``arguments`` is the raw JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """One message of a conversation: ``role`` is user, assistant or tool; ``position`` its place in a stored dialog."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was said before, and what is new: a user message, the results of the tools that were called last, or both."""

    before: tuple[ClientMessage, ...]
    message: str = ""
    results: tuple[ClientMessage, ...] = ()

    @property
    def whole(self) -> tuple[ClientMessage, ...]:
        return (*self.before, *([ClientMessage("user", self.message)] if self.message else []))


def conversation_of(messages: Sequence[ClientMessage]) -> Conversation:
    """Cut before the newest user message, and before the tool results at the end. The last message is one of these; several
    user messages in a row are one, in parts."""
    last = len(messages)
    while last and messages[last - 1].role == "user":
        last -= 1
    first = last
    while first and messages[first - 1].role == "tool":
        first -= 1
    message = "\n\n".join(said.text for said in messages[last:])
    return Conversation(tuple(messages[:first]), message, tuple(messages[first:last]))
