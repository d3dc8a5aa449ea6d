"""Numbers for Prometheus, read from the rows, under the names of OpenTelemetry's GenAI conventions where these have
one.

Every web process reads the same rows and so reports the same numbers: use ``max`` and not ``sum`` over instances.
Counters survive restarts. A process adds the past up once, and after that a scrape reads only what came since.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

import structlog
from django.db import DatabaseError
from django.db.models import Case, CharField, Count, F, Min, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Now
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import REGISTRY, Collector

from dialogs.extras.operations import dashboard
from dialogs.extras.operations.running_totals import PARTS, Sums, Tally, count_rows, settled_below, spread, sum_columns
from dialogs.models import Dialog, Generation, Question
from health.levels import Level
from health.models import HealthSnapshot
from remediation.models import ContextEvent, RemediationRun
from remediation.policies.registry import rewriting_policies

log = structlog.get_logger(__name__)

KEPT_SECONDS = 5.0  # scrapes within this time get the same answer
SHOWN = timedelta(days=1)  # the level of a dialog counts if it was active in this time

# From the conventions' advice for gen_ai.client.token.usage and gen_ai.client.operation.duration.
TOKEN_BOUNDS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
SECOND_BOUNDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)

SHARES = ("cache_read", "cache_write", "reasoning")
MODEL_LABELS = ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")
OPERATION = "chat"


def _of_generations(rows: QuerySet[Generation]) -> Sums:
    """Sum generations up. Durations are summed in microseconds, so that sums of sums are exact."""
    model = ("provider", "model")
    seconds = [timedelta(seconds=bound) for bound in SECOND_BOUNDS]
    return (
        spread(rows, model, F("prompt_tokens"), TOKEN_BOUNDS, "input")
        + spread(rows, model, F("completion_tokens"), TOKEN_BOUNDS, "output")
        + spread(rows, (*model, "error_kind"), F("finished_at") - F("started_at"), seconds, "duration")
        + spread(rows, model, F("first_token_ms"), [bound * 1000 for bound in SECOND_BOUNDS], "first")
        + sum_columns(rows, model, cost="cost_usd", **{name: f"{name}_tokens" for name in SHARES})
        + count_rows(rows.exclude(outcome="running"), "purpose", "outcome")
    )


# -- The collector -----------------------------------------------------------------------------------------------------


class RowsCollector(Collector):
    """A collector that reads the rows at most every five seconds. Without a database it reports just that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_at = -KEPT_SECONDS
        self._read: list[Metric] = []
        self._generations = Tally(_of_generations)
        self._runs = Tally(lambda rows: count_rows(rows, "policy"))
        self._snapshots = Tally(lambda rows: count_rows(rows, "level"))
        self._events = Tally(lambda rows: count_rows(rows, "code"))

    def describe(self) -> Iterable[Metric]:
        return ()  # else registering would ask the database

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            if time.monotonic() - self._read_at >= KEPT_SECONDS:
                self._read = self._gather()
                self._read_at = time.monotonic()
            return self._read

    def _gather(self) -> list[Metric]:
        readable = GaugeMetricFamily("dominds_rows_readable", "1 when the database answered this scrape.", value=1)
        try:
            return [readable, *self._from_rows(), *_from_redis()]
        except DatabaseError as error:
            log.warning("metrics_without_rows", error=str(error))
            readable.samples.clear()
            readable.add_metric([], 0)
            return [readable, *_from_redis()]

    def _from_rows(self) -> Iterator[Metric]:
        yield from _dialogs()
        yield from _questions()
        generations = self._generations.totals(Generation.objects.all(), _settled_generations())
        yield _tokens(generations)
        yield _shares(generations)
        yield _costs(generations)
        yield _seconds(
            "gen_ai_client_operation_duration_seconds",
            "Duration of model calls, from the request to the end of the answer.",
            generations,
            "duration",
            ("error_type",),
            per_second=1_000_000,
        )
        yield _seconds(
            "gen_ai_client_operation_time_to_first_chunk_seconds",
            "Time from the request to the first text of the answer.",
            generations,
            "first",
            (),
            per_second=1000,
        )
        yield from _outcomes(generations)
        runs = self._runs.totals(RemediationRun.objects.counted(), settled_below(RemediationRun.objects.all()))
        policies = [policy.name for policy in rewriting_policies()]
        yield _counter("dominds_compactions", "Rewrites of what the model sees.", "policy", policies, runs)
        snapshots = self._snapshots.totals(HealthSnapshot.objects.all(), settled_below(HealthSnapshot.objects.all()))
        levels = [level.value for level in Level]
        yield _counter(
            "dominds_context_judgements", "Generations by the level they led to.", "level", levels, snapshots
        )
        events = self._events.totals(ContextEvent.objects.all(), settled_below(ContextEvent.objects.all()))
        codes = [code.value for code in ContextEvent.Code]
        yield _counter("dominds_context_events", "Warnings and errors of context management.", "code", codes, events)


