"""Cursors of programs. They are numbers of one database; after a restore from a backup they mean something else."""

from uuid import UUID

from django.db.models import QuerySet, Subquery

from dialogs.errors import Conflict
from dialogs.models import Dialog, SiteSettings

HEADER = "X-Dominds-Generation"
RESTORED = (
    "The database was restored from a backup after this cursor was given, and its numbers count anew since. "
    "Read again from the beginning, with after=0."
)


def standing_of(dialogs: QuerySet[Dialog], dialog_id: UUID) -> tuple[int, str] | None:
    """Return the number of a dialog's newest event and the generation of the database, if the dialog is among these."""
    generation = Subquery(SiteSettings.objects.values("generation")[:1])
    row = dialogs.filter(pk=dialog_id).values_list("last_event_seq", generation).first()
    return None if row is None else (row[0], row[1] or "")


def is_stale(after: int, newest: int, of: str | None, generation: str) -> bool:
    """Check whether a cursor belongs to another database: it is beyond the newest entry, or it came with another
    generation. ``of`` is the generation that it came with, None if it names none.
    """
    return after > newest or of not in (None, generation)


def refuse_stale(after: int, newest: int, of: str | None = None, generation: str = "") -> None:
    """Raise ``Conflict`` for a cursor that belongs to another database."""
    if is_stale(after, newest, of, generation):
        raise Conflict("resync", RESTORED)
