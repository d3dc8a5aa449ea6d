"""Statistics of costs, for programs."""

from dataclasses import asdict
from typing import Any

from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

from dialogs.api.auth import PersonRequest
from dialogs.api.lists import Text
from dialogs.extras.operations import costs
from dialogs.store.json_shapes import usd

router = Router(tags=["settings"])


class Choice(Schema):
    """Filters of calls. Only operators may name another ``person``, or ``*`` for everybody."""

    day: Text = Field("", description="as `2026-11-30`")
    model: Text = Field("", description="as `provider/model`")
    agent: Text = ""
    person: Text = ""


class CostOut(Schema):
    """Sums of calls. ``cost_usd`` leaves out the calls without a known price, which ``unpriced`` counts."""

    name: str
    calls: int
    prompt_tokens: int
    cache_read_tokens: int
    completion_tokens: int
    cost_usd: str
    unpriced: int


class StatisticsOut(Schema):
    """The same two weeks four times: by day, newest first, and by model, agent and person, most expensive first."""

    days: int
    zone: str
    person: str
    day: list[CostOut]
    model: list[CostOut]
    agent: list[CostOut]
    by_person: list[CostOut]


@router.get("/statistics", response=StatisticsOut)
def statistics(request: PersonRequest, choice: Query[Choice]) -> dict[str, Any]:
    """Return the costs of the caller's calls of the last two weeks."""
    held = costs.narrow(request.auth, choice.dict())
    tables = {table.by: [_json(name, cost) for name, cost in table.rows] for table in costs.tables(held)}
    return {
        "days": costs.DAYS,
        "zone": timezone.get_current_timezone_name(),
        "person": held.get("person", costs.EVERYBODY),
        "day": tables["day"],
        "model": tables["model"],
        "agent": tables["agent"],
        "by_person": tables["person"],
    }


def _json(name: str, cost: costs.Cost) -> dict[str, Any]:
    return {"name": name, **asdict(cost), "cost_usd": usd(cost.cost_usd)}
