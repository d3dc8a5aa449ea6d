"""Questions for humans (Q4H): answered, cancelled, or resolved by one of their exits."""

from typing import Annotated, Any, Literal
from uuid import UUID

from django.contrib.auth.models import User
from ninja import Query, Router, Schema, Status
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue

from dialogs.actions import exits, questions
from dialogs.api.auth import PersonRequest
from dialogs.api.lists import Text, UuidWindow, oldest_first
from dialogs.api.schemas import QuestionOut
from dialogs.models import Question
from dialogs.store import json_shapes

router = Router(tags=["questions"])


QuestionState = Literal["open", "answered", "resolved", "cancelled"]


class QuestionWindow(UuidWindow):
    state: QuestionState | None = None


Choice = Annotated[Text, Field(max_length=questions.LONGEST_CHOICE)]
Choices = Annotated[
    list[Choice],
    Field(max_length=questions.MOST_CHOICES, description="answers to choose from; another may be written all the same"),
]


class NewQuestion(Schema):
    text: Text = Field(max_length=questions.LONGEST_QUESTION)
    choices: Choices = []
    dialog: UUID | None = Field(None, description="an idle dialog; a new one by default")


class Answer(Schema):
    text: Text
    instead: Annotated[
        bool, Field(description="for a call that waits to be allowed: the text is its result; the tool does not run")
    ] = False


class ExitTaken(BaseModel):
    """An exit with its options. No ``Schema``: that would drop the options, which are not declared as fields."""

    model_config = ConfigDict(extra="allow")

    action: str

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe the exits that exist now, and what each takes."""
        schema = handler.resolve_ref_schema(handler(core))
        known = exits.all_exits()
        schema["properties"]["action"]["enum"] = [way.name for way in known]
        schema["description"] = " ".join(f"`{way.name}`: {way.label}, {way.help}." for way in known)
        for way in known:
            for field in way.fields:
                for name in field.options:
                    described = {"type": "string", "default": "", "description": f"for `{way.name}`: {field.label}"}
                    schema["properties"][name] = described
        schema.pop("additionalProperties", None)
        return schema


@router.get("/questions", response=list[QuestionOut])
def list_questions(request: PersonRequest, window: Query[QuestionWindow]) -> list[dict[str, Any]]:
    visible = questions.questions_of(request.auth)
    if window.state:
        visible = visible.filter(state=window.state)
    return [_question_json(row) for row in oldest_first(visible, window)]


@router.post("/questions", response={201: QuestionOut})
def ask(request: PersonRequest, given: NewQuestion) -> Status[dict[str, Any]]:
    """Ask the people of a dialog a question from outside. No agent goes on when they answer. Get the question
    again to read the answer.
    """
    row = questions.ask_from_outside(request.auth, given.text, given.dialog, given.choices)
    return Status(201, _read(request.auth, row.pk))


@router.get("/questions/{uuid:question_id}", response=QuestionOut)
def get_question(request: PersonRequest, question_id: UUID) -> dict[str, Any]:
    return _read(request.auth, question_id)


@router.post("/questions/{uuid:question_id}/answer", response=QuestionOut)
def answer(request: PersonRequest, question_id: UUID, given: Answer) -> dict[str, Any]:
    """Answer an ordinary question; the run goes on."""
    give = questions.answer_instead if given.instead else questions.answer
    give(question_id, request.auth, given.text)
    return _read(request.auth, question_id)


@router.post("/questions/{uuid:question_id}/cancel", response=QuestionOut)
def cancel(request: PersonRequest, question_id: UUID) -> dict[str, Any]:
    """Cancel a question; the agent goes on without an answer."""
    questions.cancel(question_id, request.auth)
    return _read(request.auth, question_id)


@router.post("/questions/{uuid:question_id}/resolve", response=QuestionOut)
def resolve(request: PersonRequest, question_id: UUID, given: ExitTaken) -> dict[str, Any]:
    """Resolve a critical question, as a holder of the permission ``dialogs.resolve_question``."""
    questions.resolve(question_id, request.auth, given.action, **(given.model_extra or {}))
    return _read(request.auth, question_id)


def _read(user: User, question_id: UUID) -> dict[str, Any]:
    return _question_json(questions.question_for(user, question_id))


def _question_json(row: Question) -> dict[str, Any]:
    return json_shapes.question(row, questions.attempts_of(row))
