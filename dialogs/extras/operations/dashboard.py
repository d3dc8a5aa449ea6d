"""The state of the whole server for its operators: one function for each question, with a bounded number of queries.

Rows have no index on time. Their ids grow with it, so a binary search finds the first row since a moment.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import quantiles
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Now, TruncDate, TruncHour
from django.utils import timezone
from django.utils.translation import gettext as _
from redis import RedisError

from dialogs.models import Delivery, Dialog, Generation, Question
from dialogs.state import State
from dominds.celery import app
from dominds.worker import heartbeats
from dominds.worker.heartbeats import Heartbeat
from health.levels import Level
from health.models import HealthSnapshot
from remediation.models import CleanupTask, ContextEvent, Proposal, RemediationRun
from remediation.policies.registry import rewriting_policies

RECENT = timedelta(hours=1)
NOTICED = timedelta(days=1)  # how long the page shows a notice that was not delivered
QUEUED_TOO_LONG = timedelta(minutes=1)
RUNS_LONG = timedelta(minutes=5)
LEVEL_HOURS = 24
COMPACTION_DAYS = 14
MOST_TIMED = 5_000  # generations whose times are read for the percentiles
MOST_ROWS = 20


# -- The moment --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cards:
    """The numbers at the top of the page. ``oldest_question`` is the time at which the oldest open Q4H was asked."""

    running: int
    queued: int
    waiting: int
    suspended: int
    failed: int
    oldest_question: datetime | None
    recent_calls: int
    recent_failures: int


def cards(recent: "Recent") -> Cards:
    states = dialogs_by_state(SHOWN_STATES)
    oldest = Question.objects.filter(state=Question.State.OPEN).order_by("created_at").values_list("created_at").first()
    return Cards(
        running=states[State.GENERATING.value],
        queued=states[State.QUEUED.value],
        waiting=states[State.WAITING.value],
        suspended=states[State.SUSPENDED.value],
        failed=states[State.FAILED.value],
        oldest_question=oldest[0] if oldest else None,
        recent_calls=sum(provider.calls for provider in recent.providers),
        recent_failures=sum(provider.failures for provider in recent.providers),
    )


# Few dialogs are in these states.
SHOWN_STATES = (State.GENERATING, State.QUEUED, State.WAITING, State.SUSPENDED, State.FAILED)


def dialogs_by_state(states: Iterable[State] = State) -> dict[str, int]:
    """Count the dialogs in each of these states, by an index. Nearly all dialogs are at rest."""
    asked = [state.value for state in states]
    result = dict(Dialog.objects.filter(state__in=asked).order_by().values_list("state").annotate(Count("pk")))
    return {state: result.get(state, 0) for state in asked}


@dataclass(frozen=True, slots=True)
class Parts:
    """Workers, sweepers and the queue as Redis knows them, or ``None`` if it does not answer."""

    queue_depth: int | None
    heartbeats: list[Heartbeat] = field(default_factory=list)

    @property
    def has_worker(self) -> bool:
        return any(part.kind == "worker" and not part.is_late for part in self.heartbeats)

    @property
    def has_sweeper(self) -> bool:
        return any(part.kind == "sweeper" and not part.is_late for part in self.heartbeats)


def parts() -> Parts:
    try:
        return Parts(heartbeats.queue_depth(app.conf.task_default_queue), heartbeats.heartbeats())
    except RedisError:
        return Parts(None)


def held_leases() -> list[dict[str, Any]]:
    """Count the dialogs that each worker drives, by the leases in the database."""
    held = Dialog.objects.filter(state=State.GENERATING.value).exclude(lease_owner="").order_by("lease_owner")
    counted = held.values_list("lease_owner").annotate(Count("pk"))
    return [{"lease_owner": owner, "dialogs": dialogs} for owner, dialogs in counted]


# -- What needs a hand -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stuck:
    """A dialog without progress, the reason, and the time since when."""

    dialog: Dialog
    reason: str
    since: datetime | None


def stuck_dialogs() -> list[Stuck]:
    """Return dialogs whose worker vanished, that no worker takes, or whose call runs for minutes, the longest first."""
    now = timezone.now()
    running = Generation.objects.filter(dialog=OuterRef("pk"), outcome="running", started_at__lt=Now() - RUNS_LONG)
    vanished = Q(state=State.GENERATING.value, lease_until__lt=Now())
    waiting = Q(wake_at__isnull=True) | Q(wake_at__lte=Now())
    left = Q(state=State.QUEUED.value, active_at__lt=Now() - QUEUED_TOO_LONG) & waiting
    rows = (
        Dialog.objects.filter(state__in=[State.GENERATING.value, State.QUEUED.value])
        .annotate(runs_long=Exists(running))
        .filter(vanished | left | Q(runs_long=True))
        .select_related("agent", "owner")
        .order_by("active_at")[:MOST_ROWS]
    )
    return [_describe_stuck(dialog, now) for dialog in rows]


def _describe_stuck(dialog: Dialog, now: datetime) -> Stuck:
    if dialog.state == State.QUEUED:
        return Stuck(dialog, _("queued, and no worker takes it up"), dialog.active_at)
    if dialog.lease_until is not None and dialog.lease_until < now:
        return Stuck(dialog, _("its worker {name} vanished").format(name=dialog.lease_owner), dialog.lease_until)
    return Stuck(dialog, _("its model call runs for minutes"), dialog.active_at)


def failed_dialogs() -> QuerySet[Dialog]:
    """List the newest dialogs whose last message failed; a retry is offered."""
    failed = Dialog.objects.filter(state=State.FAILED.value).select_related("agent", "owner")
    return failed.order_by("-active_at")[:MOST_ROWS]


def backing_off() -> int:
    """Return the number of dialogs that wait because their provider asked for patience: they are slow, not stuck."""
    return Dialog.objects.filter(state__in=[State.QUEUED.value, State.GENERATING.value], wake_at__gt=Now()).count()


def context_events() -> QuerySet[ContextEvent]:
    standing = ContextEvent.objects.filter(dialog__removed_at=None)
    return standing.select_related("dialog__agent").order_by("-pk")[:MOST_ROWS]


def cleanup_tasks() -> QuerySet[CleanupTask]:
    open_tasks = CleanupTask.objects.filter(state=CleanupTask.State.OPEN, dialog__removed_at=None)
    return open_tasks.select_related("dialog__agent").order_by("created_at")[:MOST_ROWS]


def proposals() -> QuerySet[Proposal]:
    open_proposals = Proposal.objects.filter(state=Proposal.State.OPEN)
    return open_proposals.select_related("agent").order_by("created_at")[:MOST_ROWS]


@dataclass(frozen=True, slots=True)
class Undelivered:
    """Notices of one channel that were not delivered in the last day."""

    channel: str
    count: int
    error: str
    tries_again: bool


def list_undelivered() -> list[Undelivered]:
    failed = Delivery.objects.filter(sent_at=None, created_at__gt=Now() - NOTICED).exclude(error="")
    counted = failed.order_by().values_list("channel").annotate(Count("pk"), Max("pk"), Count("due_at"))
    errors = dict(Delivery.objects.filter(pk__in=[last for _, _, last, _ in counted]).values_list("channel", "error"))
    return [Undelivered(channel, count, errors[channel], waits > 0) for channel, count, _, waits in sorted(counted)]


# -- The last hour -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProviderHealth:
    """The outcomes of one provider's calls that began in the last hour."""

    provider: str
    kept: int
    discarded: int
    stopped: int
    failed: int
    crashed: int
    running: int
    last_error: str = ""

    @property
    def calls(self) -> int:
        return self.kept + self.discarded + self.stopped + self.failed + self.crashed + self.running

    @property
    def failures(self) -> int:
        return self.failed + self.crashed

    @property
    def failed_share(self) -> float:
        return self.failures / self.calls if self.calls else 0.0


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of one model's kept calls, or ``None`` where too few are known."""

    provider: str
    model: str
    calls: int
    first_token_p50: int | None
    first_token_p95: int | None
    whole_p50: int | None
    whole_p95: int | None


