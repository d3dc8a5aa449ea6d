"""Conversations as clients tell them."""

from collections.abc import Sequence
from dataclasses import dataclass

from dialogs.actions.attachments import Attached


@dataclass(frozen=True, slots=True)
class Call:
    """``arguments`` is the raw JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """One message of a conversation: ``role`` is user, assistant or tool; ``position`` its place in a stored dialog.
    ``digests`` are those of its files, which one that is told has with their contents."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    position: int = 0
    digests: tuple[str, ...] = ()
    attached: tuple[Attached, ...] = ()

    @property
    def spoken(self) -> str:
        """What both sides know of a user's message, its files by their digests."""
        return " ".join((self.text, *self.digests))


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was said before, and what is new: a user message, the results of the tools that were called last, or both.
    ``ahead`` are new messages before that one: the user's, or what was said beside the dialog."""

    before: tuple[ClientMessage, ...]
    message: str = ""
    results: tuple[ClientMessage, ...] = ()
    ahead: tuple[ClientMessage, ...] = ()
    attached: tuple[Attached, ...] = ()

    @property
    def has_message(self) -> bool:
        return bool(self.message or self.attached)

    @property
    def whole(self) -> tuple[ClientMessage, ...]:
        newest = ClientMessage("user", self.message, digests=tuple(file.sha256 for file in self.attached))
        return (*self.before, *self.ahead, *([newest] if self.has_message else []))


def conversation_of(messages: Sequence[ClientMessage]) -> Conversation:
    """Cut before the user messages, and before the tool results, at the end. The last message is one of these."""
    last = len(messages)
    while last and messages[last - 1].role == "user":
        last -= 1
    first = last
    while first and messages[first - 1].role == "tool":
        first -= 1
    *ahead, newest = messages[last:] or [ClientMessage("user", "")]
    return Conversation(
        tuple(messages[:first]), newest.text, tuple(messages[first:last]), tuple(ahead), newest.attached
    )
