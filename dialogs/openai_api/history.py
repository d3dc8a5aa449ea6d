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
    """What was said before, and what is new: a user message, or the results of the tools that were called last."""

    before: tuple[ClientMessage, ...]
    message: str = ""
    results: tuple[ClientMessage, ...] = ()

    @property
    def whole(self) -> tuple[ClientMessage, ...]:
        return self.before if self.results else (*self.before, ClientMessage("user", self.message))


def conversation_of(messages: Sequence[ClientMessage]) -> Conversation:
    """Cut before the user messages, or the tool results, at the end: the last message is one of these. Several user
    messages in a row are one, in parts."""
    role = messages[-1].role
    first = len(messages)
    while first and messages[first - 1].role == role:
        first -= 1
    before, new = tuple(messages[:first]), tuple(messages[first:])
    if role == "tool":
        return Conversation(before, results=new)
    return Conversation(before, "\n\n".join(said.text for said in new))
