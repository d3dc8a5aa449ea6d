"""Imports, for programs."""

from typing import Any
from uuid import UUID

from ninja import File, Form, Router, Schema, UploadedFile

from dialogs.api.auth import PersonRequest
from dialogs.errors import Invalid
from dialogs.extras.imports.files import UnknownExport
from dialogs.extras.imports.store import Imported
from dialogs.extras.imports.upload import import_upload
from dialogs.models import Agent

router = Router(tags=["dialogs"])


class ImportedOut(Schema):
    """The report on one conversation. ``dialog`` holds it, and ``reason`` says why there is no new dialog. ``left_out``
    counts what was not taken over, by kind.
    """

    title: str
    messages: int
    left_out: dict[str, int]
    reason: str | None
    dialog: UUID | None


@router.post("/import", response=list[ImportedOut])
def import_export(
    request: PersonRequest, file: File[UploadedFile], agent: Form[str], dry_run: Form[bool] = False
) -> list[dict[str, Any]]:
    """Import the conversations of an export for an agent, each once. One call makes at most 500 new dialogs; send the
    same file again for the next ones.
    """
    chosen = Agent.objects.filter(pk=agent, enabled=True).first()
    if chosen is None:
        raise Invalid(f"There is no agent {agent!r}. GET /api/agents lists them.")
    try:
        return [_json(result) for result in import_upload(file, request.auth, chosen, dry_run=dry_run)]
    except UnknownExport as error:
        raise Invalid(str(error)) from None


def _json(result: Imported) -> dict[str, Any]:
    return {
        "title": result.title,
        "messages": result.messages,
        "left_out": dict(result.left_out),
        "reason": result.reason or None,
        "dialog": result.dialog and result.dialog.pk,
    }
