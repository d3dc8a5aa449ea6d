"""Several dialogs at once, from the list: put away, brought back, or taken along as one file."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models.functions import Now

from dialogs.models import Dialog
from dialogs.queries import export


def archive(owner: User, ids: Sequence[UUID], *, away: bool) -> int:
    """Archive one's own dialogs or bring them back; how many were. They go on as before, and a message brings one back."""
    found = Dialog.objects.filter(owner=owner, pk__in=ids, archived_at__isnull=away)
    return found.update(archived_at=Now() if away else None)


def as_json(viewer: User, ids: Sequence[UUID]) -> Iterator[str]:
    """A list of whole dialogs, in pieces; those that this person may not see are left out."""
    yield "["
    between = ""
    for dialog in Dialog.objects.for_user(viewer).filter(pk__in=ids).order_by("-active_at", "pk"):
        yield between
        yield from export.as_json(dialog)
        between = ","
    yield "]"
