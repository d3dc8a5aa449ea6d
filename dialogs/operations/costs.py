"""Cost of model calls, by day, model, agent and person: of reported tokens, by the catalog's prices of their time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType

from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet, Sum, Value
from django.db.models.functions import Concat, TruncDate
from django.utils import timezone

from dialogs.models import Dialog, EmbeddingUse, Generation
from dialogs.operations.dashboard import first_generation_since

DAYS = 14
NEWEST = 20
Chosen = Mapping[str, str]  # some of ``KEYS``, with the value that calls are to have
ALL: Chosen = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Cost:
    """Sums of some calls. ``cost_usd`` leaves out those without a known price, which ``unpriced`` counts."""

    calls: int = 0
    prompt_tokens: int = 0
    cache_read_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

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


KEYS: dict[str, Callable[[_Group], str]] = {
    "day": lambda group: group.day.isoformat(),
    "model": lambda group: group.model,
    "agent": lambda group: group.agent,
    "person": lambda group: group.person,
}
_COLUMNS = {"day": "day", "model": "name", "agent": "dialog__agent", "person": "dialog__owner__username"}


@dataclass(frozen=True, slots=True)
class Table:
    by: str
    rows: list[tuple[str, Cost]]


def tables(chosen: Chosen = ALL) -> list[Table]:
    """The same two weeks four times; the newest day first, else what cost most, then what took most tokens."""
    groups = [group for group in _groups() if all(KEYS[by](group) == value for by, value in chosen.items())]
    days, *others = ((by, _added(groups, key)) for by, key in KEYS.items())
    return [Table("day", sorted(days[1].items(), reverse=True)), *(Table(by, _ranked(sums)) for by, sums in others)]


def _ranked(sums: dict[str, Cost]) -> list[tuple[str, Cost]]:
    return sorted(sums.items(), key=lambda row: (-row[1].cost_usd, -row[1].tokens, row[0]))


def by_day(table: Table) -> list[tuple[datetime, Cost]]:
    """All days, the oldest first."""
    found = dict(table.rows)
    days = (_first_day() + timedelta(days=number) for number in range(DAYS))
    return [(day, found.get(day.date().isoformat(), Cost())) for day in days]


def calls(viewer: User, chosen: Chosen = ALL) -> QuerySet[Generation]:
    """The newest of them, in dialogs that this person may open."""
    found = _ended().annotate(day=TruncDate("started_at"), name=Concat("provider", Value("/"), "model"))
    found = found.filter(dialog__in=Dialog.objects.for_user(viewer), **{_COLUMNS[by]: chosen[by] for by in chosen})
    return found.select_related("dialog").order_by("-pk")[:NEWEST]


def _added(groups: list[_Group], key: Callable[[_Group], str]) -> dict[str, Cost]:
    sums: dict[str, Cost] = {}
    for group in groups:
        sums[key(group)] = sums.get(key(group), Cost()) + group.cost
    return sums


def _groups() -> list[_Group]:
    labels = ("day", "provider", "model", "dialog__agent_id", "dialog__owner__username")
    sums = {
        "calls": Count("pk"),
        "prompt": Sum("prompt_tokens", default=0),
        "cache_read": Sum("cache_read_tokens", default=0),
        "completion": Sum("completion_tokens", default=0),
        "cost": Sum("cost_usd", default=Decimal(0)),
        "unpriced": Count("pk", filter=Q(cost_usd=None) & ~Q(outcome=Generation.Outcome.FAILED)),
    }
    rows = _ended().order_by().annotate(day=TruncDate("started_at")).values_list(*labels).annotate(**sums)
    embeddings = EmbeddingUse.objects.filter(day__gte=_first_day().date()).values_list(
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


def _first_day() -> datetime:
    return timezone.now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=DAYS - 1)


def _ended() -> QuerySet[Generation]:
    first = first_generation_since(_first_day())
    return Generation.objects.filter(pk__gte=first).exclude(outcome=Generation.Outcome.RUNNING)