def _settled_generations() -> int:
    """Return the id below which all generations have ended."""
    running = Generation.objects.filter(outcome="running").aggregate(first=Min("pk"))["first"]
    newest = settled_below(Generation.objects.all())
    return newest if running is None else min(newest, running)


# -- As metrics --------------------------------------------------------------------------------------------------------


def _dialogs() -> Iterator[Metric]:
    yield _gauge("dominds_dialogs", "Dialogs by state.", "state", dashboard.dialogs_by_state())
    result = _levels_now()
    levels = {level.value: result.get(level.value, 0) for level in Level}
    yield _gauge("dominds_context_level", "Open dialogs that were active in the last day, by level.", "level", levels)
    stuck = len(dashboard.stuck_dialogs())
    yield GaugeMetricFamily(
        "dominds_dialogs_stuck", "Dialogs that do not get on (at most 20 are counted).", value=stuck
    )


def _levels_now() -> dict[str, int]:
    """Count levels by the newest report. A dialog that awaits a report after a rewrite is unknown, as on its page."""
    newest = HealthSnapshot.objects.filter(generation__dialog=OuterRef("pk")).order_by("-generation_id")
    level = Case(
        When(report__in=["awaiting", "unavailable"], then=Value(Level.UNKNOWN.value)),
        default=Subquery(newest.values("level")[:1]),
        output_field=CharField(),
    )
    active = Dialog.objects.filter(closed_at__isnull=True, active_at__gte=Now() - SHOWN)
    return Counter(active.order_by().annotate(level=level).values_list("level", flat=True))


def _questions() -> Iterator[Metric]:
    waiting = Question.objects.filter(state=Question.State.OPEN)
    by_kind = dict(waiting.order_by().values_list("kind").annotate(Count("pk")))
    kinds = {kind: by_kind.get(kind, 0) for kind in Question.Kind.values}
    yield _gauge("dominds_questions_open", "Open Q4H by kind.", "kind", kinds)
    age = waiting.annotate(age=Now() - F("created_at")).order_by("created_at").values_list("age", flat=True).first()
    yield GaugeMetricFamily(
        "dominds_oldest_question_age_seconds",
        "Age of the oldest open Q4H; 0 when none is open.",
        value=age.total_seconds() if age else 0,
    )


def _tokens(sums: Sums) -> Metric:
    metric = HistogramMetricFamily(
        "gen_ai_client_token_usage", "Reported tokens of model calls.", labels=[*MODEL_LABELS, "gen_ai_token_type"]
    )
    for kind in ("input", "output"):
        for labels, counts in _group_by_labels(sums, kind):
            metric.add_metric([OPERATION, *labels, kind], _buckets(TOKEN_BOUNDS, counts), counts["sum"])
    return metric


