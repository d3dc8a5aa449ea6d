"""Export of a whole dialog as a file. Pieces are read and sent one by one, so no long dialog is held in memory."""

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, tzinfo
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet

from dialogs.actions import questions, reminders
from dialogs.context.images import images_of
from dialogs.errors import UNREADABLE
from dialogs.extension import installed_extensions
from dialogs.models import Dialog, Round, Turn
from dialogs.queries import context_report, overviews
from dialogs.store import json_shapes
from dominds.llm.json_text import dump

BATCH = 200
Row = TypeVar("Row", bound=Model)


def as_markdown(dialog: Dialog, zone: tzinfo = UTC) -> Iterator[str]:
    """Yield the conversation in its order, with a heading for each turn."""
    begun = f"{dialog.created_at.astimezone(zone):%Y-%m-%d %H:%M} ({zone})"
    yield f"# {dialog}\n\nAgent: {dialog.agent} · {begun}\n"
    rounds = {row.number: row for row in dialog.rounds.all()}
    shown = 1
    for turn in _in_batches(_turns(dialog), "position"):  # leaves out queued messages, which have none
        if turn.round_number > shown:
            shown = turn.round_number
            yield _round(rounds[shown])
        try:
            yield _turn(turn)
        except UNREADABLE:
            yield f"\n### Turn {turn.seq}\n\n[damaged: this turn cannot be read]\n"


def many_as_json(viewer: User, ids: Sequence[UUID]) -> Iterator[str]:
    """Yield a list of whole dialogs, in pieces, without those that this person may not see."""
    yield "["
    between = ""
    for dialog in Dialog.objects.for_user(viewer).filter(pk__in=ids).order_by("-active_at", "pk"):
        yield between
        yield from as_json(dialog)
        between = ","
    yield "]"


def _round(row: Round) -> str:
    package = f"\n{_quote(row.package)}\n" if row.package and row.cause in Round.CLEARS else ""
    return f"\n---\n\n## Round {row.number}\n{package}"


def _turn(turn: Turn) -> str:
    cut = f" ({turn.status})" if turn.status not in ("answered", "complete", "ok") else ""
    result = f"Result of {turn.tool_name}" + (f", decided by {turn.author}" if turn.author else "")
    title = {"user": result if turn.tool_name else "User", "assistant": "Assistant", "tool": result, "notice": "Notice"}
    body = _fence(turn.text) if turn.role == Turn.Role.TOOL else turn.text
    calls = "".join(
        f"\n\nCalls `{call['name']}`:\n\n{_fence(call['arguments'], 'json')}" for call in turn.tool_calls or ()
    )
    images = "".join(f"\n\n[{image.label}]" for image in images_of(turn.attachments))
    return f"\n### {title[turn.role]}{cut}\n\n{body}{images}{calls}\n"


def _quote(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _fence(text: str, language: str = "") -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def as_json(dialog: Dialog) -> Iterator[str]:
    """Yield one object: the dialog's overview, rounds, reminders, questions and rewrites, then all turns, generations
    and images, and what extensions add.

    Images are base64, by the ``sha256`` that their turns give.
    """
    head = {
        "dialog": overviews.describe_dialog(dialog),
        "rounds": [_round_json(row) for row in dialog.rounds.all()],
        "reminders": [json_shapes.reminder(row, est_tokens) for row, est_tokens in reminders.list_reminders(dialog)],
        "questions": [
            json_shapes.question(row, questions.attempts_of(row))
            for row in dialog.questions.select_related("resolved_by")
        ],
        "remediations": [_readable(context_report.remediation_json, run) for run in dialog.remediations.order_by("pk")],
    }
    yield dump(head).decode()[:-1]
    yield ',"turns":['
    yield from _array(_readable(json_shapes.turn, turn) for turn in _in_batches(_turns(dialog), "seq"))
    yield '],"generations":['
    generations = dialog.generations.select_related("snapshot").prefetch_related("turns")
    yield from _array(_readable(json_shapes.generation, row) for row in _in_batches(generations, "pk"))
    yield '],"images":['
    yield from _array(_images(dialog))
    yield "]"
    for extension in installed_extensions():
        for name, pieces in extension.exported(dialog):
            yield f',"{name}":'
            yield from pieces
    yield "}"


def _images(dialog: Dialog) -> Iterator[dict[str, Any]]:
    """Yield images one by one, since each may have megabytes."""
    for pk in list(dialog.attachments.values_list("pk", flat=True)):
        image = dialog.attachments.get(pk=pk)
        yield {"sha256": image.sha256, "media_type": image.media_type, "data": b64encode(image.content).decode()}


def _readable(shape: Callable[[Any], dict[str, Any]], row: Any) -> dict[str, Any]:
    """Return the row's shape. A damaged row is exported by its id alone, so that it does not prevent the export."""
    try:
        return shape(row)
    except UNREADABLE:
        return {"id": row.pk, "seq": getattr(row, "seq", None), "damaged": True}


def _array(items: Iterator[dict[str, Any]]) -> Iterator[str]:
    comma = ""
    for item in items:
        yield comma + dump(item).decode()
        comma = ","


def _round_json(row: Round) -> dict[str, Any]:
    return {
        "number": row.number,
        "cause": row.cause,
        "package": row.package or None,
        "created_at": json_shapes.when(row.created_at),
    }


def _turns(dialog: Dialog) -> QuerySet[Turn]:
    return dialog.turns.select_related("generation__snapshot", "author")


def _in_batches(rows: QuerySet[Row], by: str) -> Iterator[Row]:
    """Read rows in batches, so that no cursor stays open between two pieces."""
    last = 0
    while batch := list(rows.filter(**{f"{by}__gt": last}).order_by(by)[:BATCH]):
        yield from batch
        last = getattr(batch[-1], by)
