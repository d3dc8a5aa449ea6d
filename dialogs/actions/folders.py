"""Actions of a person on one or several of their dialogs: those that are ticked, or a whole folder.

Each action can be undone for an hour, by a signed token in the page that confirms it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.db.models import Case, F, QuerySet, When
from django.db.models.functions import Coalesce, Least, Now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dialogs.actions import sharing
from dialogs.context.lineage import FORK, lineage
from dialogs.errors import Conflict, Forbidden, Invalid, NotFound
from dialogs.extension import installed_extensions
from dialogs.models import Dialog
from dialogs.state import AT_REST
from dialogs.store.text import NUL

LONGEST_FOLDER = 60  # characters
UNDO_SECONDS = 3600
DELETED_DAYS = 30  # days in which a deleted dialog can be brought back
MOST_SHARED = 300  # each dialog takes a change of its own, of which its pages are told
_SALT = "dialogs.undo"


@dataclass(frozen=True, slots=True)
class Done:
    """The report of an action in words, and the token that undoes it, which is empty if nothing changed."""

    sentence: str
    undo: str = field(default="", repr=False)


def dialogs_in(owner: User, folder: str) -> QuerySet[Dialog]:
    """Return the dialogs of a folder that are not archived, as its page shows them."""
    return Dialog.objects.filter(owner=owner, folder=folder, archived_at=None)


def pin(dialog: Dialog, by: User, *, pinned: bool) -> None:
    """Keep a dialog at the top of its owner's navigation, or stop doing so."""
    if dialog.owner_id != by.pk:
        raise Forbidden("Only its owner pins a dialog.")
    Dialog.objects.filter(pk=dialog.pk).update(pinned_at=Now() if pinned else None)


def move(dialog: Dialog, by: User, folder: str) -> None:
    """Move a dialog into a folder of its owner, or out of any by an empty name. A folder exists while it holds one."""
    if dialog.owner_id != by.pk:
        raise Forbidden("Only its owner puts a dialog into a folder.")
    Dialog.objects.filter(pk=dialog.pk).update(folder=folder_name(folder) or None)


def folder_name(typed: str) -> str:
    """Return a folder's name in stored form. Raises ``Invalid`` if it is too long."""
    name = " ".join(typed.replace(NUL, "").split())
    if len(name) > LONGEST_FOLDER:
        raise Invalid(
            f"The folder's name has {len(name):,} characters; at most {LONGEST_FOLDER} are allowed. Shorten it."
        )
    return name


def archive(owner: User, ids: Sequence[UUID], *, away: bool) -> Done:
    """Archive the dialogs among ``ids`` that are the owner's, or bring them back from the archive."""
    moved = _set_archived(owner, ids, away=away)
    sentence = (
        ngettext(
            "{number:,} dialog archived: found again under the state “archived”.",
            "{number:,} dialogs archived: found again under the state “archived”.",
            len(moved),
        )
        if away
        else ngettext("{number:,} dialog back in the list.", "{number:,} dialogs back in the list.", len(moved))
    )
    return Done(sentence.format(number=len(moved)), _sign(owner, "archive", away, {"": moved}))


def _set_archived(owner: User, ids: Sequence[UUID], *, away: bool) -> list[UUID]:
    """Archive the owner's dialogs or bring them back, and return the ids of those that changed."""
    rows = Dialog.objects.filter(owner=owner, pk__in=ids, archived_at__isnull=away)
    moved = list(rows.values_list("pk", flat=True))
    rows.filter(pk__in=moved).update(archived_at=Now() if away else None)
    return moved


def delete(owner: User, ids: Sequence[UUID]) -> Done:
    """Delete the dialogs among ``ids`` that are the owner's, with the versions that they replaced.

    Nobody sees them any more, and after ``DELETED_DAYS`` they are removed. Dialogs in which something runs, or waits
    for a person, stay.
    """
    removal = Now() + timedelta(days=DELETED_DAYS)
    with transaction.atomic():
        resting = Dialog.objects.filter(owner=owner, state__in=AT_REST, lease_owner="").select_for_update(of=("self",))
        chosen = list(resting.filter(pk__in=ids))
        replaced = resting.filter(pk__in=_replaced_by(chosen))
        gone = {dialog.pk for dialog in (*chosen, *replaced)}
        expires_at = Least(Coalesce("expires_at", removal), removal)  # a program's dialog may expire earlier
        Dialog.objects.filter(pk__in=gone).update(removed_at=Now(), expires_at=expires_at, source="")
        for extension in installed_extensions():
            extension.dialogs_deleted(gone)
    sentence = ngettext(
        "{number:,} dialog deleted. For {days} days the filter “deleted” of the list shows it.",
        "{number:,} dialogs deleted. For {days} days the filter “deleted” of the list shows them.",
        len(chosen),
    ).format(number=len(chosen), days=DELETED_DAYS)
    if stayed := Dialog.objects.filter(owner=owner, pk__in=ids).count():
        sentence += " " + ngettext(
            "{number:,} stayed: something runs or waits for you in it. Stop or close it first.",
            "{number:,} stayed: something runs or waits for you in them. Stop or close them first.",
            stayed,
        ).format(number=stayed)
    return Done(sentence, _sign(owner, "delete", True, {"": list(gone)}))


def delete_one(dialog: Dialog, by: User) -> None:
    """Delete a dialog. Raises ``Forbidden`` except for its owner, ``Conflict`` while it runs or waits for a person."""
    if dialog.owner_id != by.pk:
        raise Forbidden("Only its owner deletes a dialog.")
    delete(by, [dialog.pk])
    if Dialog.objects.filter(pk=dialog.pk).exists():
        raise Conflict("dialog_busy", f"The dialog is {dialog.state}. Stop or close it, then delete it.")


