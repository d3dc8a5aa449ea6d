"""What model calls cost, by day, model, agent and person: of reported tokens, by the catalog's prices of their time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from dialogs.models import EmbeddingUse, Generation
from dialogs.operations.dashboard import first_generation_since

DAYS = 14


@dataclass(frozen=True, slots=True)
class Cost:
    """Sums of some calls. ``cost_usd`` leaves out those without a known price, which ``unpriced`` counts."""

    calls: int = 0
    prompt_tokens: int = 0
    cache_read_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    unpriced: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cost_usd + other.cost_usd,
            self.unpriced + other.unpriced,
        )


@dataclass(frozen=True, slots=True)
class _Group:
    day: date
    model: str
    agent: str
    person: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class Table:
    by: str
    rows: list[tuple[str, Cost]]


def tables() -> list[Table]:
    """The same two weeks four times; the newest day first, else what cost most."""
    groups = _groups()
    days = _added(groups, lambda group: group.day.isoformat())
    kinds: list[tuple[str, Callable[[_Group], str]]] = [
        ("model", lambda group: group.model),
        ("agent", lambda group: group.agent),
        ("person", lambda group: group.person),
    ]
    costly = [(by, _added(groups, key)) for by, key in kinds]
    return [
        Table("day", sorted(days.items(), reverse=True)),
        *(Table(by, sorted(sums.items(), key=lambda row: (-row[1].cost_usd, row[0]))) for by, sums in costly),
    ]


def _added(groups: list[_Group], key: Callable[[_Group], str]) -> dict[str, Cost]:
    sums: dict[str, Cost] = {}
    for group in groups:
        sums[key(group)] = sums.get(key(group), Cost()) + group.cost
    return sums


def _groups() -> list[_Group]:
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    first = first_generation_since(today - timedelta(days=DAYS - 1))
    ended = Generation.objects.filter(pk__gte=first).exclude(outcome=Generation.Outcome.RUNNING)
    labels = ("day", "provider", "model", "dialog__agent_id", "dialog__owner__username")
    sums = {
        "calls": Count("pk"),
        "prompt": Sum("prompt_tokens", default=0),
        "cache_read": Sum("cache_read_tokens", default=0),
        "completion": Sum("completion_tokens", default=0),
        "cost": Sum("cost_usd", default=Decimal(0)),
        "unpriced": Count("pk", filter=Q(cost_usd=None) & ~Q(outcome=Generation.Outcome.FAILED)),
    }
    rows = ended.order_by().annotate(day=TruncDate("started_at")).values_list(*labels).annotate(**sums)
    embeddings = EmbeddingUse.objects.filter(day__gt=today.date() - timedelta(days=DAYS)).values_list(
        "day", "provider", "model", "agent", "person__username", "calls", "prompt_tokens", "cost_usd", "unpriced"
    )
    return [
        *(
            _Group(day, f"{provider}/{model}", agent, person, Cost(*added))
            for day, provider, model, agent, person, *added in rows
        ),
        *(
            _Group(day, f"{provider}/{model}", agent, person, Cost(calls, tokens, 0, 0, cost, unpriced))
            for day, provider, model, agent, person, calls, tokens, cost, unpriced in embeddings
        ),
    ]
