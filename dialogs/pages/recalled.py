"""The recalled turns of a request, from the references that its generation stores."""

from collections.abc import Collection
from dataclasses import dataclass

from dialogs.context.retrieval.search import words_of
from dialogs.models import Dialog, Generation, RecallChoice, Turn
from dialogs.pages.entries import PAGE_TURNS
from remediation.recall.plain_passages import without_marks
from remediation.recall.snippets import Part, matching_words, snippet

SHOWN_CHARS = 600
MOST_SHOWN = 60
WORDS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class RecalledTurn:
    """A recalled turn.

    ``words`` are those that it shares with the message. A turn that shares none was recalled with the turn beside it,
    or is pinned. ``before`` is the parameter of the address of the transcript's page that shows it.
    """

    turn: Turn
    speaker: str
    parts: tuple[Part, ...]
    words: tuple[str, ...]
    choice: str
    before: int


def recalled_turns(dialog: Dialog, generation: Generation) -> list[RecalledTurn]:
    asked = words_of(_message(dialog, generation))
    choices = dict(RecallChoice.objects.filter(dialog=dialog).values_list("seq", "choice"))
    turns = dialog.turns.filter(seq__in=generation.recalled[:MOST_SHOWN]).order_by("position")
    return [
        RecalledTurn(
            turn=turn,
            speaker=turn.tool_name or turn.get_role_display(),
            parts=_parts(turn, asked),
            words=matching_words(_text(turn), asked)[:WORDS_SHOWN],
            choice=choices.get(turn.seq, ""),
            before=(turn.position or 0) + PAGE_TURNS // 2,
        )
        for turn in turns
    ]


def _parts(turn: Turn, asked: Collection[str]) -> tuple[Part, ...]:
    parts = snippet(_text(turn), asked, SHOWN_CHARS)
    return without_marks(parts) if turn.role == Turn.Role.ASSISTANT else parts


def _text(turn: Turn) -> str:
    calls = (f"{call['name']}({call['arguments']})" for call in turn.tool_calls or ())
    return "\n".join(part for part in (turn.text, *calls) if part)


def _message(dialog: Dialog, generation: Generation) -> str:
    if generation.answers_seq is None:
        return ""
    return dialog.turns.filter(seq=generation.answers_seq).values_list("text", flat=True).first() or ""
