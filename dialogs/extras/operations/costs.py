"""The cost of model calls, by day, model, agent and person: of reported tokens, by the catalog's prices at the time.

Days are those of the current time zone. Stored sums are of quarters of an hour, at which the days of every zone begin.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, CharField, Count, DateTimeField, Field, Max, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Concat
from django.utils import timezone

from dialogs.extras.operations.dashboard import first_generation_since
from dialogs.models import CallTotals, Dialog, EmbeddingUse, Generation
from dialogs.models.known_costs import COST_IS_UNKNOWN, sum_of_costs, unpriced_of_sums
from dialogs.permissions import OPERATE, may

DAYS = 14
ONE_DAY = timedelta(days=1)
QUARTER = timedelta(minutes=15)
# From the end of a day. By then the calls that began in it are committed, and lost workers are known to be lost.
SETTLES_AFTER = timedelta(hours=1)
NEWEST = 20
ADDED_UP = 2_000  # newest calls that are added up by dialog
Chosen = Mapping[str, str]  # the values that calls must have, by some of ``KEYS``
ALL: Chosen = MappingProxyType({})
EVERYBODY = "*"  # stands for everybody in place of a person's name


@dataclass(frozen=True, slots=True)
class Cost:
    """Sums of some calls. ``cost_usd`` leaves out those without a known price, damaged ones among them; ``unpriced``
    counts them."""

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
    day: str
    model: str
    agent: str
    person: str
    cost: Cost


KEYS: dict[str, Callable[[_Group], str]] = {
    "day": lambda group: group.day,
    "model": lambda group: group.model,
    "agent": lambda group: group.agent,
    "person": lambda group: group.person,
}


@dataclass(frozen=True, slots=True)
class Table:
    by: str
    rows: list[tuple[str, Cost]]


def narrow(viewer: User, chosen: Chosen) -> Chosen:
    """Narrow a choice to what this person may look at: their own calls, for operators also those of others."""
    person = (chosen.get("person") if may(viewer, OPERATE) else "") or viewer.username
    return {by: value for by, value in {**chosen, "person": person}.items() if value and value != EVERYBODY}


def tables(chosen: Chosen = ALL) -> list[Table]:
    """Return the same two weeks by day, newest first, and by model, agent and person, by cost and tokens."""
    groups = _groups(chosen)
    days, *others = ((by, _add_up(groups, key)) for by, key in KEYS.items())
    return [Table("day", sorted(days[1].items(), reverse=True)), *(Table(by, _rank(sums)) for by, sums in others)]


def _rank(sums: dict[str, Cost]) -> list[tuple[str, Cost]]:
    return sorted(sums.items(), key=lambda row: (-row[1].cost_usd, -row[1].tokens, row[0]))


def by_day(table: Table) -> list[tuple[datetime, Cost]]:
    """Return all days, the oldest first."""
    result = dict(table.rows)
    return [(day, result.get(day.date().isoformat(), Cost())) for day in _days()]


def calls(viewer: User, chosen: Chosen = ALL) -> QuerySet[Generation]:
    """Return the newest calls, in dialogs that this person may open."""
    return _newest(viewer, chosen).select_related("dialog__agent")[:NEWEST]


def dialogs(viewer: User, chosen: Chosen) -> list[tuple[Dialog, Cost]]:
    """Return the dialogs of the newest of these calls that this person may open, the most expensive first."""
    newest = _newest(viewer, chosen).values("pk")[:ADDED_UP]
    rows = Generation.objects.filter(pk__in=newest).order_by().values_list("dialog").annotate(**_SUMS)
    sums = _rank({str(dialog): Cost(*added) for dialog, *added in rows})[:NEWEST]
    result = Dialog.objects.select_related("agent").in_bulk([UUID(dialog) for dialog, _ in sums])
    return [(result[UUID(dialog)], cost) for dialog, cost in sums if UUID(dialog) in result]


def _newest(viewer: User, chosen: Chosen) -> QuerySet[Generation]:
    results = _without_running(_calls_since(_days()[0])).filter(**_of(chosen, *_OF_CALLS))
    return results.filter(dialog__in=Dialog.objects.for_user(viewer)).order_by("-pk")


def _add_up(groups: list[_Group], key: Callable[[_Group], str]) -> dict[str, Cost]:
    sums: dict[str, Cost] = {}
    for group in groups:
        sums[key(group)] = sums.get(key(group), Cost()) + group.cost
    return sums


def _groups(chosen: Chosen) -> list[_Group]:
    """Return the groups of calls, from stored sums and from the calls since then."""
    first = _days()[0]
    live = _without_running(_calls_since(_not_summed_up(first))).filter(**_of(chosen, *_OF_CALLS)).order_by()
    tables_of_sums: list[QuerySet[Any]] = [CallTotals.objects.all(), EmbeddingUse.objects.annotate(**_NO_OTHERS)]
    stored = [
        rows.filter(began_at__gte=first)
        .annotate(day=_day_of("began_at"), name=_NAME)
        .filter(**_of(chosen, "agent", "person__username"))
        .order_by()
        .values_list(*_LABELS, "agent", "person__username")
        .annotate(**_SUMS_OF_STORED)
        for rows in tables_of_sums
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
    "cost": sum_of_costs(),
    "unpriced": Count("pk", filter=COST_IS_UNKNOWN & ~Q(outcome=Generation.Outcome.FAILED)),
}
_STORED = ("calls", "prompt_tokens", "cache_read_tokens", "completion_tokens", "cost_usd", "unpriced")
_SUMS_OF_STORED: dict[str, Any] = {
    **{f"sum_{column}": Sum(column) for column in _STORED},
    "sum_cost_usd": sum_of_costs(),
    "sum_unpriced": Sum(unpriced_of_sums()),
}
_NO_OTHERS = {"cache_read_tokens": Value(0), "completion_tokens": Value(0)}  # embeddings have none


def _of(chosen: Chosen, agent: str, person: str) -> dict[str, str]:
    columns = {"day": "day", "model": "name", "agent": agent, "person": person}
    return {columns[by]: value for by, value in chosen.items()}


def sum_up_days() -> int:
    """Store the sums of finished days of UTC, each once none of its calls is running, and return the number of rows."""
    now, made = timezone.now(), 0
    # In no zone does the first day of the tables begin earlier, not even where it is still yesterday.
    first = datetime.combine(now.date() - timedelta(days=DAYS), time(), UTC)
    day = _not_summed_up(first)
    while day + ONE_DAY + SETTLES_AFTER <= now:
        calls = _calls_since(day).filter(started_at__lt=day + ONE_DAY)
        if calls.filter(outcome=Generation.Outcome.RUNNING).exists():
            break
        quarters = [day + number * QUARTER for number in range(ONE_DAY // QUARTER)]
        quarter = _value_at("started_at", [(start, start) for start in quarters], DateTimeField())
        labels = ("began_at", "provider", "model", "dialog__agent_id", "dialog__owner_id")
        sums = calls.annotate(began_at=quarter).order_by().values_list(*labels).annotate(**_SUMS)
        rows = [
            CallTotals(
                began_at=began_at,
                provider=provider,
                model=model,
                agent=agent,
                person_id=person,
                **dict(zip(_STORED, added, strict=True)),
            )
            for began_at, provider, model, agent, person, *added in sums
        ]
        with transaction.atomic():  # another sweeper may do the same
            made += len(CallTotals.objects.bulk_create(rows, batch_size=500, ignore_conflicts=True))
        day += ONE_DAY
    CallTotals.objects.filter(began_at__lt=first).delete()
    return made


def _not_summed_up(first: datetime) -> datetime:
    """Return the moment from which there are no sums: the end of a day of UTC, or ``first`` if that is later."""
    last = CallTotals.objects.aggregate(last=Max("began_at"))["last"]
    return max(first, datetime.combine(last.astimezone(UTC), time(), UTC) + ONE_DAY) if last else first


def _days() -> list[datetime]:
    """Return the start of each day in the current zone, the oldest first. Some days have 23 or 25 hours."""
    zone, today = timezone.get_current_timezone(), timezone.localdate()
    return [datetime.combine(today - timedelta(days=ago), time(), zone) for ago in reversed(range(DAYS))]


def _day_of(column: str) -> Case:
    """Return the date in the current zone."""
    return _value_at(column, [(day, day.date().isoformat()) for day in _days()], CharField())


def _value_at(column: str, places: Sequence[tuple[datetime, Any]], kind: "Field[Any, Any]") -> Case:
    """Return an expression for the value of the period in which a moment lies. ``places`` are the beginnings of the
    periods, oldest first, with their values.

    It consists of comparisons, because SQLite would ask Python for each row's date in a zone.
    """
    cases = [When(**{f"{column}__gte": start, "then": Value(name)}) for start, name in reversed(places[1:])]
    return Case(*cases, default=Value(places[0][1]), output_field=kind)


def _calls_since(first: datetime) -> QuerySet[Generation]:
    return Generation.objects.filter(pk__gte=first_generation_since(first), started_at__gte=first)


def _without_running(rows: QuerySet[Generation]) -> QuerySet[Generation]:
    return rows.exclude(outcome=Generation.Outcome.RUNNING).annotate(day=_day_of("started_at"), name=_NAME)
