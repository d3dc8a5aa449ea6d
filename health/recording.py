"""Health snapshots: one row for each generation, written inside the caller's transaction."""

from dominds.db.prepared import insert
from dominds.llm.usage import Usage, UsageReport
from health.levels import Judgement, Thresholds, judge
from health.models import HealthSnapshot


def record(
    generation_id: int, usage: UsageReport, thresholds: Thresholds, *, truncation_suspected: bool = False
) -> Judgement:
    """Judge one generation, store the judgement with the limits behind it, and return it."""
    judgement = judge(usage, thresholds, truncation_suspected=truncation_suspected)
    reported = usage if isinstance(usage, Usage) else None
    snapshot = HealthSnapshot(
        generation_id=generation_id,
        prompt_tokens=reported.prompt_tokens if reported else None,
        completion_tokens=reported.completion_tokens if reported else None,
        total_tokens=reported.total_tokens if reported else None,
        model_context_limit=thresholds.context_limit,
        limit_source=thresholds.limit_source,
        optimal_max_tokens=thresholds.effective_optimal_max,
        critical_max_tokens=thresholds.effective_critical_max,
        hard_util=judgement.hard_util,
        optimal_util=judgement.optimal_util,
        level=judgement.level.value,
        reason=judgement.reason.value if judgement.reason else "",
    )
    insert(snapshot)
    return judgement