@dataclass(frozen=True, slots=True)
class Recent:
    providers: list[ProviderHealth]
    latencies: list[Latency]


def recent() -> Recent:
    """Return the last hour's calls by provider, and the durations of the kept ones by model."""
    generations = Generation.objects.filter(pk__gte=first_generation_since(timezone.now() - RECENT))
    return Recent(_provider_health(generations), _latencies(generations))


def first_generation_since(moment: datetime) -> int:
    return first_since(Generation.objects.all(), "started_at", moment)


def first_since(rows: QuerySet[Any], column: str, moment: datetime) -> int:
    """Return the id from which on rows began at ``moment`` or later. A binary search reads some twenty rows for it."""
    newest = rows.order_by("-pk").values_list("pk", flat=True).first() or 0
    low, high = 0, newest + 1  # the answer lies in between, both included
    while low < high:
        middle = (low + high) // 2
        result = rows.filter(pk__gte=middle).order_by("pk").values_list("pk", column).first()
        if result is None or result[1] >= moment:
            high = middle
        else:
            low = result[0] + 1
    return low


def _provider_health(generations: QuerySet[Generation]) -> list[ProviderHealth]:
    counted: dict[str, dict[str, int]] = defaultdict(dict)
    for provider, outcome, count in generations.order_by().values_list("provider", "outcome").annotate(Count("pk")):
        counted[provider][outcome] = count
    errors = dict(
        generations.filter(outcome__in=["failed", "crashed"])
        .exclude(error="")
        .order_by("pk")
        .values_list("provider", "error")
    )
    outcomes = [outcome.value for outcome in Generation.Outcome]
    return [
        ProviderHealth(
            provider=provider,
            last_error=errors.get(provider, ""),
            **{outcome: counted[provider].get(outcome, 0) for outcome in outcomes},
        )
        for provider in sorted(counted)
    ]


