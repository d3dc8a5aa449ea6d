"""A request with its conversation, and the dialogs that it may continue."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from dialogs.context.served import Served
from dialogs.extras.v1.exchanges import Exchange, Keys, exchanges_of, keys_of, without_spaces
from dialogs.extras.v1.history import ClientMessage, Conversation
from dialogs.extras.v1.likeness import Fit
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.models import Agent, ApiKey, Dialog
from dialogs.state import State

CALL_ID = re.compile(r"\bcall_[0-9]{1,18}_[0-9]{1,9}\b")  # as outcomes.generation_of_call reads it
AT_HEAD = (State.IDLE, State.FAILED, State.WAITING)
RESULT_FOLLOWS = "The user's next message tells the result."


@dataclass(frozen=True)
class Incoming:
    """A request and its conversation. What is derived from them is computed once."""

    key: ApiKey
    agent: Agent
    served: Served
    request: ChatRequest
    conversation: Conversation

    def with_(self, conversation: Conversation) -> "Incoming":
        return self if conversation == self.conversation else replace(self, conversation=conversation)

    @cached_property
    def exchanges(self) -> list[Exchange]:
        """Return the exchanges of the whole conversation, the new message included."""
        return exchanges_of(self.conversation.whole)

    @cached_property
    def keys(self) -> Keys:
        """Return the digests by which the dialog is found again."""
        return keys_of(self.exchanges)

    @cached_property
    def history(self) -> list[Exchange]:
        """Return the exchanges before what is new."""
        return self.comparable(self.conversation.before)

    @cached_property
    def calls_in_text(self) -> frozenset[str]:
        return frozenset(call for message in self.conversation.before for call in calls_in_text(message))

    def comparable(self, messages: Iterable[ClientMessage]) -> list[Exchange]:
        """Return the exchanges of messages. An answer that repeats its calls as text is these calls alone."""
        named = self.calls_in_text
        return exchanges_of(_with_calls_as_text(messages, named) if named else messages)

    @cached_property
    def system(self) -> tuple[ClientMessage, ...]:
        texts = (self.request.instructions, *(one.text for one in self.conversation.system))
        return tuple(ClientMessage("system", text) for text in texts if text)

    @cached_property
    def text(self) -> str:
        """Return all of it, without white space."""
        return without_spaces(one.text for one in (*self.system, *self.conversation.whole))

    @property
    def own_dialogs(self) -> QuerySet[Dialog]:
        """Return the dialogs of its key and end user, with whatever agent."""
        return dialogs_of(self.key.pk, self.request.end_user)

    @property
    def dialogs(self) -> QuerySet[Dialog]:
        """Return the dialogs that it may continue, newest first."""
        return self.own_dialogs.filter(agent=self.agent).order_by("-active_at")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A dialog that a request may continue, as it was when its last turn was ``last_turn_seq``.

    Its first ``shared`` exchanges are those of the history, and ``fit`` is None if the history does not continue it.
    ``again`` says that the request repeats its newest message, which has no answer, and ``is_held_up`` that it is
    closed or suspended. ``results`` answer calls that the history leaves out: they are taken from the newest message,
    or refer to it if a ``summary`` takes the place of the calls. Of the new messages the dialog holds the first
    ``held_ahead`` already, and of the newest one the first ``held_chars`` characters.
    """

    dialog_id: UUID
    last_turn_seq: int
    stored: tuple[Exchange, ...]
    shared: int
    fit: Fit | None
    again: bool = False
    results: tuple[ClientMessage, ...] = ()
    summary: ClientMessage | None = None
    is_held_up: bool = False
    held_ahead: int = 0
    held_chars: int = 0

    @property
    def rank(self) -> tuple[Any, ...]:
        """Return what compares greater for a better fit, and of two equal ones for the dialog that can go on."""
        return (self.fit.rank, not self.is_held_up) if self.fit else ()


def dialogs_of(key_id: int, end_user: str) -> QuerySet[Dialog]:
    return Dialog.objects.filter(client__key=key_id, client__end_user=end_user)


def without_background(dialogs: QuerySet[Dialog]) -> QuerySet[Dialog]:
    return dialogs.exclude(origin=Dialog.Origin.BACKGROUND)


def calls_in_text(message: ClientMessage) -> list[str]:
    """Return the ids of our calls that an answer repeats as text, as smolagents does for models without tools."""
    is_text = message.role == "assistant" and not message.calls and "call_" in message.text
    return CALL_ID.findall(message.text) if is_text else []


def _with_calls_as_text(messages: Iterable[ClientMessage], named: frozenset[str]) -> Iterator[ClientMessage]:
    for message in messages:
        ids = [*CALL_ID.findall(message.text), *(call.id for call in message.calls)]
        calls = [call for call in ids if call in named] if message.role == "assistant" else []
        yield replace(message, text=" ".join(calls)) if calls else message
