"""Dialogs: opening, listing, statistics and export."""

from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import StreamingHttpResponse
from django.utils import timezone
from ninja import Query, Router, Schema, Status
from pydantic import Field

from dialogs.actions import access, folders, messages, model_choice, sharing
from dialogs.api.auth import PersonRequest, bearer_of
from dialogs.api.lists import Text, UuidWindow, oldest_first
from dialogs.api.schemas import DialogOut, StatisticsOut
from dialogs.live.db_threads import in_db_thread
from dialogs.models import Dialog
from dialogs.queries import export, overviews, usage_totals

router = Router(tags=["dialogs"])


class NewDialog(Schema):
    agent: Text
    title: Text = Field("", max_length=200)


@router.post("/dialogs", response={201: DialogOut})
def create_dialog(request: PersonRequest, given: NewDialog) -> Status[dict[str, Any]]:
    origin = Dialog.Origin.KEY if bearer_of(request.headers.get("Authorization", "")) else Dialog.Origin.PERSON
    dialog = messages.create_dialog(request.auth, given.agent, given.title, origin=origin)
    return Status(201, overviews.describe_dialog(access.visible_dialog(dialog.pk, request.auth)))


@router.get("/dialogs", response=list[DialogOut])
def list_dialogs(request: PersonRequest, window: Query[UuidWindow]) -> list[dict[str, Any]]:
    """List the caller's own dialogs and those of their groups, or all for whoever has the permission. Dialogs that an
    agent opened are listed by the dialog above them.
    """
    visible = Dialog.objects.for_user(request.auth).exclude(origin=Dialog.Origin.AGENT)
    visible = visible.select_related("agent", "group")
    return overviews.describe_dialogs(oldest_first(visible, window))


@router.get("/dialogs/{uuid:dialog_id}", response=DialogOut)
def get_dialog(request: PersonRequest, dialog_id: UUID) -> dict[str, Any]:
    return overviews.describe_dialog(access.visible_dialog(dialog_id, request.auth))


class Sharing(Schema):
    group: Text | None = Field(max_length=150, description="the name of a group of the caller's, or null for nobody")


@router.patch("/dialogs/{uuid:dialog_id}", response=DialogOut)
def share_dialog(request: PersonRequest, dialog_id: UUID, given: Sharing) -> dict[str, Any]:
    """Share the dialog with a group, whose members may then read it and act in it. Only its owner may."""
    dialog = access.visible_dialog(dialog_id, request.auth)
    sharing.share(dialog.pk, given.group or "", request.auth)
    return overviews.describe_dialog(access.visible_dialog(dialog_id, request.auth))


@router.delete("/dialogs/{uuid:dialog_id}", response={204: None})
def delete_dialog(request: PersonRequest, dialog_id: UUID) -> Status[None]:
    """Hide the dialog now and remove it after 30 days. Only its owner may, while nothing runs or waits."""
    folders.delete_one(access.visible_dialog(dialog_id, request.auth), request.auth)
    return Status(204, None)


class ModelChoice(Schema):
    provider: Text = Field("", max_length=80, description="the dialog's own by default")
    model: Text = Field(max_length=120, description="empty: the agent's own")


@router.put("/dialogs/{uuid:dialog_id}/model", response=DialogOut)
def choose_model(request: PersonRequest, dialog_id: UUID, given: ModelChoice) -> dict[str, Any]:
    """Choose the model that answers from the next message on."""
    model_choice.choose(access.writable_dialog(dialog_id, request.auth).pk, given.provider, given.model, request.auth)
    return overviews.describe_dialog(access.visible_dialog(dialog_id, request.auth))


@router.get("/dialogs/{uuid:dialog_id}/statistics", response=StatisticsOut)
def get_statistics(request: PersonRequest, dialog_id: UUID) -> dict[str, Any]:
    """Return the tokens of its model calls, as reported, and an estimate of the next request."""
    return usage_totals.statistics_of(access.visible_dialog(dialog_id, request.auth))


@router.get("/dialogs/{uuid:dialog_id}/export")
def export_dialog(
    request: PersonRequest, dialog_id: UUID, kind: Annotated[Literal["md", "json"], Query(alias="format")] = "json"
) -> StreamingHttpResponse:
    """Return the whole dialog as a file."""
    return send_export(access.visible_dialog(dialog_id, request.auth), kind)


def send_export(dialog: Dialog, kind: Literal["md", "json"]) -> StreamingHttpResponse:
    if kind == "md":
        return download(
            export.as_markdown(dialog, timezone.get_current_timezone()),
            f"dialog-{str(dialog.pk)[:8]}.md",
            "text/markdown",
        )
    return download(export.as_json(dialog), f"dialog-{str(dialog.pk)[:8]}.json", "application/json")


def download(pieces: Iterator[str], name: str, kind: str) -> StreamingHttpResponse:
    """Stream a file as a download. It holds texts of people and models, so it must not run as a page of this site."""
    answer = StreamingHttpResponse(_read_in_threads(pieces), content_type=f"{kind}; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["Content-Security-Policy"] = "sandbox"
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


async def _read_in_threads(pieces: Iterator[str]) -> AsyncIterator[str]:
    while (piece := await in_db_thread(next, pieces, None)) is not None:
        yield piece
