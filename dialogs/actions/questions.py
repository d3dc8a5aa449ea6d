"""Questions for humans (Q4H): who sees them, and how they are asked, answered, cancelled and resolved."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils import timezone

from dialogs.actions.access import check_may_act, writable_dialog
from dialogs.actions.exits import SUSPENDING, exit_named, exits_for
from dialogs.actions.messages import create_dialog, shorten
from dialogs.actions.question_rows import (
    ALLOW,
    INSTEAD,
    approval_in,
    close_question,
    edited_in,
    open_question,
    refusal_in,
    result_instead,
)
from dialogs.context.limits import thresholds_of
from dialogs.context.tool_calls import Result, store_result
from dialogs.errors import Conflict, Invalid, NotFound
from dialogs.models import Agent, Dialog, Generation, Question, Turn
from dialogs.permissions import RESOLVE, may, may_see, reach_of, within
from dialogs.state import State
from dialogs.store.change import Change, open_change
from dominds.db.prepared import Select
from dominds.visible_text import is_blank

AGES = (("1", "over 1 hour"), ("24", "over 1 day"), ("168", "over 1 week"))  # hours, as filters offer them
LONGEST_QUESTION = 20_000  # characters, of a question that a program asks
MOST_CHOICES, LONGEST_CHOICE = 8, 200  # answers that a question offers; characters of each
ASK_HUMAN = "ask_human"  # the tool by which an agent asks an ordinary question
NOT_ANSWERED = Result("Not run: its server asked a person, who cancelled the question without an answer.", failed=True)
CANCELLED = "[The person cancelled this question without an answer. Decide yourself, or ask differently.]"


def questions_of(user: User) -> QuerySet[Question]:
    """Return the questions of dialogs that this person may see."""
    rows = Question.objects.select_related("dialog__agent", "dialog__owner", "resolved_by")
    if reach_of(user).all:
        return rows.filter(dialog__removed_at=None)  # a join, which can stop early at a limit
    return rows.filter(dialog__in=Dialog.objects.shared_with(user))


def count_open(user: User) -> int:
    """Count the open questions of dialogs that this person may see."""
    return (_number_for_all.first() if reach_of(user).all else _number_for.first(user.pk)) or 0


@Select
def _number_for_all() -> QuerySet[Question, int]:
    return _number_in(Dialog.objects.all())


@Select
def _number_for(user_id: int) -> QuerySet[Question, int]:
    return _number_in(Dialog.objects.filter(within(user_id, Group.objects.filter(user=user_id))))


def _number_in(dialogs: QuerySet[Dialog]) -> QuerySet[Question, int]:
    """Build a query for the number of open questions. It has no row if there are none."""
    rows = Question.objects.filter(dialog__in=dialogs, state=Question.State.OPEN).order_by()
    return rows.values("state").annotate(number=Count("pk")).values_list("number", flat=True)


def open_questions_in(dialogs: QuerySet[Dialog]) -> QuerySet[Question]:
    rows = Question.objects.filter(dialog__in=dialogs, state=Question.State.OPEN)
    return rows.select_related("dialog__agent", "dialog__owner", "resolved_by")


def question_for(user: User, question_id: UUID) -> Question:
    """Return the question, if this person may see it. Raises ``NotFound``."""
    question = questions_of(user).filter(pk=question_id).first()
    if question is None:
        raise NotFound
    return question


def older_than(rows: QuerySet[Question], hours: int) -> QuerySet[Question]:
    return rows.filter(created_at__lt=timezone.now() - timedelta(hours=hours))


def attempts_of(question: Question) -> list[Generation]:
    """Return the forced attempts that led to a critical question, with outcomes and usage and without their text."""
    if question.clear_episode is None:
        return []
    return list(question.dialog.generations.filter(clear_episode=question.clear_episode).order_by("id"))


def may_resolve(user: User, question: Question) -> bool:
    """Check the permission to resolve, and that this person may see the dialog."""
    return may_see(user, question.dialog) and may(user, RESOLVE)


def ask(change: Change, text: str, call_id: str, choices: Sequence[str] = ()) -> Question:
    """Ask an ordinary question for an agent. The answer becomes the result of this call."""
    return open_question(change, Question.Kind.QUESTION, text, tool_call_id=call_id, choices=_different(choices))


def _different(choices: Sequence[str]) -> list[str]:
    """Drop texts that are repeated or blank."""
    return list(dict.fromkeys(filter(None, map(str.strip, choices))))


def ask_from_outside(user: User, text: str, dialog_id: UUID | None = None, choices: Sequence[str] = ()) -> Question:
    """Ask for an outside program, in an idle dialog or in a new one. No agent takes part in the answer."""
    if is_blank(text):
        raise Invalid("The question is empty. Write what you want to know.")
    with transaction.atomic():
        dialog = writable_dialog(dialog_id, user) if dialog_id else _new_dialog(user, text)
        with open_change(dialog.pk) as change:
            if change.dialog.state not in (State.IDLE, State.FAILED):
                raise Conflict(
                    "dialog_busy", f"The dialog is {change.dialog.state}; ask in one that is idle, or in a new one."
                )
            change.turn(Turn.Role.NOTICE, Turn.Status.COMPLETE, text=f"A program asks: {text}", author_id=user.pk)
            return open_question(change, Question.Kind.QUESTION, text, choices=_different(choices))


def _new_dialog(user: User, text: str) -> Dialog:
    agent = Agent.objects.filter(enabled=True).order_by("-is_default", "pk").first()
    if agent is None:
        raise Conflict("agent_unusable", "There is no agent, and so no dialog to ask in.")
    return create_dialog(user, agent.pk, shorten(text), origin=Dialog.Origin.KEY)


def answer(question_id: UUID, user: User, text: str, arguments: str = "") -> Question:
    """Answer a question of an agent, whose run goes on. A call that is allowed once may get other ``arguments``, as
    JSON.
    """
    _check_answer(text)
    return _end_ordinary(question_id, user, Question.State.ANSWERED, text, arguments)


def answer_instead(question_id: UUID, user: User, result: str) -> Question:
    """Write the result of a call that waits to be allowed. Its tool does not run, and the agent goes on."""
    if is_blank(result):
        raise Invalid("The result is empty. Write what the tool would have answered.")
    with open_change(question_for(user, question_id).dialog_id) as change:
        question = _read_open_question(question_id)
        if not question.approves:
            raise Conflict("not_answerable", "This question is about no call of a tool: answer it, or resolve it.")
        question.action = INSTEAD
        _end_within(change, question, user, Question.State.ANSWERED, result)
    return question


def answer_within(change: Change, question: Question, user: User, text: str) -> None:
    """Answer an open question of the dialog under change."""
    _check_answer(text)
    _end_within(change, question, user, Question.State.ANSWERED, text)


def _check_answer(text: str) -> None:
    if is_blank(text):
        raise Invalid("The answer is empty. Write one, or cancel the question.")


def cancel(question_id: UUID, user: User) -> Question:
    return _end_ordinary(question_id, user, Question.State.CANCELLED, CANCELLED)


def _end_ordinary(question_id: UUID, user: User, state: str, result: str, arguments: str = "") -> Question:
    with open_change(question_for(user, question_id).dialog_id) as change:
        question = _read_open_question(question_id)
        if approval_in(result) == ALLOW:
            question.edited_arguments = edited_in(question, arguments)
        _end_within(change, question, user, state, result)
    return question


def _end_within(change: Change, question: Question, user: User, state: str, result: str) -> None:
    check_may_act(change.dialog, user)
    if question.kind in SUSPENDING:
        raise Conflict(
            "not_answerable",
            f"This is a {SUSPENDING[Question.Kind(question.kind)]}: it is resolved by one of its exits, not answered.",
        )
    if state == Question.State.ANSWERED:
        chooses = question.approves and question.action != INSTEAD
        question.answer = result = approval_in(result) if chooses else result
    change.act(user, "answered the question" if state == Question.State.ANSWERED else "cancelled the question")
    close_question(change, question, user, state)
    if question.is_from_outside:
        if question.answer:
            change.turn(Turn.Role.NOTICE, Turn.Status.COMPLETE, text=f"The answer: {result}", author_id=user.pk)
        change.take_next_message()  # that came while the question was open
    else:
        _hand_to_agent(change, question, result)
    change.asks_work = True


def _hand_to_agent(change: Change, question: Question, text: str) -> None:
    """Let the agent go on. A call that was just allowed, or whose tool asked, gets no result here: it runs next."""
    if question.asked_by:
        if question.state == Question.State.CANCELLED:
            by = question.resolved_by_id
            store_result(change, question.tool_call_id, question.tool, NOT_ANSWERED, author_id=by)
    elif not question.approves:
        store_result(change, question.tool_call_id, ASK_HUMAN, Result(text))
    elif result := result_instead(text) if question.action == INSTEAD else refusal_in(question.answer):
        by = question.resolved_by_id
        store_result(change, question.tool_call_id, question.tool, result, author_id=by)
    change.dialog.changed_since_rewrite = True
    if change.dialog.answering_seq is None:
        change.dialog.continuing = True


def resolve(question_id: UUID, user: User, action: str, /, **options: object) -> Question:
    """Take one exit of a question that suspends its dialog, with the options that the exit needs."""
    taken = exit_named(action)
    given = taken.options_of(options)
    dialog_id = question_for(user, question_id).dialog_id
    _ask_server(dialog_id, given.get("provider", ""), given.get("model", ""))
    with open_change(dialog_id) as change:
        question = _read_open_question(question_id)
        if question.kind not in SUSPENDING:
            raise Conflict("not_critical", "This is an ordinary question: answer it or cancel it.")
        if question.kind not in taken.kinds:
            ways = ", ".join(way.name for way in exits_for(question.kind))
            raise Invalid(
                f"{action!r} is no exit of a {SUSPENDING[Question.Kind(question.kind)]}. Its exits are: {ways}."
            )
        if not may_resolve(user, question):
            raise Conflict(
                "permission_required",
                f"Resolving a {SUSPENDING[Question.Kind(question.kind)]} takes the permission resolve_question.",
            )
        change.act(user, f"resolved the {SUSPENDING[Question.Kind(question.kind)]}: {taken.label}")
        question.action = action
        close_question(change, question, user, Question.State.RESOLVED)
        taken.perform(change, question, user, given)
        LogEntry.objects.log_actions(user.pk, [question], CHANGE, change_message=f"Resolved: {taken.label}")
        change.asks_work = True
    return question


def _ask_server(dialog_id: UUID, provider: str, model: str) -> None:
    """Ask the server for the next model's window, so that the answer is cached when the dialog's row is locked."""
    dialog = Dialog.objects.select_related("agent").get(pk=dialog_id)
    dialog.provider, dialog.model = provider or dialog.provider, model or dialog.model
    thresholds_of(dialog)


def _read_open_question(question_id: UUID) -> Question:
    """Return the question, read after its dialog was locked, so that the second person learns who answered first."""
    question = Question.objects.select_related("dialog", "resolved_by").get(pk=question_id)
    if question.state != Question.State.OPEN:
        by = question.resolved_by.get_username() if question.resolved_by else "the runtime"
        zone = timezone.get_current_timezone_name()
        at = (
            f"{timezone.localtime(question.resolved_at):%Y-%m-%d %H:%M:%S} ({zone})"
            if question.resolved_at
            else "an unknown time"
        )
        raise Conflict("already_resolved", f"This question was {question.state} by {by} at {at}.")
    return question
