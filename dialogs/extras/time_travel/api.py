"""Requests as they were sent, the timeline of a dialog's calls, and comparisons of two requests."""

from typing import Any
from uuid import UUID

from ninja import Query, Router, Schema
from pydantic import Field

from dialogs.actions import access
from dialogs.api.auth import PersonRequest
from dialogs.api.lists import LARGEST
from dialogs.api.schemas import DiffOut, MomentOut, RequestOut
from dialogs.errors import NotFound
from dialogs.models import Dialog, Generation
from dialogs.pages.dialog_page import DialogPage
from dialogs.pages.story import marks_of
from dialogs.queries.moments import MOST, moment_json, moment_of, moments
from dialogs.queries.request_diff import diff
from dialogs.queries.sent_requests import Piece, sent_request

router = Router(tags=["context"])


class MomentWindow(Schema):
    """A window of calls. ``before`` is the first call that the caller has."""

    before: int | None = Field(None, ge=1, le=LARGEST)
    limit: int = Field(MOST, ge=1, le=MOST)


class PieceWindow(Schema):
    """A window of pieces. ``after`` is the number of pieces that the caller has."""

    after: int = Field(0, ge=0, le=LARGEST)
    limit: int = Field(100, ge=1, le=1000)


class Other(Schema):
    with_: int = Field(alias="with", ge=1, le=LARGEST, description="the other call")


@router.get("/dialogs/{uuid:dialog_id}/timeline", response=list[MomentOut])
def get_timeline(request: PersonRequest, dialog_id: UUID, window: Query[MomentWindow]) -> list[dict[str, Any]]:
    """Return the newest calls for answers and clears, oldest first: sizes, parts, thresholds, events around them."""
    page = DialogPage(access.visible_dialog(dialog_id, request.auth), request.auth)
    value = moments(page.dialog, window.before, window.limit)
    marks = marks_of(page, value, window.before)
    return [moment_json(moment, [(act.kind, act.title) for act in marks[moment.key]]) for moment in value]


@router.get("/dialogs/{uuid:dialog_id}/generations/{int:generation_id}/request", response=RequestOut)
def get_request(
    request: PersonRequest, dialog_id: UUID, generation_id: int, window: Query[PieceWindow]
) -> dict[str, Any]:
    """Return the request of one call, rebuilt from rows and compared with the hash of what was sent."""
    generation = _generation(access.visible_dialog(dialog_id, request.auth), generation_id)
    sent = sent_request(generation)
    end = window.after + window.limit
    return {
        "call": moment_json(moment_of(generation)),
        "is_equal": not sent.differs,
        "differs": sent.differs or None,
        "pieces": [_piece(piece) for piece in sent.pieces[window.after : end]],
        "more": len(sent.pieces) > end,
    }


@router.get("/dialogs/{uuid:dialog_id}/generations/{int:generation_id}/compare", response=DiffOut)
def compare_requests(
    request: PersonRequest, dialog_id: UUID, generation_id: int, other: Query[Other]
) -> dict[str, Any]:
    """Compare two requests of a dialog piece by piece, the earlier one first."""
    dialog = access.visible_dialog(dialog_id, request.auth)
    before, after = (_generation(dialog, pk) for pk in sorted((generation_id, other.with_)))
    left, right = sent_request(before), sent_request(after)
    value = diff(left.pieces, right.pieces)
    rows = [
        {
            "kind": row.kind,
            "alike": row.alike,
            "before": row.before and _piece(row.before),
            "after": row.after and _piece(row.after),
            "lines": list(row.lines),
        }
        for row in value.rows
    ]
    differs = [sent.differs for sent in (left, right) if sent.differs]
    return {"before": before.pk, "after": after.pk, "differs": differs, "rows": rows, "is_cut": value.is_cut}


def _generation(dialog: Dialog, pk: int) -> Generation:
    value = dialog.generations.select_related("snapshot").filter(pk=min(pk, LARGEST)).first()
    if value is None:
        raise NotFound("There is no such call.")
    return value


def _piece(piece: Piece) -> dict[str, Any]:
    return {
        "category": piece.category.value,
        "label": piece.label,
        "text": piece.text or None,
        "chars": piece.chars,
        "turns": list(piece.turns),
        "prompts": list(piece.prompts),
    }
