"""Reminders in the conversation: they are stated once, and again behind newer turns after they have changed.

No message that was sent before changes, so provider caches and signed reasoning stay valid. The statements are stored
in the dialog's row, and start over with each epoch of its context.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from dialogs.context.client import SystemMessage
from dialogs.models import Dialog, Reminder
from dominds.db.prepared import Select
from dominds.llm.messages import Message, Role

FIRST = "[Your reminders; update_reminder and delete_reminder take these ids]"
AGAIN = "[Runtime: your reminders changed. These are all that hold now; those stated before do not]"
NONE_LEFT = "[Runtime: your reminders were deleted. None holds now]"


@dataclass(frozen=True, slots=True)
class Statement:
    """A message that states the reminders, one per line of ``lines``, behind the first ``at`` messages of the view."""

    at: int
    lines: str
    is_first: bool = True

    @property
    def message(self) -> Message:
        if not self.lines:
            return Message(Role.USER, NONE_LEFT)
        return Message(Role.USER, f"{FIRST if self.is_first else AGAIN}\n{self.lines}")


Statements = tuple[Statement, ...]


def statements_of(dialog: Dialog, messages: int, *, is_new_epoch: bool = False) -> Statements:
    """Return this epoch's statements, with another one behind ``messages`` messages if the reminders have changed."""
    stored: list[list[Any]] = [] if is_new_epoch else dialog.statements
    stated = tuple(Statement(at, lines, not number) for number, (at, lines) in enumerate(stored))
    lines = lines_of(dialog)
    if lines == (stated[-1].lines if stated else ""):
        return stated
    return (*stated, Statement(messages, lines, not stated))


def as_rows(statements: Statements) -> list[list[Any]]:
    return [[statement.at, statement.lines] for statement in statements]


def in_order(system: Sequence[SystemMessage], statements: Statements) -> list[SystemMessage | Statement]:
    """Sort the client's system messages and the statements by place. In one place the client's come first."""
    return sorted((*system, *statements), key=attrgetter("at"))


def interleave(messages: Sequence[Message], between: Sequence[SystemMessage | Statement]) -> tuple[Message, ...]:
    """Return a view's messages with those ``between`` them in their places."""
    result, start = list[Message](), 0
    for item in between:
        result += (*messages[start : item.at], item.message)
        start = max(start, item.at)
    return (*result, *messages[start:])


def lines_of(dialog: Dialog) -> str:
    """Return the present reminders, one per line."""
    reminders = _reminders(dialog.pk) if dialog.has_reminders else []
    return "\n".join(f"[reminder {pk}] {text}" for pk, text in reminders)


@Select
def _reminders(dialog_id: UUID) -> QuerySet[Reminder, Any]:
    return Reminder.objects.filter(dialog_id=dialog_id).values_list("pk", "text")
