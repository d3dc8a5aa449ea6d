"""Policies under comparison: the product's own, called as the runtime calls them, and the baselines."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from remediation.config import ContextConfig, Weights
from remediation.context import Toolbox, Units, write_nothing
from remediation.evaluation import baselines
from remediation.evaluation.baselines import Room
from remediation.similarity.embeddings import Embedder, relevance, similarity
from remediation.strategies.breaking.chain import break_context
from remediation.strategies.fresh_start import start_fresh
from remediation.strategies.importance import retain
from remediation.strategies.pruning import fallback
from remediation.tokens.counting import Counter

TRIGGER_PERCENT, TARGET_PERCENT = 80, 50  # of the budget, for every policy alike

Rewrite = Callable[[Units, Room, Toolbox], Units]


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy under comparison. ``rewrite`` returns the new view, or the same units if it cannot make it smaller."""

    name: str
    rewrite: Rewrite | None  # None: never acts
    trigger_percent: int = TRIGGER_PERCENT
    target_percent: int = TARGET_PERCENT


def toolbox_of(counter: Counter, embedder: Embedder) -> Toolbox:
    """Make a toolbox without a model: rules choose the text of hand-offs."""
    return Toolbox(
        count=counter.count_messages,
        summarise=write_nothing,
        relevance=lambda texts, query: relevance(texts, query, embedder),
        similarity=lambda a, b: similarity(a, b, embedder),
        clock=lambda: time.perf_counter() * 1000,
        report=lambda phase, current, limit: None,
    )


def breaking(units: Units, room: Room, toolbox: Toolbox) -> Units:
    return break_context(units, ContextConfig(), toolbox, room.limit, room.target).units


def retention(units: Units, room: Room, toolbox: Toolbox) -> Units:
    return retain(units, room.limit, room.target, Weights(), toolbox).units


def compaction_fallback(units: Units, room: Room, toolbox: Toolbox) -> Units:
    return fallback(units, toolbox, room.limit, "no pruning agent", room.target).units


def fresh_start(units: Units, room: Room, toolbox: Toolbox) -> Units:
    return start_fresh(units, toolbox, room.limit).units


POLICIES = {
    policy.name: policy
    for policy in (
        Policy("none", None),
        Policy("window", baselines.window),
        Policy("masking", baselines.masking),
        Policy("langchain", baselines.langchain),
        Policy("inspect_trim", baselines.inspect_trim),
        Policy("inspect_edit", baselines.inspect_edit),
        Policy("codex", baselines.codex),
        Policy("cliff", baselines.cliff),
        Policy("breaking", breaking),
        Policy("retention", retention),
        Policy("autocompaction", compaction_fallback),
        Policy("fresh_start", fresh_start),
    )
}
