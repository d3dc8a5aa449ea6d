"""Importance retention (docs/spec.md#retention-score): score, prune, summarise.

All sizes are estimated tokens. A unit is a message, or a tool call with its results, and is kept or removed whole.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from dominds.llm.messages import Role
from remediation.config import Weights
from remediation.context import Rewritten, Toolbox, Unit, UnitKind, UnitRole, Units, step_of, total_tokens
from remediation.strategies.carrying import ledger_reserve
from remediation.strategies.conclusion import Attempt, conclude, fail, irreducible, outcome_of
from remediation.strategies.exchanges import exchanges
from remediation.strategies.fresh_results import lighten
from remediation.strategies.hand_off import handed_over
from remediation.strategies.outcome import (
    FAILURE_WORDS,
    has_calls,
    in_units,
    is_ledger,
    mentions,
    newest_failure,
    standing,
    those,
    tokens_at,
    with_newest,
)
from remediation.strategies.stand_ins import COUNTS_LINE

TARGET_PERCENT = 80  # of the limit, as docs/spec.md has it
DEFAULT_LIMIT = 100_000  # tokens, for a model that neither the catalog nor the table knows
LIMITS_BY_NAME = {"gemini-2.5-flash": 1_000_000, "claude-4-5": 200_000, "gpt-5": 128_000}  # tokens
COUNTS_TOKENS = 40  # of the line of counts, rounded up
# The account's share of the room that is left beside what must stay. With 0.8 the twelve dialogs lose 7 less, but with
# 0.6 already, failures among 200 messages are not kept word for word (tests/flows/test_retention.py). 0.25: lost +17
HAND_OFF_SHARE = 0.5
# The same if no tool was called. 0.35: canaries -71, 0.8: LoCoMo +4, BFCL +2, and one more call of the model if what
# goes does not fit into one.
TALK_SHARE = 0.7
# The part of the free room that constraints and failures may fill before the scores decide. 37: canaries -12,
# LoCoMo +14, 100: lost -3.
RESCUED_PERCENT = 75

# These words are looked up in lower-cased text. They are no patterns, so each search is linear, whatever the text is.
OPERATION_WORDS = ("tool", "function call", "operation", "execut", "command")
CONSTRAINT_WORDS = (
    "never ",
    "do not ",
    "don't ",
    "don’t ",
    "must not ",
    "mustn't ",
    "avoid ",
    "under no circumstances",
)


class Score(NamedTuple):
    """One unit's points by their causes, which a preview shows."""

    recency: float
    role: float
    keywords: float
    length: float

    @property
    def total(self) -> float:
        return self.recency + self.role + self.keywords + self.length


class Pruned(NamedTuple):
    """The units that pruning keeps. If not even indispensable ones fit, ``kept`` has these and ``failure`` says so."""

    kept: Units
    failure: str = ""


def limit_by_name(model_name: str) -> int:
    """Return the limit, in tokens, of a model that the catalog does not know, by the beginning of its name."""
    name = model_name.lower()
    return next((limit for prefix, limit in LIMITS_BY_NAME.items() if name.startswith(prefix)), DEFAULT_LIMIT)


def score_parts(unit: Unit, index: int, total: int, weights: Weights) -> Score:
    """Return the points of the unit at ``index`` of ``total``, oldest first."""
    return _points(unit, _read(unit, weights), index, total, weights)


class _Reading(NamedTuple):
    """What pruning looks for in a unit's text. It is read once for score and urgency, since reading takes most time."""

    fails: bool
    operates: bool
    forbids: bool  # a user's constraint
    is_long: bool


def _read(unit: Unit, weights: Weights) -> _Reading:
    text = unit.text
    lowered = text.lower()
    return _Reading(
        fails=unit.failed or mentions(lowered, FAILURE_WORDS),
        operates=any(message.tool_calls for message in unit.messages) or mentions(lowered, OPERATION_WORDS),
        forbids=unit.role is UnitRole.USER and mentions(lowered, CONSTRAINT_WORDS),
        is_long=len(text) > weights.long_text_chars,
    )