def _latencies(generations: QuerySet[Generation]) -> list[Latency]:
    kept = generations.filter(outcome=Generation.Outcome.KEPT, finished_at__isnull=False).order_by("-pk")[:MOST_TIMED]
    times: dict[tuple[str, str], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for provider, model, first, begun, ended in kept.values_list(
        "provider", "model", "first_token_ms", "started_at", "finished_at"
    ):
        firsts, wholes = times[provider, model]
        if first is not None:
            firsts.append(first)
        if ended is not None:
            wholes.append((ended - begun).total_seconds() * 1000)
    return [
        Latency(provider, model, len(wholes), *percentiles(firsts), *percentiles(wholes))
        for (provider, model), (firsts, wholes) in sorted(times.items())
    ]


def percentiles(values: Sequence[float]) -> tuple[int | None, int | None]:
    """Return the 50th and the 95th percentile, rounded; both are the value itself if there is only one."""
    if not values:
        return None, None
    if len(values) == 1:
        return round(values[0]), round(values[0])
    cuts = quantiles(values, n=20, method="inclusive")
    return round(cuts[9]), round(cuts[18])


# -- Over time ---------------------------------------------------------------------------------------------------------


def levels_by_hour() -> list[tuple[datetime, dict[str, int]]]:
    """Count the generations of each hour of the last day by the level at which they ended, oldest first.

    Hours are those of UTC in the current zone's time, so that none is missing or doubled where clocks change.
    """
    first = timezone.now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=LEVEL_HOURS - 1)
    counted = (
        HealthSnapshot.objects.filter(generation_id__gte=first_generation_since(first))
        .order_by()
        .values_list(TruncHour("generation__started_at", tzinfo=UTC), "level")
        .annotate(Count("pk"))
    )
    hours = [first + timedelta(hours=hour) for hour in range(LEVEL_HOURS)]
    table = _fill(hours, [level.value for level in Level], counted)
    return [(timezone.localtime(hour), counts) for hour, counts in table]


def compactions_by_day() -> list[tuple[datetime, dict[str, int]]]:
    """Count the rewrites of each policy on each day of the current zone, oldest first, for two weeks."""
    today = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - timedelta(days=COMPACTION_DAYS - 1)
    runs = RemediationRun.objects.counted()
    counted = (
        runs.filter(pk__gte=first_since(runs, "created_at", first), created_at__gte=first)
        .order_by()
        .annotate(day=TruncDate("created_at"))
        .values_list("day", "policy")
        .annotate(Count("pk"))
    )
    days = [first + timedelta(days=day) for day in range(COMPACTION_DAYS)]
    by_moment = [(datetime(day.year, day.month, day.day, tzinfo=first.tzinfo), *rest) for day, *rest in counted]
    return _fill(days, [policy.name for policy in rewriting_policies()], by_moment)


def _fill(moments: list[datetime], kinds: list[str], counted: Iterable[Any]) -> list[tuple[datetime, dict[str, int]]]:
    """Return every moment and kind, with 0 where nothing was counted."""
    table = {moment: dict.fromkeys(kinds, 0) for moment in moments}
    for moment, kind, count in counted:
        if moment in table:
            table[moment][kind] = count
    return list(table.items())
