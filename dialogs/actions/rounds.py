"""New rounds, forgotten reports and recorded context errors, each inside the caller's change."""

from dialogs.context.counters import counters_of, set_counters
from dialogs.context.limits import health_of
from dialogs.errors import Invalid
from dialogs.models import Dialog, Round
from dialogs.store.change import Change
from dominds.visible_text import is_blank
from remediation.guidance import after_clear
from remediation.models import ContextEvent


def clear_within(change: Change, package: str, *, cause: str, unproven: bool = False) -> None:
    """Begin a round with this re-entry package. Reminders stay, and unanswered messages come along word for word.

    ``unproven``: the next report decides whether the clear has helped. If not, it counts as a failed clear of the
    episode.
    """
    dialog = change.dialog
    carried = [dialog.answering_seq] if dialog.answering_seq is not None else []
    dialog.round_number += 1
    Round.objects.create(
        dialog=dialog, number=dialog.round_number, cause=cause, package=package.strip(), carried=carried
    )
    set_counters(dialog, after_clear(counters_of(dialog), forced=unproven))
    forget_report(dialog)
    # After a person's clear the agent generates only if a message waits for its answer.
    dialog.continuing = cause != Round.Cause.PERSON and not carried
    change.event("round", number=dialog.round_number, cause=cause)
    change.event("health", **health_of(dialog))


def checked_package(text: str) -> str:
    """Return a person's re-entry package. Raises ``Invalid`` for a blank one."""
    if is_blank(text):
        raise Invalid("reminder_content is blank. Write the re-entry package that the agent is to go on from.")
    return text.strip()


def forget_report(dialog: Dialog) -> None:
    """Forget the last report, which does not describe the context after a rewrite or clear."""
    dialog.report = Dialog.Report.AWAITING
    dialog.prompt_tokens = dialog.completion_tokens = dialog.total_tokens = None
    dialog.overflowed = False
    dialog.statements = []
    dialog.beginning = dialog.beginning and "rewritten"  # even if an undo brings the same beginning back
    dialog.history_version += 1


def record_context_error(
    dialog: Dialog, code: str, message: str, est: int | None = None, limit: int | None = None
) -> None:
    ContextEvent.objects.create(dialog=dialog, code=code, message=message, est_tokens=est, limit=limit)
