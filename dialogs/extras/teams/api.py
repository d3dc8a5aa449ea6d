"""The team of a dialog, for programs."""

from typing import Any
from uuid import UUID

from ninja import Router, Schema, Status
from pydantic import Field

from dialogs.actions import access, messages
from dialogs.api.auth import PersonRequest
from dialogs.api.lists import LARGEST, Text
from dialogs.api.schemas import Health
from dialogs.errors import NotFound
from dialogs.extras.teams import rules, task_document
from dialogs.extras.teams.models import TaskRevision
from dialogs.extras.teams.team import Member, Team, team_of
from dialogs.store import json_shapes

router = Router(tags=["dialogs"])


class MemberOut(Schema):
    id: UUID
    parent: UUID
    level: int
    name: str
    agent: str
    task: str
    state: str
    standing: str
    at_work: bool
    health: Health
    question: UUID | None
    newest: str
    seconds: int
    cost_usd: str
    unpriced_generations: int
    asked_at: str
    answered_at: str | None
    ended_at: str | None
    reason: str | None


class TaskOut(Schema):
    version: int
    sections: dict[str, str]
    section: str | None
    author: str | None
    dialog: UUID | None
    created_at: str | None


class TaskEdit(Schema):
    section: Text
    text: Text = ""
    version: int = Field(ge=0, le=LARGEST, description="the version that was read; an edit of an older one is refused")


class TeamOut(Schema):
    root: UUID
    at_work: int
    cost_usd: str
    unpriced_generations: int
    worst_level: str
    members: list[MemberOut]


@router.get("/dialogs/{uuid:dialog_id}/team", response=TeamOut)
def get_team(request: PersonRequest, dialog_id: UUID) -> dict[str, Any]:
    """Return the side dialogs of the team that this dialog belongs to, each below the one that asked it. The sums hold
    the root's own cost as well.
    """
    dialog = access.visible_dialog(dialog_id, request.auth)
    return _shape(team_of(dialog) or Team(dialog, ()))


@router.delete("/dialogs/{uuid:dialog_id}/team/{uuid:side_id}", response={204: None})
def end_side_dialog(request: PersonRequest, dialog_id: UUID, side_id: UUID) -> Status[None]:
    """End one side dialog for good, with all below it; its parent reads that a person did so."""
    team = team_of(access.writable_dialog(dialog_id, request.auth))
    if team is None or side_id not in {member.dialog.pk for member in team.members}:
        raise NotFound("There is no such side dialog in this team.")
    messages.close(side_id, request.auth)
    return Status(204, None)


@router.get("/dialogs/{uuid:dialog_id}/team/task", response=TaskOut)
def get_task(request: PersonRequest, dialog_id: UUID) -> dict[str, Any]:
    """Return the task document of the team that this dialog belongs to, as it is now."""
    dialog = access.visible_dialog(dialog_id, request.auth)
    return _task(task_document.newest(task_document.root_of(dialog)))


@router.put("/dialogs/{uuid:dialog_id}/team/task", response=TaskOut)
def edit_task(request: PersonRequest, dialog_id: UUID, given: TaskEdit) -> dict[str, Any]:
    """Write one section of the task document anew. 409 ``stale_version`` says what changed since it was read."""
    dialog = access.writable_dialog(dialog_id, request.auth)
    return _task(task_document.edit(dialog, given.section, given.text, given.version, request.auth))


def _task(revision: TaskRevision) -> dict[str, Any]:
    return {
        "version": revision.version,
        "sections": revision.sections,
        "section": revision.section or None,
        "author": revision.author.get_username() if revision.author else None,
        "dialog": revision.by_dialog_id,
        "created_at": json_shapes.when(revision.created_at) if revision.version else None,
    }


def _shape(team: Team) -> dict[str, Any]:
    return {
        "root": team.root.pk,
        "at_work": team.at_work,
        "cost_usd": json_shapes.usd(team.spent.usd),
        "unpriced_generations": team.spent.unpriced,
        "worst_level": team.worst,
        "members": [_member(member) for member in team.members],
    }


def _member(member: Member) -> dict[str, Any]:
    side, dialog = member.side, member.dialog
    return {
        "id": dialog.pk,
        "parent": side.parent_id,
        "level": side.level,
        "name": side.name,
        "agent": dialog.agent_id,
        "task": rules.shorten(side.task, 2_000),
        "state": dialog.state,
        "standing": member.standing,
        "at_work": member.is_at_work,
        "health": member.health,
        "question": member.question and member.question.pk,
        "newest": member.newest,
        "seconds": member.seconds,
        "cost_usd": json_shapes.usd(dialog.known_cost),
        "unpriced_generations": dialog.unpriced_generations,
        "asked_at": json_shapes.when(side.asked_at),
        "answered_at": side.answered_at and json_shapes.when(side.answered_at),
        "ended_at": side.ended_at and json_shapes.when(side.ended_at),
        "reason": side.reason or None,
    }
