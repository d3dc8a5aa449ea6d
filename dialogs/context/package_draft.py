"""Collection of the rows from which ``remediation.package_drafting`` drafts a re-entry package."""

from typing import Any

import orjson

from dialogs.context.limits import thresholds_of
from dialogs.context.view import standing_run
from dialogs.models import Dialog, Question, Turn
from remediation.budget import draft_share
from remediation.package_drafting import Gathered, Statement, ToolUse, draft

NEWEST_TURNS = 120
CHARS_PER_TURN = 4_000
CHARS_TOGETHER = 80_000
TELLING = ("path", "file", "name", "query", "url", "command", "id", "seq")  # arguments that say what a call is about


def draft_package(dialog: Dialog, answer: str | None = None) -> str:
    """Draft a re-entry package from stored rows, in the outline that guidance asks agents for.

    Call it outside of transactions: it reads and searches a hundred texts. ``answer`` is an answer to the message under
    way that is not stored yet.
    """
    turns = dialog.turns.filter(position__isnull=False)
    asked = turns.filter(role=Turn.Role.USER).order_by("position").values_list("text", flat=True)
    newest = turns.filter(round_number=dialog.round_number).exclude(role=Turn.Role.NOTICE).order_by("-position")
    rows = list(newest[:NEWEST_TURNS])[::-1]
    said = [*rows, Turn(role=Turn.Role.ASSISTANT, text=answer)] if answer else rows
    waiting = dialog.answering_seq if answer is None else None
    pending = turns.filter(seq=waiting).first() if waiting is not None else None
    run = standing_run(dialog)
    return draft(
        Gathered(
            first_request=asked.first() or "",
            requests=[row.text for row in rows if row.role == Turn.Role.USER],
            pending=pending.text if pending else "",
            statements=_statements(said),
            tool_uses=[_use(call) for row in rows for call in row.tool_calls or ()],
            package=dialog.rounds.get(number=dialog.round_number).package,
            ledger=run.ledger if run else (),
            answered_questions=_questions(dialog, Question.State.ANSWERED),
            open_questions=[text for text, _ in _questions(dialog, Question.State.OPEN)],
            share=draft_share(thresholds_of(dialog).context_limit),
        )
    )


def _statements(rows: list[Turn]) -> list[Statement]:
    """Return the newest texts that fit, oldest first."""
    room, chosen = CHARS_TOGETHER, []
    for row in reversed(rows):
        text = row.text[: min(CHARS_PER_TURN, room)]
        room -= len(text)
        if text.strip():
            failed = row.role == Turn.Role.TOOL and row.status in (Turn.Status.ERROR, Turn.Status.UNKNOWN)
            chosen.append(Statement(row.role, text, failed, row.seq or 0))
    return chosen[::-1]


def _use(call: dict[str, str]) -> ToolUse:
    try:
        arguments: Any = orjson.loads(call["arguments"] or "{}")
    except orjson.JSONDecodeError:
        arguments = None
    values = (arguments.get(key) for key in TELLING) if isinstance(arguments, dict) else ()
    return ToolUse(call["name"], next((str(value) for value in values if value not in (None, "")), ""))


def _questions(dialog: Dialog, state: str) -> list[tuple[str, str]]:
    rows = dialog.questions.filter(kind=Question.Kind.QUESTION, state=state, approves="").order_by("created_at")
    return list(rows.values_list("text", "answer"))[-5:]
