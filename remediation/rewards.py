"""The reward of a rewrite (docs/spec.md#reward)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from remediation.context import Rewritten, Unit

SLOW_MS = 500  # a slower rewrite loses 0.1 for each second of its whole time
LOWEST, HIGHEST = -2.0, 2.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a rewrite.

    ``priority_preserved`` is a share, 0 to 1. ``coherence_delta`` is the likeness after the rewrite minus that before.
    """

    success: bool
    used_recovery: bool
    coherence_delta: float
    tokens_reduced: int
    time_ms: float
    priority_preserved: float
    original_tokens: int


def reward(outcome: Outcome) -> float:
    """Return the reward, from -2 to 2 (docs/spec.md#reward)."""
    points = _earned_points(outcome) if outcome.success else -1.0
    if outcome.used_recovery:
        points -= 0.7
    if outcome.time_ms > SLOW_MS:
        points -= outcome.time_ms / 1000 * 0.1
    return max(LOWEST, min(HIGHEST, points))


def _earned_points(outcome: Outcome) -> float:
    reduction = outcome.tokens_reduced / outcome.original_tokens if outcome.original_tokens else 0.0
    return 1.0 + outcome.coherence_delta * 0.5 + reduction * 0.3 + outcome.priority_preserved * 0.2


def outcome_of(before: Sequence[Unit], rewritten: Rewritten) -> Outcome:
    """Return the outcome of a rewrite of ``before``.

    Coherence is measured later, see ``with_coherence``. Until then it counts as unchanged.
    """
    return Outcome(
        success=not rewritten.failure,
        used_recovery=rewritten.recovered,
        coherence_delta=0.0,
        tokens_reduced=rewritten.est_before - rewritten.est_after,
        time_ms=rewritten.millis,
        priority_preserved=priority_preserved(before, rewritten.units),
        original_tokens=rewritten.est_before,
    )


def priority_preserved(before: Sequence[Unit], after: Sequence[Unit]) -> float:
    """Return the share of priority-1 units that are unchanged; 1 if there were none."""
    important = [unit for unit in before if unit.priority == 1]
    standing = {(unit.id, unit.text) for unit in after}
    return sum((unit.id, unit.text) in standing for unit in important) / len(important) if important else 1.0


def reward_record(
    state_before: Mapping[str, Any], action: Mapping[str, Any], outcome: Outcome, state_after: Mapping[str, Any]
) -> dict[str, Any]:
    """Return one line of the JSONL export, under the keys of docs/spec.md#reward."""
    return {
        "stateBefore": dict(state_before),
        "action": dict(action),
        "reward": reward(outcome),
        "stateAfter": dict(state_after),
        "outcome": asdict(outcome),
    }


def with_coherence(record: Mapping[str, Any], coherence: float) -> dict[str, Any]:
    """Return the record with its reward once ``coherence``, 0 to 1, was measured.

    The likeness before is 1, since a context is wholly like itself. So the delta is never positive.
    """
    outcome = replace(Outcome(**record["outcome"]), coherence_delta=coherence - 1.0)
    return {**record, "reward": reward(outcome), "outcome": asdict(outcome)}


def state_of(units: Sequence[Unit], est_tokens: int, limit: int) -> dict[str, Any]:
    """Return a context's numbers for the export, without text. ``est_tokens`` is the size of the whole request."""
    kinds: dict[str, int] = {}
    for unit in units:
        kinds[unit.kind.value] = kinds.get(unit.kind.value, 0) + 1
    return {
        "units": len(units),
        "estTokens": est_tokens,
        "limit": limit,
        "kinds": kinds,
        "priorityOne": sum(unit.priority == 1 for unit in units),
    }
