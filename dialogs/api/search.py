"""Search of a dialog, and of all dialogs that a person takes part in."""

from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Query, Router, Schema
from pydantic import Field

from dialogs.actions import messages
from dialogs.api.auth import PersonRequest
from dialogs.api.lists import Text
from dialogs.api.schemas import FoundTurn
from dialogs.context.retrieval import search

MOST_FOUND = 50

router = Router(tags=["search"])


class Wanted(Schema):
    q: Text = Field("", max_length=search.MOST_QUERY_CHARS)
    limit: int = Field(10, ge=1, le=MOST_FOUND)


@router.get("/dialogs/{uuid:dialog_id}/search", response=list[FoundTurn])
def search_dialog(request: PersonRequest, dialog_id: UUID, wanted: Query[Wanted]) -> list[dict[str, Any]]:
    """Turns of all rounds that bear on ``q``, best first."""
    dialog = messages.owned(dialog_id, request.auth)
    hits = search.in_turns(dialog.pk, wanted.q, wanted.limit)
    return [{"dialog": dialog.pk, "title": dialog.title, **hit_json(hit, "seq")} for hit in hits]


@router.get("/search", response=list[FoundTurn])
def search_all(
    request: PersonRequest,
    wanted: Query[Wanted],
    all_of_it: Annotated[
        bool, Query(alias="all", description="look at every message, not at some 20,000 of the newest")
    ] = False,
) -> list[dict[str, Any]]:
    """Turns of the dialogs that the caller takes part in, best first."""
    found = search.everywhere(request.auth, wanted.q, wanted.limit, all_of_it=all_of_it)
    return [{"dialog": one.dialog_id, "title": one.title, **hit_json(one.hit, "seq")} for one in found]


def hit_json(hit: search.Hit, number: Literal["seq", "id"]) -> dict[str, Any]:
    return {**_text_json(hit.text, number), "beside": [_text_json(text, number) for text in hit.beside]}


def _text_json(text: search.Text, number: str) -> dict[str, Any]:
    shown, marks = "", []
    for part in text.parts:
        if part.is_match:
            marks.append([len(shown), len(shown) + len(part.text)])
        shown += part.text
    return {number: text.number, "text": shown, "marks": marks}