def _points(unit: Unit, reading: _Reading, index: int, total: int, weights: Weights) -> Score:
    by_role = {UnitRole.SYSTEM: weights.role_system, UnitRole.USER: weights.role_user}
    is_outermost = unit.role is UnitRole.SYSTEM or index == total - 1
    return Score(
        recency=weights.recency if is_outermost else max(0.0, weights.recency * (index - 1) / (total - 1)),
        role=by_role.get(unit.role, weights.role_model),
        keywords=(weights.failures if reading.fails else 0) + (weights.operations if reading.operates else 0),
        length=weights.length if reading.is_long else 0,
    )


def prune(units: Units, max_tokens: int, weights: Weights) -> Pruned:
    """Keep what must stay, and the units with the best scores that fit into ``max_tokens``.

    Constraints of people and failures come before the scores, as far as they fit into RESCUED_PERCENT of the free room:
    by scores alone, a newer pleasantry would take the place of an old "never push".
    """
    if total_tokens(units) <= max_tokens:
        return Pruned(units)
    kept = indispensable(units)
    failure = irreducible(units, max_tokens) if tokens_at(units, kept) > max_tokens else ""
    if not failure:
        kept = with_newest(units, kept, [newest_failure(units)], max_tokens)
        kept |= _best_fitting(units, kept, max_tokens - tokens_at(units, kept), weights)
    return Pruned(those(units, kept), failure)


def indispensable(units: Units) -> set[int]:
    """Return the indices of the newest unit and of those that no rewrite may take away."""
    return standing(units) | ({len(units) - 1} - {-1})


