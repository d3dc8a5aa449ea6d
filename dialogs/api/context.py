"""The context that the model sees, rewrites of it by hand, and the archive of what they removed."""

from typing import Annotated, Any
from uuid import UUID

from ninja import Query, Router, Schema, Status
from pydantic import AfterValidator, Field

from dialogs.actions import access, rewrite_requests
from dialogs.api.auth import PersonRequest
from dialogs.api.lists import LARGEST, Text, Window
from dialogs.api.schemas import ContextOut, RecalledOut, RemediationOut, RemovedOut, StateOut, WholeRemediationOut
from dialogs.api.search import hit_json
from dialogs.errors import Conflict, NotFound
from dialogs.queries import context_report
from dominds.llm.catalog.catalog import UnknownModel
from remediation.models import RemediationRun, RemovedUnit
from remediation.policies.policy import ByHand
from remediation.policies.registry import by_hand

router = Router(tags=["context"])
PREVIEWS = ["", *(policy.by_hand.slug for policy in by_hand() if policy.by_hand)]


def _check_verb(slug: str) -> str:
    if slug not in PREVIEWS:
        raise ValueError(f"expected one of {', '.join(PREVIEWS[1:])}")
    return slug


Preview = Annotated[str, AfterValidator(_check_verb), Field(json_schema_extra={"enum": list(PREVIEWS)})]


class Package(Schema):
    reminder_content: Text


class Asked(Schema):
    text: Text = Field(min_length=1)


class ArchiveWindow(Window):
    q: Text = ""


class PreviewChoice(Schema):
    preview: Preview = Field("", description="what this rewrite would remove now")


@router.post("/dialogs/{uuid:dialog_id}/clear", response={202: StateOut})
def clear(request: PersonRequest, dialog_id: UUID, given: Package) -> Status[dict[str, str]]:
    """Begin a new round with this re-entry package. If a generation runs, the round begins after it."""
    dialog = access.writable_dialog(dialog_id, request.auth)
    return Status(202, {"state": rewrite_requests.clear(dialog.pk, given.reminder_content, request.auth)})


@router.post("/dialogs/{uuid:dialog_id}/clear/undo", response=RemediationOut)
def undo_clear(request: PersonRequest, dialog_id: UUID) -> dict[str, Any]:
    """Undo the clear that began the current round. A new round begins in which the model sees again what the clear
    removed, and then the turns since. The answer is this rewrite, and undoing it brings the clear back.
    """
    dialog = access.writable_dialog(dialog_id, request.auth)
    run = rewrite_requests.undo_clear(dialog.pk, request.auth, context_report.next_size)
    return context_report.remediation_json(run)


def _offer(hand: ByHand) -> None:
    """Add the call for one of the rewrites that people can ask for."""

    def rewrite(request: PersonRequest, dialog_id: UUID) -> Status[dict[str, str]]:
        dialog = access.writable_dialog(dialog_id, request.auth)
        return Status(202, {"state": rewrite_requests.request(dialog.pk, hand.verb, request.auth)})

    router.add_api_operation(
        f"/dialogs/{{uuid:dialog_id}}/{hand.slug}",
        ["POST"],
        rewrite,
        response={202: StateOut},
        operation_id=f"rewrite_{hand.verb}",
        summary=hand.button,
        description=hand.does,
    )


for policy in by_hand():
    if policy.by_hand:
        _offer(policy.by_hand)


@router.get("/dialogs/{uuid:dialog_id}/context", response=ContextOut, exclude_unset=True)
def get_context(request: PersonRequest, dialog_id: UUID, given: Query[PreviewChoice]) -> dict[str, Any]:
    """Return what the model would see now. All sizes are estimates."""
    dialog = access.visible_dialog(dialog_id, request.auth)
    try:
        return context_report.context_of(dialog, given.preview.replace("-", "_"))
    except UnknownModel as error:
        raise Conflict("agent_unusable", str(error)) from None


@router.post("/dialogs/{uuid:dialog_id}/recall", response=RecalledOut)
def try_recall(request: PersonRequest, dialog_id: UUID, given: Asked) -> dict[str, Any]:
    """Return what would be recalled beside a message with this text. Nothing is sent or stored."""
    dialog = access.visible_dialog(dialog_id, request.auth)
    try:
        return context_report.recalled_for(dialog, given.text)
    except UnknownModel as error:
        raise Conflict("agent_unusable", str(error)) from None


@router.get("/dialogs/{uuid:dialog_id}/remediations", response=list[RemediationOut])
def list_remediations(request: PersonRequest, dialog_id: UUID, window: Query[Window]) -> list[dict[str, Any]]:
    """List every rewrite, undone ones too."""
    runs = RemediationRun.objects.filter(dialog=access.visible_dialog(dialog_id, request.auth), pk__gt=window.after)
    return [context_report.remediation_json(run) for run in runs.order_by("pk")[: window.limit]]


@router.get("/dialogs/{uuid:dialog_id}/remediations/{int:run_id}", response=WholeRemediationOut)
def get_remediation(request: PersonRequest, dialog_id: UUID, run_id: int) -> dict[str, Any]:
    """Return one rewrite with the context before and after it, and what became of the facts in the removed units."""
    dialog = access.visible_dialog(dialog_id, request.auth)
    run = RemediationRun.objects.filter(dialog=dialog, pk=min(run_id, LARGEST)).first()
    if run is None:
        raise NotFound("There is no such rewrite in this dialog.")
    return context_report.whole_remediation_json(run)


@router.post("/dialogs/{uuid:dialog_id}/remediations/{int:run_id}/undo", response=RemediationOut)
def undo(request: PersonRequest, dialog_id: UUID, run_id: int) -> dict[str, Any]:
    """Undo the newest rewrite that is in force: the model sees again, word for word, what it removed."""
    dialog = access.writable_dialog(dialog_id, request.auth)
    return context_report.remediation_json(rewrite_requests.undo(min(run_id, LARGEST), request.auth, dialog.pk))


@router.get("/dialogs/{uuid:dialog_id}/archive", response=list[RemovedOut])
def list_archive(request: PersonRequest, dialog_id: UUID, window: Query[ArchiveWindow]) -> list[dict[str, Any]]:
    """List what rewrites removed, in full, oldest first. With ``q``, list what a search for it finds, best first;
    ``after`` is ignored then.
    """
    dialog = access.visible_dialog(dialog_id, request.auth)
    if not window.q:
        rows = context_report.archive(dialog).filter(pk__gt=window.after).order_by("pk")
        return [{**_unit_json(row), "found": None} for row in rows[: window.limit]]
    result = context_report.found_in_archive(dialog, window.q, window.limit)
    return [{**_unit_json(row), "found": hit_json(hit, "id")} for row, hit in result]


def _unit_json(row: RemovedUnit) -> dict[str, Any]:
    return {**context_report.removed_json(row), "text": row.text}
