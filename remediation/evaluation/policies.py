"""Policies under comparison: the product's own, called as the runtime calls them, and baselines of a few lines each."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from dominds.llm.messages import Role
from remediation.config import ContextConfig, Weights
from remediation.context import Toolbox, Unit, UnitRole, Units, write_nothing
from remediation.similarity.embeddings import Embedder, relevance, similarity
from remediation.strategies.breaking.chain import break_context
from remediation.strategies.fresh_start import start_fresh
from remediation.strategies.importance import retain
from remediation.strategies.outcome import with_newest
from remediation.strategies.pruning import fallback
from remediation.tokens.counting import Counter

TRIGGER_PERCENT, TARGET_PERCENT = 80, 50  # of the budget, for every policy alike
MASKED = "[{tokens} tokens of tool output are no longer shown]"
UNMASKED_UNITS = 3  # the masking baseline leaves the tool output of the newest units


@dataclass(frozen=True, slots=True)
class Room:
    """The tokens that units may take: ``limit`` at most, ``target`` as an aim."""

    limit: int
    target: int


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


def window(units: Units, room: Room, toolbox: Toolbox) -> Units:
    """Keep the newest units that fit, and nothing else."""
    kept = with_newest(units, set(), range(len(units)), room.target)
    return tuple(units[index] for index in sorted(kept | {len(units) - 1}))


def masking(units: Units, room: Room, toolbox: Toolbox) -> Units:
    """Replace old tool output by a line with its size, oldest first. If that is not enough, drop the oldest units."""
    masked = list(units)
    excess = sum(unit.est_tokens for unit in units) - room.target
    for index, unit in enumerate(units[:-UNMASKED_UNITS]):
        if excess <= 0:
            break
        if unit.role is UnitRole.TOOL:
            masked[index] = _mask(unit, toolbox)
            excess -= unit.est_tokens - masked[index].est_tokens
    return tuple(masked) if excess <= 0 else window(tuple(masked), room, toolbox)


def _mask(unit: Unit, toolbox: Toolbox) -> Unit:
    note = MASKED.format(tokens=unit.est_tokens)
    messages = tuple(
        replace(message, text=note) if message.role is Role.TOOL and len(message.text) > len(note) else message
        for message in unit.messages
    )
    return replace(unit, messages=messages, est_tokens=toolbox.count(messages))


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
        Policy("window", window),
        Policy("masking", masking),
        Policy("breaking", breaking),
        Policy("retention", retention),
        Policy("autocompaction", compaction_fallback),
        Policy("fresh_start", fresh_start),
    )
}