def _best_fitting(units: Units, kept: set[int], room: int, weights: Weights) -> set[int]:
    """Return the indices of the best exchanges that fit. An exchange has the best score of its units."""
    readings = {index: _read(unit, weights) for index, unit in enumerate(units) if index not in kept}
    scores = {
        index: _points(units[index], reading, index, len(units), weights).total for index, reading in readings.items()
    }
    groups = [[index for index in group if index not in kept] for group in exchanges(units)]
    ranked = sorted(filter(None, groups), key=lambda group: (-max(scores[i] for i in group), -group[-1]))

    def urgency(group: Sequence[int]) -> int:
        """Rank calls that failed, which are short, before constraints, and these before what mentions failures."""
        return min(0 if units[i].failed else 1 if readings[i].forbids else 2 if readings[i].fails else 3 for i in group)

    urgent = [
        [index for index in group if _is_core(units[index], readings[index])]
        for group in sorted(ranked, key=urgency)
        if urgency(group) < 3
    ]
    rescued = _fitting(units, urgent, room * RESCUED_PERCENT // 100)
    others = [group for group in ranked if not rescued & set(group)]
    return rescued | _fitting(units, others, room - tokens_at(units, rescued))


def _is_core(unit: Unit, reading: _Reading) -> bool:
    """Check whether a unit of an urgent exchange is rescued: its question, or what is urgent in it and not long."""
    return unit.role is UnitRole.USER or unit.failed or reading.forbids or (reading.fails and not reading.is_long)


def _fitting(units: Units, ranked: Iterable[list[int]], room: int) -> set[int]:
    """Return the indices of the groups that fit into ``room`` tokens, tried one after the other."""
    chosen: set[int] = set()
    for group in ranked:
        size = tokens_at(units, group)
        if size <= room:
            chosen |= set(group)
            room -= size
    return chosen


def describe(units: Sequence[Unit]) -> str:
    """Return a line such as "Previous 50 turns: 25 user messages, 25 model responses, 10 tool calls".

    Turns are user messages and model responses; a tool call without a text is none. The numbers of an earlier such line
    are added.
    """
    users, responses, calls = (sum(column) for column in zip((0, 0, 0), *map(_count_kinds, units), strict=True))
    return (
        f"Previous {_number(users + responses, 'turn')}: {_number(users, 'user message')}, "
        f"{_number(responses, 'model response')}, {_number(calls, 'tool call')}"
    )


def _count_kinds(unit: Unit) -> tuple[int, int, int]:
    """Count user messages, model responses and tool calls."""
    if earlier := _earlier_counts(unit):
        return earlier
    answers = [message for message in unit.messages if message.role is Role.ASSISTANT]
    return (
        sum(message.role is Role.USER for message in unit.messages),
        sum(bool(answer.text) or not answer.tool_calls for answer in answers),
        sum(len(message.tool_calls) for message in unit.messages),
    )


def _earlier_counts(unit: Unit) -> tuple[int, int, int] | None:
    pattern_match = COUNTS_LINE.match(unit.text) if unit.kind is UnitKind.SUMMARY else None
    return (int(pattern_match[1]), int(pattern_match[2]), int(pattern_match[3])) if pattern_match else None


def _number(amount: int, noun: str) -> str:
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def retain(units: Units, limit: int, target_tokens: int, weights: Weights, toolbox: Toolbox) -> Rewritten:
    """Rewrite down to ``target_tokens``: mask old tool output, then remove exchanges, the least important first.

    A line of counts, an account and the ledger stand for what goes.
    """
    attempt = Attempt(units, limit, toolbox.clock(), target=target_tokens)
    if total_tokens(units) <= target_tokens:
        return _nothing_to_prune(attempt, toolbox)
    room = max(1, target_tokens - ledger_reserve(limit, units))
    masked = lighten(units, room, toolbox)
    if total_tokens(masked) <= room:
        step = step_of("mask", units, masked, "masked old tool output")
        return conclude(replace(attempt, steps=(step,)), masked, toolbox)
    light = tuple(unit for unit in masked if not _is_account(unit))
    stays = tokens_at(light, indispensable(light))
    share = HAND_OFF_SHARE if has_calls(units) else TALK_SHARE
    for_hand_off = max(COUNTS_TOKENS, int((room - stays) * share))
    pruned = prune(light, max(1, room - for_hand_off), weights)
    if pruned.failure and total_tokens(pruned.kept) + COUNTS_TOKENS > limit:
        return fail(attempt, pruned.failure, toolbox)
    if len(pruned.kept) == len(light):
        return _nothing_to_prune(attempt, toolbox)
    after = with_account(units, pruned.kept, room, toolbox, limit)
    step = step_of("prune", units, after, f"removed {in_units(len(light) - len(pruned.kept))}")
    return conclude(replace(attempt, steps=(step,)), after, toolbox)


def with_account(units: Units, kept: Units, room: int, toolbox: Toolbox, limit: int) -> Units:
    """Return the units that are ``kept``, with a line of counts and an account where the first of the others stood."""
    standing_now = {unit.id: unit for unit in kept}
    stays = {index for index, unit in enumerate(units) if unit.id in standing_now}
    counts = describe([unit for unit in units if unit.id not in standing_now and not is_ledger(unit)])
    view = tuple(standing_now.get(unit.id, unit) for unit in units)
    return handed_over(view, stays, room, toolbox, limit, f"{counts}\n")


def remove(units: Units, limit: int, target_tokens: int, weights: Weights, toolbox: Toolbox) -> Rewritten:
    """Prune down to ``target_tokens`` and write no account. Accounts of earlier rewrites stay if they fit."""
    attempt = Attempt(units, limit, toolbox.clock(), target=target_tokens)
    if total_tokens(units) <= target_tokens:
        return _nothing_to_prune(attempt, toolbox)
    left = tuple(replace(unit, pinned=True) if _is_account(unit) else unit for unit in units)
    pruned = prune(left, target_tokens, weights)
    if pruned.failure:
        pruned = prune(units, target_tokens, weights)
    if pruned.failure and total_tokens(pruned.kept) > limit:
        return fail(attempt, pruned.failure, toolbox)
    if len(pruned.kept) == len(units):
        return _nothing_to_prune(attempt, toolbox)
    kept = {unit.id for unit in pruned.kept}
    after = tuple(unit for unit in units if unit.id in kept)
    step = step_of("prune", units, after, f"removed {in_units(len(units) - len(after))}")
    return outcome_of(replace(attempt, steps=(step,)), after, toolbox)


def _nothing_to_prune(attempt: Attempt, toolbox: Toolbox) -> Rewritten:
    size, target = total_tokens(attempt.before), attempt.target or 0
    says = (
        f"the messages take est. {size:,} of the {target:,} tokens that they may take."
        if size <= target
        else f"all messages must stay, est. {size:,} tokens."
    )
    return fail(attempt, f"Nothing to prune: {says}", toolbox)


def _is_account(unit: Unit) -> bool:
    """Check for a ledger or an account with a line of counts, both of which each rewrite writes anew."""
    return is_ledger(unit) or _earlier_counts(unit) is not None
