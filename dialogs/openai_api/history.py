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
    """What was said before, and what is new: a user message, the results of the tools that were called last, or both.
    ``ahead`` are new messages of the user's before that one."""

    before: tuple[ClientMessage, ...]
    message: str = ""
    results: tuple[ClientMessage, ...] = ()
    ahead: tuple[ClientMessage, ...] = ()

    @property
    def whole(self) -> tuple[ClientMessage, ...]:
        return (*self.before, *self.ahead, *([ClientMessage("user", self.message)] if self.message else []))


def conversation_of(messages: Sequence[ClientMessage]) -> Conversation:
    """Cut before the user messages, and before the tool results, at the end. The last message is one of these."""
    last = len(messages)
    while last and messages[last - 1].role == "user":
        last -= 1
    first = last
    while first and messages[first - 1].role == "tool":
        first -= 1
    *ahead, message = messages[last:] or [ClientMessage("user", "")]
    return Conversation(tuple(messages[:first]), message.text, tuple(messages[first:last]), tuple(ahead))
