"""Levels of context health, judged from reported usage alone.

Levels use strict ``>`` and critical is tested first, because in small windows the critical threshold lies below the
optimal one.
"""

from dataclasses import dataclass
from enum import StrEnum

from dominds.llm.models.model import ModelInfo
from dominds.llm.usage import Usage, UsageReport

DEFAULT_OPTIMAL_MAX = 100_000  # prompt tokens


class Level(StrEnum):
    HEALTHY = "healthy"
    CAUTION = "caution"
    CRITICAL = "critical"
    UNKNOWN = "unknown"


class UnknownReason(StrEnum):
    USAGE_UNAVAILABLE = "usage_unavailable"
    LIMIT_UNKNOWN = "limit_unknown"
    AWAITING_REPORT = "awaiting_report"
    TRUNCATION_SUSPECTED = "truncation_suspected"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Bounds on the size of a model's prompts, in tokens. ``context_limit`` comes from metadata, never inferred."""

    context_limit: int | None
    optimal_max: int | None = None  # None: DEFAULT_OPTIMAL_MAX
    critical_max: int | None = None  # None: 90 % of the context limit
    limit_source: str = ""  # "context_length", "input_length", "loaded_context_length", or empty when unknown
    input_limit: int | None = None  # the longest prompt that the provider accepts, if shorter than the context limit

    @property
    def effective_optimal_max(self) -> int:
        return DEFAULT_OPTIMAL_MAX if self.optimal_max is None else self.optimal_max

    @property
    def effective_critical_max(self) -> int | None:
        if self.critical_max is not None:
            return self.critical_max
        if self.context_limit is None:
            return None
        return self.context_limit * 9 // 10

    @property
    def healthy_max(self) -> int:
        """Return the longest healthy prompt. In a small window healthy ends where critical begins."""
        return min(self.effective_optimal_max, self.effective_critical_max or self.effective_optimal_max)

    @property
    def has_caution_band(self) -> bool:
        critical = self.effective_critical_max
        return critical is None or self.effective_optimal_max < critical


def stated_thresholds(model: ModelInfo) -> Thresholds:
    """Return the thresholds as the catalog states them, without asking a server."""
    limit, source = model.limit
    return Thresholds(
        context_limit=limit,
        optimal_max=model.optimal_max_tokens,
        critical_max=model.critical_max_tokens,
        limit_source=source,
        input_limit=model.input_limit,
    )


@dataclass(frozen=True, slots=True)
class Judgement:
    """A level with its grounds. Utilisation is a share, 1.0 at the limit; it is ``None`` where unknown, never zero."""

    level: Level
    reason: UnknownReason | None = None
    hard_util: float | None = None
    optimal_util: float | None = None


AWAITING_REPORT = Judgement(Level.UNKNOWN, UnknownReason.AWAITING_REPORT)


def judge(usage: UsageReport, thresholds: Thresholds, *, truncation_suspected: bool = False) -> Judgement:
    """Judge one generation. Unreported usage is unknown, because zero would seem healthy."""
    if not isinstance(usage, Usage):
        return Judgement(Level.UNKNOWN, UnknownReason.USAGE_UNAVAILABLE)
    limit, critical_max = thresholds.context_limit, thresholds.effective_critical_max
    optimal_util = usage.prompt_tokens / thresholds.effective_optimal_max
    if limit is None or critical_max is None:
        return Judgement(Level.UNKNOWN, UnknownReason.LIMIT_UNKNOWN, None, optimal_util)
    hard_util = usage.prompt_tokens / limit
    if truncation_suspected:
        return Judgement(Level.UNKNOWN, UnknownReason.TRUNCATION_SUSPECTED, hard_util, optimal_util)
    if usage.prompt_tokens > critical_max:
        return Judgement(Level.CRITICAL, None, hard_util, optimal_util)
    if usage.prompt_tokens > thresholds.effective_optimal_max:
        return Judgement(Level.CAUTION, None, hard_util, optimal_util)
    return Judgement(Level.HEALTHY, None, hard_util, optimal_util)