def _replaced_by(chosen: Iterable[Dialog]) -> set[UUID]:
    """Return the archived dialogs that these replaced in the list, as branches with another answer or wording."""
    replaced: set[UUID] = set()
    for dialog in chosen:
        for kin in lineage(dialog)[1:]:
            if kin.archived_at is None or kin.owner_id != dialog.owner_id:
                break
            siblings = Dialog.objects.filter(forked_from=kin, archived_at__isnull=False).exclude(title__endswith=FORK)
            replaced |= {kin.pk, *siblings.values_list("pk", flat=True)}
    return replaced


def bring_back(owner: User, ids: Sequence[UUID]) -> Done:
    """Bring deleted dialogs back. A person's dialog then stays for good, and a program's still expires."""
    kept = Case(When(origin=Dialog.Origin.PERSON, then=None), default=F("expires_at"))
    with transaction.atomic():
        back = Dialog.deleted.filter(owner=owner, pk__in=ids).update(removed_at=None, expires_at=kept)
        for extension in installed_extensions():
            extension.dialogs_restored(ids)
    return Done(ngettext("{number:,} dialog is back.", "{number:,} dialogs are back.", back).format(number=back))


def archive_folder(owner: User, folder: str) -> Done:
    return archive(owner, _ids(dialogs_in(owner, folder), folder), away=True)


def rename(owner: User, folder: str, name: str) -> Done:
    """Rename a folder, archived dialogs included. Two folders are never merged, since nobody could separate them."""
    wanted = folder_name(name)
    if not wanted:
        raise Invalid("The new name is blank. Write one, or remove the folder.")
    if wanted != folder and Dialog.objects.filter(owner=owner, folder=wanted).exists():
        raise Invalid(f"You have a folder “{wanted}” already. Choose another name.")
    return Done(_("The folder is called “{name}” now.").format(name=wanted), _move_dialogs(owner, folder, wanted))


def remove(owner: User, folder: str) -> Done:
    undo = _move_dialogs(owner, folder, None)
    return Done(_("The folder “{name}” is gone; its dialogs are in none now.").format(name=folder), undo)


@transaction.atomic
def _move_dialogs(owner: User, folder: str, to: str | None) -> str:
    rows = Dialog.objects.filter(owner=owner, folder=folder)
    ids = _ids(rows, folder)
    rows.filter(pk__in=ids).update(folder=to)
    return _sign(owner, "move", to, {folder: ids})


def share(owner: User, folder: str, group: str) -> Done:
    """Share a folder's dialogs with a group of the owner's, or with nobody by an empty name."""
    rows = dialogs_in(owner, folder)
    ids = _ids(rows, folder)
    if len(ids) > MOST_SHARED:
        raise Invalid(f"“{folder}” holds {len(ids):,} dialogs; at most {MOST_SHARED} are shared at once.")
    before: defaultdict[str, list[UUID]] = defaultdict(list)
    for pk, name in rows.annotate(group_name=F("group__name")).values_list("pk", "group_name"):
        if (name or "") != group:
            sharing.share(pk, group, owner)
            before[name or ""].append(pk)
    sentence = (
        ngettext("{number:,} dialog shared with {group}.", "{number:,} dialogs shared with {group}.", len(ids))
        if group
        else ngettext("{number:,} dialog seen by you alone now.", "{number:,} dialogs seen by you alone now.", len(ids))
    )
    return Done(sentence.format(number=len(ids), group=group), _sign(owner, "share", group, before))


def undo(by: User, token: str) -> str:
    """Undo an action for dialogs that nobody has changed since, and return a sentence about it. Raises ``Conflict``."""
    try:
        act = signing.loads(token, salt=_SALT, max_age=UNDO_SECONDS)
    except signing.BadSignature:
        raise Conflict("too_late", "This can be undone for an hour, and no longer. Nothing was changed.") from None
    if act["by"] != by.pk:
        raise NotFound()
    back = sum(_put_back(by, act["act"], act["to"], before, map(UUID, ids)) for before, ids in act["before"].items())
    return ngettext("Undone, for {number:,} dialog.", "Undone, for {number:,} dialogs.", back).format(number=back)


def _put_back(by: User, act: str, now: Any, before: str, ids: Iterable[UUID]) -> int:
    named = list(ids)
    rows = Dialog.objects.filter(owner=by, pk__in=named)
    match act:
        case "delete":
            bring_back(by, named)
            return rows.count()
        case "archive":
            return len(_set_archived(by, list(rows.values_list("pk", flat=True)), away=not now))
        case "move":
            return rows.filter(folder=now).update(folder=before)
    still = rows.filter(group__name=now or None).values_list("pk", flat=True)
    return len([sharing.share(pk, before, by) for pk in still])


def _sign(by: User, act: str, now: Any, before: dict[str, list[UUID]]) -> str:
    """Return a token that undoes an action. ``before`` maps former values to dialogs, and ``now`` is the value that the
    action set: only dialogs that still have it are put back.
    """
    changed = {name: [pk.hex for pk in ids] for name, ids in before.items() if ids}
    content = {"by": by.pk, "act": act, "to": now, "before": changed}
    return signing.dumps(content, salt=_SALT, compress=True) if changed else ""


def _ids(rows: QuerySet[Dialog], folder: str) -> list[UUID]:
    """Return the ids of these dialogs of a folder. Raises ``NotFound`` if there are none."""
    ids = list(rows.values_list("pk", flat=True))
    if not ids:
        raise NotFound(f"You have no folder “{folder[:60]}”, or nothing is left in it.")
    return ids
