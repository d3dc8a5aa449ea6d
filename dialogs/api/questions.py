"""Q4H: questions for humans, answered, cancelled or resolved by one of the five exits."""

from typing import Any, Literal
from uuid import UUID

from django.contrib.auth.models import User
from ninja import Query, Router, Schema
from pydantic import Field

from dialogs.actions import questions
from dialogs.api.auth import PersonRequest
from dialogs.api.lists import Text, UuidWindow, oldest_first
from dialogs.api.schemas import QuestionOut
from dialogs.errors import NotFound
from dialogs.models import Question
from dialogs.store import json_shapes

router = Router(tags=["questions"])


class QuestionWindow(UuidWindow):
    state: Literal["open", "answered", "resolved", "cancelled"] | None = None


class Answer(Schema):
    text: Text


class Exit(Schema):
    """``clear`` takes ``reminder_content``; ``switch_model`` takes ``provider`` and ``model``."""

    action: Literal["clear", "accept_draft", "retry", "switch_model", "close"]
    reminder_content: Text = ""
    provider: Text = Field("", max_length=80)
    model: Text = Field("", max_length=120)


@router.get("/questions", response=list[QuestionOut])
def list_questions(request: PersonRequest, window: Query[QuestionWindow]) -> list[dict[str, Any]]:
    visible = questions.questions_of(request.auth)
    if window.state:
        visible = visible.filter(state=window.state)
    return [_shown(row) for row in oldest_first(visible, window)]


@router.get("/questions/{uuid:question_id}", response=QuestionOut)
def get_question(request: PersonRequest, question_id: UUID) -> dict[str, Any]:
    return _found(request.auth, question_id)


@router.post("/questions/{uuid:question_id}/answer", response=QuestionOut)
def answer(request: PersonRequest, question_id: UUID, given: Answer) -> dict[str, Any]:
    """Ordinary questions only; the run goes on."""
    questions.answer(question_id, request.auth, given.text)
    return _found(request.auth, question_id)


@router.post("/questions/{uuid:question_id}/cancel", response=QuestionOut)
def cancel(request: PersonRequest, question_id: UUID) -> dict[str, Any]:
    """The agent is told that there is no answer, and decides for itself."""
    questions.cancel(question_id, request.auth)
    return _found(request.auth, question_id)


@router.post("/questions/{uuid:question_id}/resolve", response=QuestionOut)
def resolve(request: PersonRequest, question_id: UUID, given: Exit) -> dict[str, Any]:
    """Critical questions only, for holders of the permission ``dialogs.resolve_question``."""
    options = given.dict(exclude={"action"})
    questions.resolve(question_id, request.auth, given.action, **options)
    return _found(request.auth, question_id)


def _found(user: User, question_id: UUID) -> dict[str, Any]:
    row = questions.questions_of(user).filter(pk=question_id).first()
    if row is None:
        raise NotFound
    return _shown(row)


def _shown(row: Question) -> dict[str, Any]:
    return json_shapes.question(row, questions.attempts_of(row))
