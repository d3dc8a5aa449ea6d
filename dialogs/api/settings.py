"""A person's display settings and, for staff, the pruning agent that holds for everybody."""

from typing import Annotated, Any, Literal

from django.db.models import QuerySet
from ninja import Router, Schema
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from dialogs.accounts import login
from dialogs.api.auth import PersonRequest
from dialogs.api.lists import Text
from dialogs.errors import Invalid, Refusal
from dialogs.models import Agent, PersonSettings, PromptTemplate, SiteSettings
from dialogs.models.settings import zone_named
from dialogs.permissions import OPERATE, may

router = Router(tags=["settings"])


def _known_zone(name: str) -> str:
    if name and str(zone_named(name)) != name:
        raise ValueError("expected the IANA name of a time zone, such as Europe/Berlin")
    return name


class SettingsChange(BaseModel):
    """A change of the settings that are named. Not a ``Schema``, which would drop unknown names silently."""

    model_config = ConfigDict(extra="allow")

    theme: Literal["system", "light", "dark"] = "system"
    language: Literal["", "en", "zh-hans"] = Field("", description="of the pages; empty: what the browser prefers")
    zone: Annotated[str, AfterValidator(_known_zone)] = Field(
        "",
        max_length=64,
        description="of times and days, an IANA name such as Asia/Kolkata; empty: that of the browser",
    )
    notifications: bool = False
    show_breaking_progress: bool = True
    progress_detail: Literal["minimal", "normal", "detailed"] = "normal"
    auto_hide_seconds: int = Field(3, ge=1, le=10)
    highlight_p1: bool = True
    recall: bool = True
    pruning_agent: Text | None = Field(
        None, description="an agent's id; null: the same as the current agent. Staff only"
    )


DISPLAY = [name for name in SettingsChange.model_fields if name != "pruning_agent"]


class TemplateOut(Schema):
    name: str
    text: str


class StaffOnly(Refusal):
    status, code = 403, "staff_only"


@router.get("/settings")
def get_settings(request: PersonRequest) -> dict[str, Any]:
    own = login.settings_of(request.auth)
    shown: dict[str, Any] = {name: getattr(own, name) for name in DISPLAY}
    if may(request.auth, OPERATE):
        shown["pruning_agent"] = SiteSettings.current().pruning_agent_id
    return shown


@router.patch("/settings")
def change_settings(request: PersonRequest, given: SettingsChange) -> dict[str, Any]:
    if unknown := ", ".join(given.model_extra or {}):
        raise Invalid(
            f"Nothing was changed: there is no setting {unknown}. There are {', '.join(DISPLAY)}, pruning_agent."
        )
    changes = given.model_dump(exclude_unset=True)
    if "pruning_agent" in changes:
        _set_pruning_agent(request, changes.pop("pruning_agent"))
    if changes:
        PersonSettings.objects.update_or_create(user=request.auth, defaults=changes)
    return get_settings(request)


@router.get("/templates", response=list[TemplateOut])
def list_templates(request: PersonRequest) -> QuerySet[PromptTemplate]:
    """List a person's own texts to begin messages with, by name."""
    return PromptTemplate.objects.filter(owner=request.auth)


def _set_pruning_agent(request: PersonRequest, agent_id: str | None) -> None:
    if not may(request.auth, OPERATE):
        raise StaffOnly("pruning_agent holds for everybody; only staff may change it.")
    if agent_id is not None and not Agent.objects.filter(pk=agent_id, enabled=True).exists():
        raise Invalid(f"pruning_agent: there is no agent {agent_id!r}. GET /api/agents lists them.")
    SiteSettings.objects.update_or_create(singleton=True, defaults={"pruning_agent_id": agent_id})
