"""Proposals to change limits and chains, from rewards and errors. A person accepts or rejects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from remediation.context import StrategyStep

MIN_OUTCOMES = 5  # an agent with fewer rewrites is not judged
RECOVERY_SHARE = 0.3  # if a larger share of the rewrites needed recovery, the limit is too tight
MANY_ERRORS = 5
MIN_STEPS = 3  # runs of a strategy before its yield counts
CLEARLY_BETTER = 2.0  # a strategy goes first if its yield is this many times that of the first one


@dataclass(frozen=True, slots=True)
class PastRewrite:
    """One stored rewrite of an agent's dialog. ``limit`` and the model's ``window`` are in tokens; None is unknown."""

    agent: str
    limit: int
    window: int | None
    chain_order: tuple[str, ...]
    steps: tuple[StrategyStep, ...]
    reward: float
    recovered: bool


@dataclass(frozen=True, slots=True)
class PastError:
    agent: str
    code: str  # TOKEN_LIMIT_EXCEEDED, BREAKER_FAILED, RECOVERY_TRIGGERED


@dataclass(frozen=True, slots=True)
class ProposalDraft:
    """``kind`` is ``limit`` or ``order``; ``change`` is ``{"context_limit": n}`` or ``{"chain_order": [...]}``."""

    agent: str
    kind: str
    change: Mapping[str, Any]
    grounds: str


def propose(outcomes: Sequence[PastRewrite], errors: Sequence[PastError]) -> tuple[ProposalDraft, ...]:
    """Propose at most one change of limit and one of order per agent. ``outcomes`` are oldest first."""
    drafts: list[ProposalDraft] = []
    for agent, group in groupby(sorted(outcomes, key=lambda past: past.agent), key=lambda past: past.agent):
        rewrites = list(group)
        if len(rewrites) >= MIN_OUTCOMES:
            failures = sum(error.agent == agent for error in errors)
            drafts += [draft for draft in (_raise_limit(rewrites, failures), _reorder(rewrites)) if draft]
    return tuple(drafts)


def _raise_limit(rewrites: Sequence[PastRewrite], errors: int) -> ProposalDraft | None:
    newest = rewrites[-1]
    recoveries = sum(past.recovered for past in rewrites)
    if recoveries / len(rewrites) <= RECOVERY_SHARE and errors < MANY_ERRORS:
        return None
    raised = newest.limit * 6 // 5
    limit = raised if newest.window is None else min(raised, newest.window)
    if limit <= newest.limit:
        return None
    grounds = (
        f"{recoveries} of {len(rewrites)} rewrites ended in recovery, with {errors} context errors and a mean reward "
        f"of {_mean([past.reward for past in rewrites]):.2f}; the limit is {newest.limit:,} tokens."
    )
    return ProposalDraft(newest.agent, "limit", {"context_limit": limit}, grounds)


def _reorder(rewrites: Sequence[PastRewrite]) -> ProposalDraft | None:
    newest = rewrites[-1]
    yields = _yields(rewrites)
    known = [name for name in newest.chain_order if name in yields and name != "hybrid"]
    if len(known) < 2:
        return None
    first, best = known[0], max(known, key=yields.__getitem__)
    if best == first or yields[best] < max(yields[first], 0.01) * CLEARLY_BETTER:
        return None
    order = [best, *(name for name in newest.chain_order if name != best)]
    grounds = (
        f"Over {len(rewrites)} rewrites {best} removed {yields[best]:.0%} of what it was given, {first} only "
        f"{yields[first]:.0%}: begin with the one that works."
    )
    return ProposalDraft(newest.agent, "order", {"chain_order": order}, grounds)


def _yields(rewrites: Sequence[PastRewrite]) -> dict[str, float]:
    """Return the mean share of tokens that each strategy removed, for those that ran often enough."""
    shares: dict[str, list[float]] = {}
    for step in (step for past in rewrites for step in past.steps if step.est_before):
        shares.setdefault(step.strategy, []).append(1 - step.est_after / step.est_before)
    return {name: _mean(values) for name, values in shares.items() if len(values) >= MIN_STEPS}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
