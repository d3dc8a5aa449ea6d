"""Suspension of a dialog by a question of the runtime, and what the question says."""

from dialogs.actions.question_rows import open_question
from dialogs.models import Dialog, Question, Turn
from dialogs.store import lease
from dialogs.store.change import Change
from dialogs.store.text import as_sentence
from remediation.decisions import Suspend
from remediation.guidance import MAX_FORCED_CLEARS


def suspend_within(change: Change, decision: Suspend, package: str = "", about: int | None = None) -> Question:
    """Stop generating until a person takes an exit of the question that this opens.

    ``package`` is the drafted re-entry package that a critical question offers. ``about`` is the message that was too
    long, if it is not the one that still waits for its answer.
    """
    dialog = change.dialog
    is_critical = decision.kind == Question.Kind.CRITICAL
    evidence = {"clear_episode": dialog.clear_episode, "draft": package} if is_critical else {}
    question = open_question(change, decision.kind, _text(dialog, decision, about), **evidence)
    if dialog.answering_seq is not None:
        change.mark(dialog.answering_seq, Turn.Status.SUSPENDED)
    lease.release(change)
    return question


def resume(change: Change) -> None:
    """Answer the suspended message again, if there is one."""
    dialog = change.dialog
    if dialog.answering_seq is not None:
        change.mark(dialog.answering_seq, Turn.Status.ANSWERING)
    dialog.tries = dialog.generations_for_message = 0
    dialog.repeats = {}


def _text(dialog: Dialog, decision: Suspend, about: int | None) -> str:
    lines = [as_sentence(decision.reason)]
    if dialog.prompt_tokens is not None and decision.kind == Question.Kind.CRITICAL:
        lines.append(f"Last reported prompt: {dialog.prompt_tokens:,} tokens.")
    seq = about or dialog.answering_seq
    message = dialog.turns.filter(seq=seq).first() if seq is not None else None
    if message is None:
        return " ".join(lines)
    size = f"{len(message.text):,} characters"
    if message.seq == dialog.answering_seq:
        lines.append(f"Message {message.seq} ({size}) still waits for its answer.")
        if decision.kind == Question.Kind.CRITICAL and _is_most_of_request(dialog, message):
            lines.append("It is most of the request: edit it to shorten it, or choose a model with a larger context.")
    if (
        decision.kind == Question.Kind.CRITICAL
        and dialog.failed_clears >= MAX_FORCED_CLEARS
        and dialog.round_number > message.round_number
    ):
        lines.append(
            f"Message {message.seq} alone ({size}) does not fit: the context stayed critical in a fresh round with it."
        )
    return " ".join(lines)


def _is_most_of_request(dialog: Dialog, message: Turn) -> bool:
    """Check whether a message has over half of the characters of the last request, so that a clear gains little."""
    last = dialog.generations.order_by("-pk").values_list("request_chars", flat=True).first()
    return last is not None and 2 * len(message.text) > last