def _shares(sums: Sums) -> Metric:
    metric = CounterMetricFamily(
        "dominds_token_shares", "Reported parts of prompts and answers.", labels=[*MODEL_LABELS, "gen_ai_token_type"]
    )
    for (kind, *labels), count in sorted(sums.items()):
        if kind in SHARES:
            metric.add_metric([OPERATION, *labels, kind], count)
    return metric


def _costs(sums: Sums) -> Metric:
    """Return the costs of calls with a known price. A model has no sample until one of its calls has a price."""
    metric = CounterMetricFamily(
        "dominds_cost_usd", "Cost of model calls by reported tokens and list prices, in USD.", labels=MODEL_LABELS
    )
    for (kind, *labels), parts in sorted(sums.items()):
        if kind == "cost":
            metric.add_metric([OPERATION, *labels], parts / PARTS)
    return metric


def _seconds(name: str, help_text: str, sums: Sums, kind: str, more: tuple[str, ...], per_second: int) -> Metric:
    metric = HistogramMetricFamily(name, help_text, labels=[*MODEL_LABELS, *more])
    for labels, counts in _group_by_labels(sums, kind):
        metric.add_metric([OPERATION, *labels], _buckets(SECOND_BOUNDS, counts), counts["sum"] / per_second)
    return metric


def _group_by_labels(sums: Sums, name: str) -> list[tuple[tuple[str, ...], dict[str, int]]]:
    groups: dict[tuple[str, ...], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (kind, *labels, part), count in sums.items():
        if kind == name:
            groups[tuple(labels)][part] = count
    return sorted(groups.items())


def _buckets(bounds: Sequence[float], counts: dict[str, int]) -> list[tuple[str, float]]:
    return [*((str(float(bound)), counts[str(n)]) for n, bound in enumerate(bounds)), ("+Inf", counts["count"])]


def _outcomes(sums: Sums) -> Iterator[Metric]:
    every = CounterMetricFamily("dominds_generations", "Model calls that ended.", labels=["purpose", "outcome"])
    forced = CounterMetricFamily("dominds_forced_clears", "Forced clears that ended, by outcome.", labels=["outcome"])
    ended = {key[1:]: count for key, count in sums.items() if key[0] == "count"}
    for (purpose, outcome), count in sorted(ended.items()):
        every.add_metric([purpose, outcome], count)
    for outcome in Generation.Outcome.values:
        if outcome != "running":
            forced.add_metric([outcome], ended.get((Generation.Purpose.FORCED_CLEAR.value, outcome), 0))
    yield every
    yield forced


def _gauge(name: str, help_text: str, label: str, counts: Mapping[str, int]) -> Metric:
    metric = GaugeMetricFamily(name, help_text, labels=[label])
    for kind, count in counts.items():
        metric.add_metric([kind], count)
    return metric


def _counter(name: str, help_text: str, label: str, kinds: Iterable[str], sums: Sums) -> Metric:
    """Return a counter in which kinds that never happened are 0, so that a first time is an increase."""
    metric = CounterMetricFamily(name, help_text, labels=[label])
    for kind in kinds:
        metric.add_metric([kind], sums["count", kind])
    return metric


def _from_redis() -> Iterator[Metric]:
    """Return what Redis knows, or nothing while it is away, since an unknown queue is not an empty one."""
    result = dashboard.parts()
    if result.queue_depth is None:
        return
    yield GaugeMetricFamily("dominds_queue_depth", "Wake-ups that no worker has taken yet.", value=result.queue_depth)
    present = [part for part in result.heartbeats if not part.is_late]
    kinds = {kind: sum(part.kind == kind for part in present) for kind in ("worker", "sweeper")}
    yield _gauge("dominds_parts", "Workers and sweepers that reported in the last 30 s.", "kind", kinds)
    busy = sum(part.busy or 0 for part in present)
    yield GaugeMetricFamily("dominds_workers_busy", "Wake-ups that workers are at, as they last said.", value=busy)


def register() -> None:
    """Add these numbers to what ``/metrics`` answers."""
    REGISTRY.register(RowsCollector())
