"""The second strategy of the breaking chain: keep what is recent or relevant to the task, and remove the rest."""

from collections.abc import Mapping
from math import ceil

from remediation.config import PrioritizeRecent
from remediation.context import STAND_INS, Toolbox, UnitKind, Units, total_tokens
from remediation.strategies.outcome import StrategyOutcome, in_units, task_of, touchable, without

MIN_JUDGED = 3  # if fewer units are all relevant, that says nothing about the dialog


def prioritize_recent(units: Units, options: PrioritizeRecent, toolbox: Toolbox, target_tokens: int) -> StrategyOutcome:
    """Remove units below the relevance threshold until the target is reached: priority 3 first, least relevant first.

    If no unit is below the threshold, only a fresh start can help.
    """
    newest = len(units) - ceil(len(units) * options.recent_bias)
    judged = [index for index in touchable(units) if index < newest and units[index].kind not in STAND_INS]
    scores = score_units(units, judged, options.priority_boost, toolbox)
    low = [index for index in judged if scores[index] < options.rel_threshold]
    if not low:
        everything = len(judged) >= MIN_JUDGED
        return StrategyOutcome(units, "everything is relevant" if everything else "nothing to judge", everything)
    gone = until_freed(units, removal_order(units, low, scores), total_tokens(units) - target_tokens)
    return StrategyOutcome(without(units, gone), f"removed {in_units(len(gone))} of low relevance")


def score_units(units: Units, indices: list[int], priority_boost: float, toolbox: Toolbox) -> dict[int, float]:
    """Return each unit's relevance to the task, raised by the whole boost for priority 1 and by half of it for 2."""
    if not indices:
        return {}
    relevance = toolbox.relevance([units[index].text for index in indices], task_of(units))
    boosts = {1: priority_boost, 2: (1 + priority_boost) / 2}
    return {
        index: value * boosts.get(units[index].priority, 1.0) for index, value in zip(indices, relevance, strict=True)
    }


def removal_order(units: Units, candidates: list[int], scores: Mapping[int, float]) -> list[int]:
    """Sort units by how soon they go: priority 3 before 2, then plan references last, then the least relevant first."""
    return sorted(candidates, key=lambda i: (-units[i].priority, units[i].kind is UnitKind.PLAN_REF, scores[i], i))


def until_freed(units: Units, order: list[int], excess: int) -> set[int]:
    """Return as many of the indices, in their order, as are needed to free ``excess`` tokens."""
    gone: set[int] = set()
    for index in order:
        if excess <= 0:
            break
        gone.add(index)
        excess -= units[index].est_tokens
    return gone
