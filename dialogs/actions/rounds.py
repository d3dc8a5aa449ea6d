"""Starting new rounds, suspending, and what a dialog records of its context's troubles. Each inside the caller's change."""

from dialogs.actions import webhook
from dialogs.context import package_draft
from dialogs.context.limits import health_of
from dialogs.errors import Invalid
from dialogs.models import Dialog, Question, Round, Turn
from dialogs.store import lease
from dialogs.store.change import Change
from remediation.decisions import Suspend
from remediation.guidance import MAX_FORCED_CLEARS, Counters, after_clear
from remediation.models import ContextEvent


def clear_within(change: Change, package: str, *, cause: str, unproven: bool = False) -> None:
    """Begin a round with this re-entry package. Reminders stay; unanswered messages come along, word for word (R6).

    ``unproven``: the next report tells whether it helped, and counts against the episode if it did not.
    """
    dialog = change.dialog
    carried = [dialog.answering_seq] if dialog.answering_seq is not None else []
    dialog.round_number += 1
    Round.objects.create(
        dialog=dialog, number=dialog.round_number, cause=cause, package=package.strip(), carried=carried
    )
    counters = after_clear(Counters(failed_clears=dialog.failed_clears), forced=unproven)
    dialog.kept_since_guidance, dialog.guided_generations = counters.kept_since_guidance, counters.guided_generations
    dialog.failed_clears, dialog.clear_unproven = counters.failed_clears, counters.clear_unproven
    forget_report(dialog)
    dialog.continuing = cause != Round.Cause.PERSON and not carried  # after a person's, only if a message is owed
    change.event("round", number=dialog.round_number, cause=cause)
    change.event("health", **health_of(dialog))


def checked_package(text: str) -> str:
    """A re-entry package as a person wrote it. Raises ``Invalid`` when it is blank."""
    if not text.strip():
        raise Invalid("reminder_content is blank. Write the re-entry package that the agent is to go on from.")
    return text.strip()


def forget_report(dialog: Dialog) -> None:
    """After a rewrite or clear the old report says nothing about what the model sees now (R3)."""
    dialog.report = Dialog.Report.AWAITING
    dialog.prompt_tokens = dialog.completion_tokens = dialog.total_tokens = None
    dialog.overflowed = False
    dialog.history_version += 1


def suspend_within(change: Change, decision: Suspend, about: int | None = None) -> Question:
    """Open the critical Q4H and stop generating until a person takes one of its exits (A7, R7).

    ``about`` is the message that was too long, where it is not the one that still waits.
    """
    dialog = change.dialog
    question = Question.objects.create(
        dialog=dialog,
        kind=decision.kind,
        text=_why(dialog, decision, about),
        clear_episode=dialog.clear_episode,
        draft=package_draft.draft_package(dialog),
    )
    if dialog.answering_seq is not None:
        change.mark(dialog.answering_seq, Turn.Status.SUSPENDED)
    lease.release(change)
    announce(change, question)
    return question


def announce(change: Change, question: Question) -> None:
    change.event("question", id=str(question.pk), kind=question.kind, state=question.state)
    webhook.notify(question)


def _why(dialog: Dialog, decision: Suspend, about: int | None) -> str:
    lines = [decision.reason]
    if dialog.prompt_tokens is not None:
        lines.append(f"Last reported prompt: {dialog.prompt_tokens:,} tokens.")
    seq = about or dialog.answering_seq
    message = dialog.turns.filter(seq=seq).first() if seq is not None else None
    if message is None:
        return " ".join(lines)
    size = f"{len(message.text):,} characters"
    if message.seq == dialog.answering_seq:
        lines.append(f"Message {message.seq} ({size}) still waits for its answer.")
    if dialog.failed_clears >= MAX_FORCED_CLEARS and dialog.round_number > message.round_number:
        lines.append(
            f"Message {message.seq} alone ({size}) does not fit: the context stayed critical in a fresh round with it."
        )
    return " ".join(lines)


def record_context_error(
    dialog: Dialog, code: str, message: str, est: int | None = None, limit: int | None = None
) -> None:
    ContextEvent.objects.create(dialog=dialog, code=code, message=message, est_tokens=est, limit=limit)
