"""The tools. Each is a call of ``/api``, with its rights, its bounds and its words;
names and docstrings are for the model."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from dialogs.api import context, dialogs, messages, questions, reminders, search
from dialogs.api.auth import PersonRequest
from dialogs.api.context import ArchiveWindow
from dialogs.api.lists import LARGEST, Text, UuidWindow, Window
from dialogs.api.questions import Answer, Choices, ExitTaken, NewQuestion, QuestionState, QuestionWindow
from dialogs.api.reminders import NewReminder
from dialogs.api.search import Wanted
from dialogs.errors import NotFound

PIECE_CHARS = 20_000  # of one archived message in one result
Dialog = Annotated[UUID, Field(description="the id of a dialog")]
Question = Annotated[UUID, Field(description="the id of a question")]
Number = Annotated[int, Field(ge=0, le=LARGEST)]
Entries = Annotated[int, Field(ge=1, le=50)]
AfterId = Annotated[UUID | None, Field(description="the last id that you have; the list goes on behind it")]
AfterNumber = Annotated[Number, Field(description="the last number that you have; the list goes on behind it")]
Row = dict[str, Any]


# -- Reading -----------------------------------------------------------------------------------------------------------


def list_dialogs(request: PersonRequest, after: AfterId = None, limit: Entries = 20) -> list[Row]:
    """List the dialogs that you may see, oldest first, each with its state, its health and its open question."""
    return dialogs.list_dialogs(request, UuidWindow(after=after, limit=limit))


def read_health(request: PersonRequest, dialog: Dialog) -> Row:
    """Tell how full the context of a dialog is, what it has cost, and what it is doing."""
    return dialogs.get_dialog(request, dialog)


def search_dialogs(
    request: PersonRequest, query: Text, dialog: Dialog | None = None, everything: bool = False, limit: Entries = 10
) -> Row:
    """Search what was said, best first: in one dialog, or in all dialogs of your own. Read on with read_turns. Where
    searched is newest, older messages were not looked at; everything looks at all of them, which takes longer."""
    wanted = Wanted(q=query, limit=limit)
    if dialog is None:
        result, searched = search.found_everywhere(request.auth, wanted, all_of_it=everything)
    else:
        result, searched = search.found_in_dialog(request.auth, dialog, wanted)
    return {"found": result, "searched": searched}


def read_turns(request: PersonRequest, dialog: Dialog, after: AfterNumber = 0, limit: Entries = 20) -> list[Row]:
    """Read what was said in a dialog, oldest first. after is a seq."""
    return messages.list_turns(request, dialog, Window(after=after, limit=limit))


def search_archive(
    request: PersonRequest, dialog: Dialog, query: Text = "", after: AfterNumber = 0, limit: Entries = 10
) -> list[Row]:
    """Find what rewrites took out of a dialog's context: best first for a query, all of it,
    oldest first, without one."""
    return context.list_archive(request, dialog, ArchiveWindow(q=query, after=after, limit=limit))


def read_archived_unit(request: PersonRequest, dialog: Dialog, unit: Number, offset: Number = 0) -> Row:
    """Read one archived message, word for word, by its id; a long one in pieces, from the character offset on."""
    rows = context.list_archive(request, dialog, ArchiveWindow(after=max(unit - 1, 0), limit=1))
    if not rows or rows[0]["id"] != unit:
        raise NotFound(f"There is no archived unit {unit} in this dialog. search_archive lists them.")
    whole = rows[0].pop("text")
    piece, end = whole[offset : offset + PIECE_CHARS], offset + PIECE_CHARS
    return {**rows[0], "text": piece, "chars": len(whole), "next_offset": end if end < len(whole) else None}


def list_questions(
    request: PersonRequest, state: QuestionState | None = "open", after: AfterId = None, limit: Entries = 20
) -> list[Row]:
    """List the questions that wait for a person, or those of another state; null for all."""
    return questions.list_questions(request, QuestionWindow(state=state, after=after, limit=limit))


def read_question(request: PersonRequest, question: Question) -> Row:
    """Read one question; what ask_human asked has its answer here once its state is answered."""
    return questions.get_question(request, question)


def list_reminders(request: PersonRequest, dialog: Dialog) -> list[Row]:
    """List the reminders that a dialog's agent always sees."""
    return reminders.list_reminders(request, dialog)


# -- Acting ------------------------------------------------------------------------------------------------------------


def answer_question(request: PersonRequest, question: Question, text: Text) -> Row:
    """Answer an ordinary question (kind question) in the name of your person; the agent that asked goes on."""
    return questions.answer(request, question, Answer(text=text))


def resolve_question(request: PersonRequest, question: Question, way: ExitTaken) -> Row:
    """Resolve a question of any other kind, which suspends its dialog, by one of its exits."""
    return questions.resolve(request, question, way)


def ask_human(request: PersonRequest, text: Text, dialog: Dialog | None = None, choices: Choices | None = None) -> Row:
    """Ask your person something. Returns the question at once; ask read_question for the answer, with its id, later. It
    stands in the dialog that you name, which must be idle and takes no messages until it is answered, or in a new
    one."""
    return questions.ask(request, NewQuestion(text=text, dialog=dialog, choices=choices or [])).value


def add_reminder(request: PersonRequest, dialog: Dialog, text: Text, position: Number | None = None) -> Row:
    """Add a reminder to a dialog, at the end or at a position (0 is first)."""
    return reminders.add_reminder(request, dialog, NewReminder(text=text, position=position)).value


def remove_reminder(request: PersonRequest, dialog: Dialog, reminder: Number) -> Row:
    """Remove a reminder of a dialog by its id."""
    reminders.delete_reminder(request, dialog, reminder)
    return {"removed": reminder}


READING: Sequence[Callable[..., Any]] = (
    list_dialogs,
    read_health,
    search_dialogs,
    read_turns,
    search_archive,
    read_archived_unit,
    list_questions,
    read_question,
    list_reminders,
)
ACTING: Sequence[Callable[..., Any]] = (answer_question, resolve_question, ask_human, add_reminder, remove_reminder)
