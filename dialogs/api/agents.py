"""Agents."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from dialogs.api.schemas import AgentOut
from dialogs.models import Agent
from dialogs.queries import overviews

router = Router(tags=["agents"])


@router.get("/agents", response=list[AgentOut])
def list_agents(request: HttpRequest) -> list[dict[str, Any]]:
    """List all agents; one that cannot answer now says why."""
    return overviews.describe_agents(Agent.objects.filter(enabled=True).order_by("pk"))
