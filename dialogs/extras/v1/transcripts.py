"""Dialogs as their clients saw them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any
from uuid import UUID

import orjson
from django.db.models import F, Q, QuerySet

from dialogs.actions.attachments import digests, text_typed
from dialogs.actions.questions import ASK_HUMAN
from dialogs.context.units import is_cut_off
from dialogs.extras.v1.exchanges import Exchange, exchanges_of
from dialogs.extras.v1.history import Call, ClientMessage
from dialogs.models import Dialog, Turn
from dialogs.runtime.outcomes import generation_of_call
from dominds.db.prepared import Select

CANDIDATES = 8  # how many of the newest dialogs are compared
LAST_TURNS = 8  # how many turns of a dialog are read to find its newest exchange
KEPT_TURNS = 64  # of a dialog, more than what programs keep word for word behind a summary (LangChain 20 messages)
SHORTEST_QUOTE = 20  # bytes of UTF-8 without white space: seven characters of Chinese say as much as twenty of English
QUOTED_CHARS = 120  # programs cut what they quote
ANSWER_TO_AGENT = Q(tool_name=ASK_HUMAN, status=Turn.Status.OK)
SPOKEN = Q(role__in=[Turn.Role.USER, Turn.Role.ASSISTANT]) | ANSWER_TO_AGENT


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest messages of a dialog, and their exchanges."""

    dialog_id: UUID
    exchanges: list[Exchange]
    messages: list[ClientMessage]

    def is_quoted_in(self, text: str) -> bool:
        """Check whether a text without white space holds the last exchange: the user's words, and answer or calls."""
        if not self.exchanges or _quotable(self.exchanges[-1].message) not in text:
            return False
        answer = self.exchanges[-1].answered[:QUOTED_CHARS]
        return (_is_long(answer) and answer in text) or self._are_calls_quoted_in(text)

    def is_begun_in(self, text: str) -> bool:
        """Check whether a text without white space holds the user's newest words, a call, or earlier words and answers
        in a row: programs that keep the newest messages as they are quote those before them.
        """
        newest = _quotable(self.exchanges[-1].message) if self.exchanges else ""
        if _is_long(newest) and newest in text:
            return True
        if any(generation_of_call(call.id) and call.id in text for one in self.messages for call in one.calls):
            return True
        said, answered, at = "", "", 0
        for one in self.messages:
            part = _quotable(one.text)
            if (found := text.find(part, at)) < 0:
                said, answered, found = "", "", text.find(part)
            said, answered = (said + part, answered) if one.role == "user" else (said, answered + part)
            if found < 0:
                said, answered, at = "", "", 0
            elif said and _is_long(answered):
                return True
            else:
                at = found + len(part)
        return False

    def _are_calls_quoted_in(self, text: str) -> bool:
        """Check for each call by its name and its arguments."""
        parts = [part for call in self.messages[-1].calls for part in (call.name, *arguments_of(call))]
        quoted = [_quotable(part) for part in parts]
        return _is_long("".join(quoted)) and all(part in text for part in quoted)


def _is_long(quote: str) -> bool:
    return len(quote.encode()) >= SHORTEST_QUOTE


def _quotable(text: str) -> str:
    return "".join(text.split())[:QUOTED_CHARS]


def newest_of(dialogs: QuerySet[Dialog], last_turns: int = LAST_TURNS) -> Iterator[Newest]:
    """Yield the newest exchanges of each of the newest dialogs among these."""
    turns = Turn.objects.filter(
        SPOKEN,
        dialog__in=dialogs.order_by("-active_at").values("pk")[:CANDIDATES],
        position__gt=F("dialog__last_position") - last_turns,
    )
    for dialog_id, turns_of_one in groupby(turns.order_by("dialog", "position"), lambda turn: turn.dialog_id):
        messages = list(_messages_as_spoken(turns_of_one))
        yield Newest(dialog_id, exchanges_of(messages), messages)


def messages_in(dialog_id: UUID) -> Iterator[ClientMessage]:
    return _messages_as_spoken(_turns_in(dialog_id))


@Select
def _turns_in(dialog_id: UUID) -> QuerySet[Turn, Any]:
    turns = Turn.objects.filter(SPOKEN, dialog=dialog_id, position__isnull=False).order_by("position")
    return turns.values_list("role", "status", "position", "text", "attachments", "tool_calls", named=True)


def _messages_as_spoken(turns: Iterable[Any]) -> Iterator[ClientMessage]:
    """Yield a dialog's messages as its client saw them: a question to a person as text, its reply as the user's, and an
    answer that was cut off only where no other took its place.
    """
    for turn, behind in pairwise((*turns, None)):
        if is_cut_off(turn) and behind is not None and behind.role == Turn.Role.ASSISTANT:
            continue
        if turn.role == Turn.Role.ASSISTANT:
            text = turn.text + "".join(f"\n\n{question}" for question in questions_in(turn))
            yield ClientMessage("assistant", text, calls_of(turn), position=turn.position or 0)
        else:
            typed, files = text_typed(turn.text, turn.attachments), digests(turn.attachments)
            yield ClientMessage("user", typed, position=turn.position or 0, digests=files)


def calls_of(turn: Any) -> tuple[Call, ...]:
    return tuple(Call(call["id"], call["name"], call["arguments"]) for call in turn.tool_calls or ())


def questions_in(turn: Any) -> Iterator[str]:
    """Return the questions to a person with which an answer, a turn or what was read of one, ended."""
    for call in turn.tool_calls or ():
        if call["name"] == ASK_HUMAN:
            try:
                yield str(orjson.loads(call["arguments"])["question"])
            except (ValueError, KeyError, TypeError):
                continue  # it was refused as malformed, so nobody was asked


def arguments_of(call: Call) -> list[str]:
    """Return the arguments that are strings."""
    try:
        arguments = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        return []
    given = arguments.values() if isinstance(arguments, dict) else ()
    return [value for value in given if isinstance(value, str)]
