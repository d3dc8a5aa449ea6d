"""Search of a dialog, and of all dialogs that a person takes part in."""

from typing import Annotated, Any, Literal
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from dialogs.actions import access
from dialogs.api.auth import PersonRequest
from dialogs.api.lists import Text
from dialogs.api.schemas import FoundTurn
from dialogs.context.retrieval import search

MOST_FOUND = 50
SEARCHED = "X-Dominds-Searched"
Searched = Literal["all", "newest"]

router = Router(tags=["search"])
_DESCRIBED = {
    "responses": {
        200: {
            "headers": {
                SEARCHED: {
                    "description": "`newest` where older messages were not looked at, else `all`",
                    "schema": {"type": "string", "enum": ["all", "newest"]},
                }
            }
        }
    }
}


class Wanted(Schema):
    q: Text = Field("", max_length=search.MOST_QUERY_CHARS)
    limit: int = Field(10, ge=1, le=MOST_FOUND)


@router.get("/dialogs/{uuid:dialog_id}/search", response=list[FoundTurn], openapi_extra=_DESCRIBED)
def search_dialog(
    request: PersonRequest, response: HttpResponse, dialog_id: UUID, wanted: Query[Wanted]
) -> list[dict[str, Any]]:
    """Find turns of all rounds that bear on `q`, best first. While the words of a long dialog are still being indexed,
    only its newest messages are searched, and the header `X-Dominds-Searched` says `newest`."""
    result, response[SEARCHED] = found_in_dialog(request.auth, dialog_id, wanted)
    return result


@router.get("/search", response=list[FoundTurn], openapi_extra=_DESCRIBED)
def search_all(
    request: PersonRequest,
    response: HttpResponse,
    wanted: Query[Wanted],
    all_of_it: Annotated[
        bool, Query(alias="all", description="look at every message, not at some 20,000 of the newest")
    ] = False,
) -> list[dict[str, Any]]:
    """Find turns of the dialogs that the caller takes part in, best first. Some 20,000 of their newest messages are
    searched, at most 1,000 of a dialog; if there are older ones, the header `X-Dominds-Searched` says `newest`. With
    `all=true` every message is searched, which is slower, and the header says `all`."""
    result, response[SEARCHED] = found_everywhere(request.auth, wanted, all_of_it=all_of_it)
    return result


def found_in_dialog(person: User, dialog_id: UUID, wanted: Wanted) -> tuple[list[dict[str, Any]], Searched]:
    dialog = access.visible_dialog(dialog_id, person)
    hits = search.in_turns(dialog.pk, wanted.q, wanted.limit)
    results = [{"dialog": dialog.pk, "title": dialog.title, **hit_json(hit, "seq")} for hit in hits]
    return results, "newest" if search.searches_newest(dialog.pk) else "all"


def found_everywhere(person: User, wanted: Wanted, *, all_of_it: bool) -> tuple[list[dict[str, Any]], Searched]:
    hits, leaves_out = search.everywhere(person, wanted.q, wanted.limit, all_of_it=all_of_it)
    results = [{"dialog": row.dialog_id, "title": row.title, **hit_json(row.hit, "seq")} for row in hits]
    return results, "newest" if leaves_out else "all"


def hit_json(hit: search.Hit, number: Literal["seq", "id"]) -> dict[str, Any]:
    return {**_text_json(hit.text, number), "beside": [_text_json(text, number) for text in hit.beside]}


def _text_json(text: search.Text, number: str) -> dict[str, Any]:
    shown, marks = "", []
    for part in text.parts:
        if part.is_match:
            marks.append([len(shown), len(shown) + len(part.text)])
        shown += part.text
    return {number: text.number, "text": shown, "marks": marks}
