"""Conversations as a client tells them, and when two of them are the same: a rule on values."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import orjson

from dialogs.openai_api.notices import without_notices


@dataclass(frozen=True, slots=True)
class Call:
    """``arguments`` is the raw JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """One message of a conversation: ``role`` is user, assistant or tool."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was said before, and what is new: a user message, or the results of the tools that were called last."""

    before: tuple[ClientMessage, ...]
    message: str = ""
    results: tuple[ClientMessage, ...] = ()

    @property
    def digest(self) -> str:
        """Of the user's messages up to now: finds the dialogs that may be this one."""
        return digest(spoken_by_user([*self.before, *([] if self.results else [ClientMessage("user", self.message)])]))

    @property
    def digest_before(self) -> str:
        return digest(spoken_by_user(self.before))


def conversation_of(messages: Sequence[ClientMessage]) -> Conversation:
    """Cut at the newest user message, or before the tool results at the end. The last message is one of these."""
    if messages[-1].role == "user":
        return Conversation(tuple(messages[:-1]), messages[-1].text)
    first = len(messages)
    while first and messages[first - 1].role == "tool":
        first -= 1
    return Conversation(tuple(messages[:first]), results=tuple(messages[first:]))


def spoken_by_user(messages: Iterable[ClientMessage]) -> list[str]:
    return [said.text.strip() for said in messages if said.role == "user"]


def digest(texts: Sequence[str]) -> str:
    return hashlib.sha256(orjson.dumps(texts)).hexdigest()


Entry = tuple[str, str, str]  # role, id of the tool call, text


def visible(messages: Iterable[ClientMessage], call_ids: Collection[str]) -> list[Entry]:
    """What both sides can see of a conversation. An answer is one text, however many model calls and notices it had; its
    white space does not count, since clients trim and join differently. Of tool results only those of ``call_ids``.
    """
    entries: list[Entry] = []
    for said in messages:
        match said.role:
            case "user":
                entries.append(("user", "", said.text.strip()))
            case "tool" if said.call_id in call_ids:
                entries.append(("tool", said.call_id, said.text))
            case "assistant" if text := "".join(without_notices(said.text).split()):
                if entries and entries[-1][0] == "assistant":
                    text = entries.pop()[2] + text
                entries.append(("assistant", "", text))
    return entries


def same(told: Sequence[ClientMessage], stored: Sequence[ClientMessage]) -> bool:
    """Whether a client tells exactly what is stored, up to its head."""
    call_ids = {said.call_id for said in told if said.role == "tool"}
    return visible(told, call_ids) == visible(stored, call_ids)
