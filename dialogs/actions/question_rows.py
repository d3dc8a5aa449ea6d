"""Rows of questions for humans (Q4H): how each is opened and closed, and who learns of it; and what allows a call of a tool.

A call is asked for by an ordinary question, so every way to answer one will do.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from dialogs.actions import deliveries
from dialogs.context.tool_calls import Result
from dialogs.models import Dialog, Question
from dialogs.store.change import Change

ALLOW = gettext_noop("Allow")
ALLOW_ALWAYS = gettext_noop("Always allow in this dialog")
REFUSE = gettext_noop("Refuse")
APPROVALS = (ALLOW, ALLOW_ALWAYS, REFUSE)


def open_question(change: Change, kind: str, text: str, **columns: Any) -> Question:
    """Ask a person, who is notified after the commit."""
    question = Question.objects.create(dialog=change.dialog, kind=kind, text=text, **columns)
    change.question_event(question)
    deliveries.question_opened(question)
    return question


def close_question(change: Change, question: Question, user: User | None, state: str) -> None:
    """``user`` is None where the runtime closes it. Other columns that were set are stored as well."""
    question.state, question.resolved_by, question.resolved_at = state, user, timezone.now()
    question.save()
    change.question_event(question)
    deliveries.question_closed(question)


def ask_for_approval(change: Change, tool: str, call_id: str, arguments: Mapping[str, Any]) -> None:
    shown = orjson.dumps(arguments, option=orjson.OPT_INDENT_2).decode()
    text = f"Allow {tool} to run with these arguments? Any other answer refuses.\n\n{shown}"
    open_question(change, Question.Kind.QUESTION, text, tool_call_id=call_id, approves=tool, choices=list(APPROVALS))


def is_approved(dialog: Dialog, tool: str, call_id: str) -> bool:
    """Whether a person allowed this call, or all calls of this tool in this dialog."""
    answered = dialog.questions.filter(state=Question.State.ANSWERED, approves=tool)
    return answered.filter(Q(answer=ALLOW_ALWAYS) | Q(answer=ALLOW, tool_call_id=call_id)).exists()


def approval_in(answer: str) -> str:
    """The choice that somebody wrote, in whatever case; other words, which refuse, as they are."""
    written = answer.strip().rstrip(".!").casefold()
    return next((choice for choice in APPROVALS if choice.casefold() == written), answer)


def refusal_in(answer: str) -> Result | None:
    """The result of a call that was refused, or whose question was cancelled; None of one that runs."""
    if answer in (ALLOW, ALLOW_ALWAYS):
        return None
    why = "" if answer in ("", REFUSE) else f" Their words: {answer}"
    return Result(f"Not run: a person refused this call. Do not repeat it as it was.{why}", failed=True)
