"""Reminders of a dialog, within a budget of tokens, since every request to the model carries all of them."""

from uuid import UUID

from dialogs.context.limits import thresholds_of
from dialogs.errors import Conflict, Invalid, NotFound
from dialogs.models import Dialog, Reminder
from dialogs.state import State
from dialogs.store.change import Change, open_change
from dominds.visible_text import is_blank
from remediation.budget import reminders_room
from remediation.tokens.counting import counter_for

MAX_REMINDERS = 50


def list_reminders(dialog: Dialog) -> list[tuple[Reminder, int]]:
    """Return the reminders in order, each with its estimated tokens."""
    count = counter_for(dialog.model_id).count
    return [(row, count(row.text)) for row in dialog.reminders.all()]


def count_ahead(dialog_id: UUID, text: str) -> None:
    """Count tokens, and ask for the model's window, before a change compares them, so that it finds both cached."""
    dialog = Dialog.objects.select_related("agent").filter(pk=dialog_id).first()
    if dialog is not None:
        list_reminders(dialog)
        thresholds_of(dialog)
        counter_for(dialog.model_id).count(text)


def add(dialog_id: UUID, text: str, position: int | None = None) -> Reminder:
    count_ahead(dialog_id, text)
    with open_change(dialog_id) as change:
        _check_writable(change.dialog)
        return add_within(change, text, position)


def update(dialog_id: UUID, reminder_id: int, *, text: str | None = None, position: int | None = None) -> Reminder:
    count_ahead(dialog_id, text or "")
    with open_change(dialog_id) as change:
        _check_writable(change.dialog)
        return update_within(change, reminder_id, text=text, position=position)


def delete(dialog_id: UUID, reminder_id: int) -> None:
    with open_change(dialog_id) as change:
        _check_writable(change.dialog)
        delete_within(change, reminder_id)


def add_within(change: Change, text: str, position: int | None = None) -> Reminder:
    """Add a reminder at ``position`` (0 is first, the end by default), and move those behind it."""
    rows = list(change.dialog.reminders.all())
    if len(rows) >= MAX_REMINDERS:
        raise Conflict(
            "reminders_full", f"There are {len(rows)} reminders, the most allowed. Delete or merge some first."
        )
    _check_budget(change.dialog, rows, text)
    row = Reminder.objects.create(dialog=change.dialog, position=len(rows), text=text.strip())
    place = len(rows) if position is None else max(0, min(position, len(rows)))
    rows.insert(place, row)
    _renumber(change, rows)
    return row


def update_within(
    change: Change, reminder_id: int, *, text: str | None = None, position: int | None = None
) -> Reminder:
    rows = list(change.dialog.reminders.all())
    row = _find(rows, reminder_id)
    if text is not None:
        _check_budget(change.dialog, [other for other in rows if other is not row], text)
        row.text = text.strip()
        row.save(update_fields=["text"])
    if position is not None:
        rows.remove(row)
        rows.insert(max(0, min(position, len(rows))), row)
    _renumber(change, rows)
    return row


def delete_within(change: Change, reminder_id: int) -> None:
    rows = list(change.dialog.reminders.all())
    row = _find(rows, reminder_id)
    rows.remove(row)
    row.delete()
    _renumber(change, rows)


def _find(rows: list[Reminder], reminder_id: int) -> Reminder:
    row = next((row for row in rows if row.pk == reminder_id), None)
    if row is None:
        known = ", ".join(str(row.pk) for row in rows) or "none"
        raise NotFound(f"There is no reminder {reminder_id}. Existing ones: {known}.")
    return row


def _renumber(change: Change, rows: list[Reminder]) -> None:
    for position, row in enumerate(rows):
        if row.position != position:
            row.position = position
            row.save(update_fields=["position"])
    change.event("reminder", count=len(rows))


def _check_budget(dialog: Dialog, others: list[Reminder], text: str) -> None:
    if is_blank(text):
        raise Invalid("The reminder is blank. Write what the agent should not forget.")
    count = counter_for(dialog.model_id).count
    size, others_size = count(text), sum(count(row.text) for row in others)
    most = reminders_room(thresholds_of(dialog).context_limit)
    if size + others_size > most:
        raise Conflict(
            "reminders_too_large",
            f"This reminder has est. {size:,} tokens and the others hold est. {others_size:,}; together at "
            f"most {most:,} are accepted. Shorten it, or delete one.",
        )


def _check_writable(dialog: Dialog) -> None:
    if dialog.state == State.CLOSED:
        raise Conflict("dialog_closed", "The dialog is closed; its reminders can no longer be changed.")
