"""Parameters that several calls share: ``after`` and ``limit`` of lists, and texts that the database can store."""

from typing import Annotated, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet, Subquery
from ninja import Schema
from pydantic import AfterValidator, Field

from dialogs.errors import Invalid
from dialogs.store.text import unstorable_reason

LARGEST = 2_147_483_647  # the greatest integer of the database
Row = TypeVar("Row", bound=Model)


def _check_text(text: str) -> str:
    if problem := unstorable_reason(text):
        raise ValueError(problem)
    return text


Text = Annotated[str, AfterValidator(_check_text)]
Limit = Annotated[int, Field(100, ge=1, le=1000)]


class Window(Schema):
    """A window of a list. ``after`` is the ``seq`` or number of the last entry that the caller has."""

    after: int = Field(0, ge=0, le=LARGEST)
    limit: Limit


class EventWindow(Window):
    """A window of events. ``of`` is the generation of the database in which ``after`` counts, from a header."""

    of: Annotated[str, Field(max_length=32)] | None = None


class UuidWindow(Schema):
    """A window of rows with ids. ``after`` is the id of the last entry that the caller has."""

    after: UUID | None = None
    limit: Limit


def number_in(text: str | None) -> int | None:
    """Return the number in a text of an address or a header, or None if it is no number or too large for any row."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 19 else None


def oldest_first(rows: QuerySet[Row], window: UuidWindow) -> QuerySet[Row]:
    """Return a window of rows by age, for tables with ``created_at`` and UUIDs, whose keys have no order in time."""
    ordered = rows.order_by("created_at", "pk")
    if window.after is None:
        return ordered[: window.limit]
    last = rows.filter(pk=window.after)
    if not last.exists():
        raise Invalid(f"after: this list has no entry {window.after}.")
    # The database compares its own value: SQLite stores moments as text, and its clock writes thousandths where Django
    # writes millionths. By the first condition the database starts within an index; the second alone would read all.
    moment = Subquery(last.values("created_at")[:1])
    newer = Q(created_at__gte=moment) & (Q(created_at__gt=moment) | Q(pk__gt=window.after))
    return ordered.filter(newer)[: window.limit]
