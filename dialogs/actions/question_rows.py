"""Rows of questions for humans (Q4H): how each is opened and closed, and who learns of it."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.actions import approvals, deliveries
from dialogs.context.view import Call
from dialogs.models import Question
from dialogs.store.change import Change


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


def ask_for_approval(change: Change, tool: str, call: Call, arguments: Mapping[str, Any]) -> None:
    """``tool`` is its identity: what "always" allows."""
    text, choices = approvals.question_about(call, arguments), list(approvals.CHOICES)
    open_question(change, Question.Kind.QUESTION, text, tool_call_id=call.id, approves=tool, choices=choices)
