"""What a parent sees of its side dialogs."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import QuerySet

from dialogs.errors import NotFound
from dialogs.extras.teams import rules
from dialogs.extras.teams.models import SideDialog
from dialogs.models import Dialog, Reminder
from dialogs.store.change import Change
from dominds.db.prepared import Select


@Select
def side_of(dialog_id: UUID) -> QuerySet[SideDialog]:
    return SideDialog.objects.filter(pk=dialog_id)


def of_parent(parent: Dialog) -> QuerySet[SideDialog]:
    return SideDialog.objects.filter(parent=parent).select_related("dialog")


@Select
def _in_order(parent_id: UUID) -> QuerySet[SideDialog]:
    return SideDialog.objects.filter(parent=parent_id).select_related("dialog").order_by("asked_at", "pk")


def at_work(sides: QuerySet[SideDialog]) -> QuerySet[SideDialog]:
    return sides.filter(answered_at=None, ended_at=None)


def find(parent: Dialog, name: str) -> SideDialog:
    """Return the open side dialog of this name. Raises ``NotFound`` with the names that exist."""
    side = of_parent(parent).filter(name=name, ended_at=None).first()
    if side is None:
        known = ", ".join(of_parent(parent).filter(ended_at=None).values_list("name", flat=True)) or "none"
        raise NotFound(f"You have no open side dialog {name!r}. Open ones: {known}.")
    return side


def below(*ids: UUID, ended: bool = False) -> list[SideDialog]:
    """Return the side dialogs below these dialogs, at all levels; those that have ended only if asked for."""
    found: list[SideDialog] = []
    above = list(ids)
    while above:
        rows = SideDialog.objects.filter(parent__in=above)
        sides = list(rows if ended else rows.filter(ended_at=None))
        found, above = found + sides, [side.pk for side in sides]
    return found


def ended_here_or_above(side: SideDialog) -> SideDialog | None:
    """Return this side dialog, or the nearest one above it, if it has ended."""
    above: SideDialog | None = side
    while above and above.ended_at is None:
        above = side_of.first(above.parent_id) if above.level > 1 else None
    return above


def with_those_below(sides: Iterable[SideDialog]) -> list[SideDialog]:
    upper = list(sides)
    return [*upper, *below(*(side.pk for side in upper))]


def keep_in_sight(change: Change) -> None:
    """Write the list of side dialogs anew as one of the parent's reminders, which no rewrite, clear or undo takes out
    of sight. The newest of those that have reported stay in it.
    """
    rows = _in_order(change.dialog.pk)
    reported = [side for side in rows if side.answered_at or side.ended_at]
    gone = set(reported[: -rules.ENDED_SHOWN])
    text = "\n".join([rules.LIST_HEAD, *(describe(side) for side in rows if side not in gone)])
    reminder = change.dialog.reminders.filter(text__startswith=rules.LIST_HEAD).first()
    if reminder is None:
        position = change.dialog.reminders.count()
        Reminder.objects.create(dialog=change.dialog, position=position, text=text)
    elif reminder.text != text:
        Reminder.objects.filter(pk=reminder.pk).update(text=text)
    change.event("reminder", count=change.dialog.reminders.count())


def describe(side: SideDialog) -> str:
    """Return a line about a side dialog: name, agent, what it was asked, and how it stands."""
    return f"- {side.name} (agent {side.dialog.agent_id}), asked “{rules.shorten(side.task)}”: {standing(side)}"


def standing(side: SideDialog) -> str:
    """Say how a side dialog stands, and why if it ended or did not report."""
    return f"{state(side)}: {side.reason}" if side.reason else state(side)


def state(side: SideDialog) -> str:
    """Say how a side dialog stands, without a reason."""
    if side.ended_at:
        return "ended"
    if side.answered_at:
        return "did not report" if side.reason else "reported"
    waits = {"waiting": "waits for a person's answer", "suspended": "suspended until a person decides"}
    return waits.get(side.dialog.state, "at work")
