"""Actions on one turn: branches of the dialog, versions, feedback."""

from typing import Any, Literal
from uuid import UUID

from ninja import Router, Schema, Status
from pydantic import Field

from dialogs.actions import access, forks, turn_marks
from dialogs.api.auth import PersonRequest
from dialogs.api.lists import Text
from dialogs.api.schemas import DialogOut, VersionOut
from dialogs.errors import NotFound
from dialogs.models import Dialog
from dialogs.pages.versions import versions_of
from dialogs.queries import overviews

router = Router(tags=["turns"])


class BranchIn(Schema):
    request_id: Text = Field("", max_length=120, description="makes the call safe to repeat")


class RegenerateIn(BranchIn):
    provider: Text = Field("", max_length=80, description="the dialog's own by default")
    model: Text = Field("", max_length=120, description="the dialog's own by default")


class EditIn(BranchIn):
    text: str


class FeedbackIn(Schema):
    feedback: Literal["up", "down"] | None


class PinIn(Schema):
    pinned: bool


@router.post("/dialogs/{uuid:dialog_id}/turns/{int:seq}/fork", response={201: DialogOut})
def fork(request: PersonRequest, dialog_id: UUID, seq: int, given: BranchIn) -> Status[dict[str, Any]]:
    """Make a dialog that begins with everything up to this turn."""
    return _answer_branch(request, forks.fork(_branch(request, dialog_id, seq, given)))


@router.post("/dialogs/{uuid:dialog_id}/turns/{int:seq}/regenerate", response={201: DialogOut})
def regenerate(request: PersonRequest, dialog_id: UUID, seq: int, given: RegenerateIn) -> Status[dict[str, Any]]:
    """Make a dialog in which the message of this turn is answered once more, perhaps by another model."""
    branch = _branch(request, dialog_id, seq, given)
    return _answer_branch(request, forks.regenerate(branch, given.provider, given.model))


@router.post("/dialogs/{uuid:dialog_id}/turns/{int:seq}/edit", response={201: DialogOut})
def edit(request: PersonRequest, dialog_id: UUID, seq: int, given: EditIn) -> Status[dict[str, Any]]:
    """Make a dialog in which this message is sent in another wording, with its files."""
    return _answer_branch(request, forks.edit(_branch(request, dialog_id, seq, given), given.text))


@router.get("/dialogs/{uuid:dialog_id}/turns/{int:seq}/versions", response=list[VersionOut])
def list_versions(request: PersonRequest, dialog_id: UUID, seq: int) -> list[dict[str, Any]]:
    """List the dialogs that hold a version of this turn, oldest first. The turn has the same position in each."""
    dialog = access.visible_dialog(dialog_id, request.auth)
    turn = dialog.turns.filter(seq=seq, position__isnull=False).first()
    if turn is None:
        raise NotFound(f"There is no turn {seq} in this dialog.")
    versions = versions_of(dialog, request.auth).get(turn.position or 0)
    if versions is None:
        return [{"dialog": dialog.pk, "current": True}]
    return [{"dialog": pk, "current": n == versions.number} for n, pk in enumerate(versions.dialogs, start=1)]


@router.put("/dialogs/{uuid:dialog_id}/turns/{int:seq}/feedback", response={204: None})
def rate(request: PersonRequest, dialog_id: UUID, seq: int, given: FeedbackIn) -> Status[None]:
    """Rate an answer for a person; null takes the rating back."""
    turn_marks.rate(access.writable_dialog(dialog_id, request.auth).pk, seq, given.feedback or "")
    return Status(204, None)


@router.put("/dialogs/{uuid:dialog_id}/turns/{int:seq}/pin", response={204: None})
def pin(request: PersonRequest, dialog_id: UUID, seq: int, given: PinIn) -> Status[None]:
    """Pin a turn, so that it is recalled first in each request."""
    turn_marks.choose_recall(access.writable_dialog(dialog_id, request.auth).pk, seq, "pinned" if given.pinned else "")
    return Status(204, None)


def _branch(request: PersonRequest, dialog_id: UUID, seq: int, given: BranchIn) -> forks.Branch:
    return forks.Branch(access.writable_dialog(dialog_id, request.auth).pk, seq, request.auth, given.request_id)


def _answer_branch(request: PersonRequest, made: Dialog) -> Status[dict[str, Any]]:
    return Status(201, overviews.describe_dialog(access.visible_dialog(made.pk, request.auth)))
