"""Side dialogs follow their root: they are shared, deleted, brought back and erased with it.

Their rows are changed after the commit of the root's change, since rows are locked from below to above. What a lost
process did not do is made up for once an hour.
"""

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from dialogs.extras.teams import side_dialogs, sight
from dialogs.extras.teams.models import SideDialog, TaskRevision
from dialogs.models import Dialog
from dialogs.store.db_retry import leaving_what_is_locked


def follow_sharing(dialog: Dialog) -> None:
    follow_soon([dialog.pk])


def follow_deletion(ids: Collection[UUID]) -> None:
    """End the open side dialogs below deleted dialogs, and remove all side dialogs with their root."""
    side_dialogs.end(sight.below(*ids), "the dialog above was deleted")
    follow_soon(ids)


def follow_soon(ids: Collection[UUID]) -> None:
    transaction.on_commit(lambda: _follow(SideDialog.objects.filter(root__in=ids)), robust=True)


def follow_all() -> None:
    """Make up for what a lost process did not do."""
    differs = (
        ~Q(dialog__group=F("root__group"))
        | Q(dialog__group__isnull=True, root__group__isnull=False)
        | Q(dialog__group__isnull=False, root__group__isnull=True)
        | Q(dialog__removed_at__isnull=True, root__removed_at__isnull=False)
        | Q(dialog__removed_at__isnull=False, dialog__expires_at__isnull=False, root__removed_at__isnull=True)
    )
    _follow(SideDialog.objects.filter(differs))


def _follow(sides: QuerySet[SideDialog]) -> None:
    """Give side dialogs the group and the removal of their root. What they owe is done first."""
    for side in sides.select_related("root"):
        with leaving_what_is_locked(side_dialog=str(side.pk)):
            _follow_root(side)


def _follow_root(side: SideDialog) -> None:
    if side.owes:
        side_dialogs.deliver(side.pk)
    root = side.root
    is_erased = root.removed_at is not None and root.expires_at is None
    expires_at = Now() if is_erased else root.expires_at
    rows = Dialog._base_manager.filter(pk=side.pk).exclude(removed_at__isnull=False, expires_at__isnull=True)
    rows.update(group=root.group_id, removed_at=root.removed_at, expires_at=expires_at)


def follow_erasure(dialog_id: UUID) -> None:
    """Erase the name and the task of a removed side dialog, or a removed root's task document. Side dialogs of a
    removed root are removed as well.
    """
    SideDialog.objects.filter(pk=dialog_id).update(name=str(dialog_id), task="", reason="")
    TaskRevision.objects.filter(root=dialog_id).delete()
    follow_soon([dialog_id])
