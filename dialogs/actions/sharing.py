"""Sharing of a dialog: with a group, whose members act in it, or by a link, whose holder reads it
(``docs/spec.md#sharing``)."""

from uuid import UUID, uuid4

from django.contrib.auth.models import Group, User
from django.core.signing import BadSignature, Signer

from dialogs import permissions
from dialogs.errors import Forbidden, Invalid, NotFound
from dialogs.extension import installed_extensions
from dialogs.models import Dialog
from dialogs.store.change import Change, open_change, poke_people

# Only a link's id is stored, by which it can be revoked. Without the signature, a copy of the database opens nothing.
_SIGNER = Signer(sep=".", salt="dialogs.link")


def share(dialog_id: UUID, name: str, by: User) -> Dialog:
    """Share a dialog with the owner's group of this ``name`` instead of any other. An empty name ends sharing."""
    group = by.groups.filter(name=name).first() if name else None
    with open_change(dialog_id) as change:
        dialog = change.dialog
        _check_may_share(dialog, by)
        if name == (dialog.group.name if dialog.group else ""):
            return dialog
        if name and group is None:
            own = ", ".join(by.groups.order_by("name").values_list("name", flat=True)) or "none"
            raise Invalid(f"You belong to no group {name[:150]!r}. Your groups: {own}.")
        poke_people(dialog)  # the former group's navigation loses the dialog
        dialog.group = group
        poke_people(dialog)
        change.act(by, f"shared this dialog with the group {group.name}" if group else "unshared this dialog")
        _tell(change, group)
    return dialog


def make_link(dialog_id: UUID, by: User) -> Dialog:
    """Make a new address at which anybody may read the dialog, in place of an earlier one."""
    return _link(dialog_id, by, uuid4(), "made a link by which anybody may read this dialog")


def revoke_link(dialog_id: UUID, by: User) -> Dialog:
    return _link(dialog_id, by, None, "took back the link to this dialog")


def _link(dialog_id: UUID, by: User, link: UUID | None, what: str) -> Dialog:
    with open_change(dialog_id) as change:
        _check_may_share(change.dialog, by)
        change.dialog.link = link
        change.act(by, what)
        _tell(change, change.dialog.group)
    return change.dialog


def _check_may_share(dialog: Dialog, by: User) -> None:
    if not permissions.may_share(by, dialog):
        raise Forbidden("Only its owner shares a dialog.")


def _tell(change: Change, group: Group | None) -> None:
    change.event("sharing", group=group.name if group else None, link=change.dialog.link is not None)
    for extension in installed_extensions():
        extension.shared(change.dialog)


def token_of(dialog: Dialog) -> str:
    """Return the signed end of the dialog's link; empty if it has none."""
    return _SIGNER.sign(dialog.link.hex) if dialog.link else ""


def dialog_of_link(token: str) -> Dialog:
    """Return the dialog that anybody may read at this link. Raises ``NotFound``."""
    try:
        link = UUID(_SIGNER.unsign(token))
    except (BadSignature, ValueError):
        raise NotFound() from None
    dialog = Dialog.objects.select_related("agent").filter(link=link).first()
    if dialog is None:
        raise NotFound()
    return dialog
