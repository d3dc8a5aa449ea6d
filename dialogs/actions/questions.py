"""Q4H: answering and cancelling ordinary questions, and the five exits of a critical one (R7)."""

from collections.abc import Callable
from uuid import UUID

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from dialogs.actions import messages, rounds
from dialogs.context.limits import catalog, unusable_reason
from dialogs.errors import Conflict, Invalid, NotFound
from dialogs.models import Dialog, Generation, Question, Round, Turn
from dialogs.store.change import Change, open_change
from dominds.llm.catalog.catalog import UnknownModel
from remediation.guidance import Counters

CANCELLED = "[The person cancelled this question without an answer. Decide yourself, or ask differently.]"


def questions_of(user: User) -> QuerySet[Question]:
    """The questions of dialogs that this person may see."""
    return Question.objects.filter(dialog__in=Dialog.objects.for_user(user)).select_related(
        "dialog__agent", "dialog__owner", "resolved_by"
    )


def open_questions(user: User) -> QuerySet[Question]:
    return questions_of(user).filter(state=Question.State.OPEN)


def attempts_of(question: Question) -> list[Generation]:
    """The forced attempts that led to a critical question: their outcomes and usage, never their text."""
    if question.clear_episode is None:
        return []
    return list(question.dialog.generations.filter(clear_episode=question.clear_episode).order_by("id"))


def may_resolve(user: User, question: Question) -> bool:
    """Staff, and the dialog's owner where an operator grants the permission."""
    return user.is_staff or (question.dialog.owner_id == user.pk and user.has_perm("dialogs.resolve_question"))


def answer(question_id: UUID, user: User, text: str) -> Question:
    """Give the agent its answer; the run goes on."""
    if not text.strip():
        raise Invalid("The answer is empty. Write one, or cancel the question.")
    return _end_ordinary(question_id, user, Question.State.ANSWERED, text)


def cancel(question_id: UUID, user: User) -> Question:
    return _end_ordinary(question_id, user, Question.State.CANCELLED, CANCELLED)


def _end_ordinary(question_id: UUID, user: User, state: str, result: str) -> Question:
    dialog_id = _dialog_of(question_id, user)
    with open_change(dialog_id) as change:
        question = _open(question_id)
        if question.kind == Question.Kind.CRITICAL:
            raise Conflict(
                "not_answerable",
                "This question is about a critical context: it is resolved by one of its exits, not answered.",
            )
        if state == Question.State.ANSWERED:
            question.answer = result
        change.turn(
            Turn.Role.TOOL, Turn.Status.OK, text=result, tool_call_id=question.tool_call_id, tool_name="ask_human"
        )
        change.dialog.changed_since_rewrite = True
        if change.dialog.answering_seq is None:
            change.dialog.continuing = True
        _close(change, question, user, state)
        change.wakes = True
    return question


def resolve(question_id: UUID, user: User, action: str, **options: str) -> Question:
    """Take one exit of a critical question. ``options``: ``reminder_content`` for clear; ``provider`` and ``model``."""
    exits: dict[str, Callable[[Change, Question, User, dict[str, str]], None]] = {
        "clear": _clear,
        "accept_draft": _accept_draft,
        "retry": _retry,
        "switch_model": _switch_model,
        "close": _close_dialog,
    }
    if action not in exits:
        raise Invalid(f"There is no exit {action!r}. The exits are: {', '.join(exits)}.")
    dialog_id = _dialog_of(question_id, user)
    with open_change(dialog_id) as change:
        question = _open(question_id)
        if question.kind != Question.Kind.CRITICAL:
            raise Conflict("not_critical", "This is an ordinary question: answer it or cancel it.")
        if not may_resolve(user, question):
            raise Conflict(
                "permission_required", "Resolving a critical question takes the permission resolve_question."
            )
        question.action = action
        if action != "close":
            _close(change, question, user, Question.State.RESOLVED)
            _resume(change)
        exits[action](change, question, user, options)
        LogEntry.objects.log_actions(user.pk, [question], CHANGE, change_message=f"Resolved by: {action}")
        change.wakes = True
    return question


def _clear(change: Change, question: Question, user: User, options: dict[str, str]) -> None:
    package = options.get("reminder_content", "")
    if not package.strip():
        raise Invalid("reminder_content is blank. Write the re-entry package that the agent is to go on from.")
    clear_by_person(change, package)


def _accept_draft(change: Change, question: Question, user: User, options: dict[str, str]) -> None:
    clear_by_person(change, question.draft)


def clear_by_person(change: Change, package: str) -> None:
    """After a person's clear the agent generates only if a message is owed (R6)."""
    rounds.clear_within(change, package, cause=Round.Cause.PERSON)


def _retry(change: Change, question: Question, user: User, options: dict[str, str]) -> None:
    """Three fresh attempts; an overflow is tried again as it is."""
    _new_episode(change.dialog)


def _switch_model(change: Change, question: Question, user: User, options: dict[str, str]) -> None:
    dialog = change.dialog
    provider, model = options.get("provider") or dialog.provider_id, options.get("model", "")
    try:
        found = catalog().model(provider, model)
    except UnknownModel as error:
        raise Invalid(str(error)) from None
    if found.unusable:
        raise Invalid(found.unusable)
    dialog.provider, dialog.model = provider, model
    if reason := unusable_reason(dialog):
        raise Invalid(reason)
    _new_episode(dialog)
    dialog.overflowed, dialog.calibration = False, None  # what was learnt of the other model does not hold for this one


def _close_dialog(change: Change, question: Question, user: User, options: dict[str, str]) -> None:
    question.save(update_fields=["action"])
    messages.close_within(change, user, question_state=Question.State.RESOLVED)
    question.refresh_from_db()


def _new_episode(dialog: Dialog) -> None:
    counters = Counters()
    dialog.failed_clears, dialog.clear_unproven = counters.failed_clears, counters.clear_unproven


def _resume(change: Change) -> None:
    """The message that was suspended is being answered again; without one nothing is owed."""
    dialog = change.dialog
    if dialog.answering_seq is not None:
        change.mark(dialog.answering_seq, Turn.Status.ANSWERING)
    dialog.tries = dialog.generations_for_message = 0


def _close(change: Change, question: Question, user: User, state: str) -> None:
    question.state, question.resolved_by, question.resolved_at = state, user, timezone.now()
    question.save()
    change.event("question", id=str(question.pk), kind=question.kind, state=state)


def _dialog_of(question_id: UUID, user: User) -> UUID:
    dialog_id = questions_of(user).filter(pk=question_id).values_list("dialog_id", flat=True).first()
    if dialog_id is None:
        raise NotFound()
    return dialog_id


def _open(question_id: UUID) -> Question:
    """The question as it stands now that its dialog is locked: the second who answers learns who was first."""
    question = Question.objects.select_related("dialog", "resolved_by").get(pk=question_id)
    if question.state != Question.State.OPEN:
        by = question.resolved_by.get_username() if question.resolved_by else "the runtime"
        at = f"{question.resolved_at:%Y-%m-%d %H:%M:%S} UTC" if question.resolved_at else "an unknown time"
        raise Conflict("already_resolved", f"This question was {question.state} by {by} at {at}.")
    return question
