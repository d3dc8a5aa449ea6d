"""Cost of model calls, by day, model, agent and person: of reported tokens, by the catalog's prices of their time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet, Sum, Value
from django.db.models.functions import Concat, TruncDate
from django.utils import timezone

from dialogs.models import DayOfCalls, Dialog, EmbeddingUse, Generation
from dialogs.operations.dashboard import first_generation_since

DAYS = 14
ONE_DAY = timedelta(days=1)
# The end of a day: by then what began in it is committed, and its worker known to be gone.
SETTLES_AFTER = timedelta(hours=1)
NEWEST = 20
ADDED_UP = 2_000  # of the newest calls, by their dialogs
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


@dataclass(frozen=True, slots=True)
class Table:
    by: str
    rows: list[tuple[str, Cost]]


def tables(chosen: Chosen = ALL) -> list[Table]:
    """The same two weeks four times; the newest day first, else what cost most, then what took most tokens."""
    groups = _groups(chosen)
    days, *others = ((by, _added(groups, key)) for by, key in KEYS.items())
    return [Table("day", sorted(days[1].items(), reverse=True)), *(Table(by, _ranked(sums)) for by, sums in others)]


def _ranked(sums: dict[str, Cost]) -> list[tuple[str, Cost]]:
    return sorted(sums.items(), key=lambda row: (-row[1].cost_usd, -row[1].tokens, row[0]))


def by_day(table: Table) -> list[tuple[datetime, Cost]]:
    """All days, the oldest first."""
    result = dict(table.rows)
    days = (_first_day() + timedelta(days=number) for number in range(DAYS))
    return [(day, result.get(day.date().isoformat(), Cost())) for day in days]


def calls(viewer: User, chosen: Chosen = ALL) -> QuerySet[Generation]:
    """The newest of them, in dialogs that this person may open."""
    return _newest(viewer, chosen).select_related("dialog__agent")[:NEWEST]


def dialogs(viewer: User, chosen: Chosen) -> list[tuple[Dialog, Cost]]:
    """Those that the newest of these calls were made in, as far as this person may open them; what cost most first."""
    newest = _newest(viewer, chosen).values("pk")[:ADDED_UP]
    rows = Generation.objects.filter(pk__in=newest).order_by().values_list("dialog").annotate(**_SUMS)
    sums = _ranked({str(dialog): Cost(*added) for dialog, *added in rows})[:NEWEST]
    result = Dialog.objects.select_related("agent").in_bulk([UUID(dialog) for dialog, _ in sums])
    return [(result[UUID(dialog)], cost) for dialog, cost in sums if UUID(dialog) in result]


def _newest(viewer: User, chosen: Chosen) -> QuerySet[Generation]:
    results = _ended(_calls_since(_first_day())).filter(**_of(chosen, *_OF_CALLS))
    return results.filter(dialog__in=Dialog.objects.for_user(viewer)).order_by("-pk")


def _added(groups: list[_Group], key: Callable[[_Group], str]) -> dict[str, Cost]:
    sums: dict[str, Cost] = {}
    for group in groups:
        sums[key(group)] = sums.get(key(group), Cost()) + group.cost
    return sums


def _groups(chosen: Chosen) -> list[_Group]:
    """Days that were summed up from their sums, and the calls since."""
    first = _first_day()
    live = _ended(_calls_since(_not_summed_up(first))).filter(**_of(chosen, *_OF_CALLS)).order_by()
    beside: list[QuerySet[Any]] = [DayOfCalls.objects.all(), EmbeddingUse.objects.annotate(**_NO_OTHERS)]
    stored = [
        kept.filter(day__gte=first.date())
        .annotate(name=_NAME)
        .filter(**_of(chosen, "agent", "person__username"))
        .values_list(*_LABELS, "agent", "person__username", *_STORED)
        for kept in beside
    ]
    result = chain(live.values_list(*_LABELS, *_OF_CALLS).annotate(**_SUMS), *stored)
    return [_Group(day, name, agent, person, Cost(*sums)) for day, name, agent, person, *sums in result]


_NAME = Concat("provider", Value("/"), "model")
_LABELS = ("day", "name")
_OF_CALLS = ("dialog__agent", "dialog__owner__username")
_SUMS: dict[str, Any] = {
    "calls": Count("pk"),
    "prompt": Sum("prompt_tokens", default=0),
    "cache_read": Sum("cache_read_tokens", default=0),
    "completion": Sum("completion_tokens", default=0),
    "cost": Sum("cost_usd", default=Decimal(0)),
    "unpriced": Count("pk", filter=Q(cost_usd=None) & ~Q(outcome=Generation.Outcome.FAILED)),
}
_STORED = ("calls", "prompt_tokens", "cache_read_tokens", "completion_tokens", "cost_usd", "unpriced")
_NO_OTHERS = {"cache_read_tokens": Value(0), "completion_tokens": Value(0)}  # embeddings have none


def _of(chosen: Chosen, agent: str, person: str) -> dict[str, str]:
    columns = {"day": "day", "model": "name", "agent": agent, "person": person}
    return {columns[by]: value for by, value in chosen.items()}


def sum_up_days() -> int:
    """Keep the sums of the days that are over, each once no call of it runs any more. Returns how many rows were made."""
    first, made = _first_day(), 0
    day = _not_summed_up(first)
    while day + ONE_DAY + SETTLES_AFTER <= timezone.now():
        calls = _calls_since(day).filter(started_at__lt=day + ONE_DAY)
        if calls.filter(outcome=Generation.Outcome.RUNNING).exists():
            break
        labels = ("provider", "model", "dialog__agent_id", "dialog__owner_id")
        sums = calls.order_by().values_list(*labels).annotate(**_SUMS)
        rows = [
            DayOfCalls(
                day=day.date(),
                provider=provider,
                model=model,
                agent=agent,
                person_id=person,
                **dict(zip(_STORED, added, strict=True)),
            )
            for provider, model, agent, person, *added in sums
        ]
        with transaction.atomic():  # another sweeper may do the same
            made += len(DayOfCalls.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True))
        day += ONE_DAY
    DayOfCalls.objects.filter(day__lt=first.date()).delete()
    return made


def _not_summed_up(first: datetime) -> datetime:
    """The first of these days whose sums are not kept."""
    last = DayOfCalls.objects.aggregate(last=Max("day"))["last"]
    return max(first, datetime.combine(last, time(), first.tzinfo) + ONE_DAY) if last else first


def _first_day() -> datetime:
    return timezone.now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=DAYS - 1)


def _calls_since(first: datetime) -> QuerySet[Generation]:
    return Generation.objects.filter(pk__gte=first_generation_since(first), started_at__gte=first)


def _ended(rows: QuerySet[Generation]) -> QuerySet[Generation]:
    return rows.exclude(outcome=Generation.Outcome.RUNNING).annotate(day=TruncDate("started_at"), name=_NAME)
