"""How long questions waited."""

from django.contrib.auth.models import User

from dialogs.actions.questions import questions_of
from dialogs.models import Question

NEWEST = 50


def minutes_waited(question: Question) -> float:
    if question.resolved_at is None:
        raise ValueError("The question is still open.")
    return (question.resolved_at - question.created_at).total_seconds() / 60


def newest_closed(user: User) -> list[tuple[Question, float]]:
    """Return the newest questions that this person may see and that were closed, each with the minutes it waited."""
    closed = questions_of(user).filter(resolved_at__isnull=False).order_by("-resolved_at")[:NEWEST]
    return [(question, minutes_waited(question)) for question in closed]
