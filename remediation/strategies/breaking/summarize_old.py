"""The first strategy of the breaking chain: an account in place of the oldest units."""

from dataclasses import replace
from math import ceil

from remediation.config import SummarizeOld
from remediation.context import Toolbox, UnitKind, Units, total_tokens
from remediation.strategies.carrying import MESSAGE_TOKENS
from remediation.strategies.hand_off import PEOPLE_SHARE, HandOff, by_model, by_rule, hand_off, summarised
from remediation.strategies.outcome import StrategyOutcome, has_calls, in_units, text_of, those, touchable, without
from remediation.strategies.stand_ins import heading_tokens

# By wording, faithful summaries have a similarity of 0.44 to 0.68. Below this a note warns, but coverage decides.
TOO_UNLIKE = 0.4
# The share of the target that an account may fill if more units must go than these. 0: BEAM -4; 0.22: lost -1, 0.9: -2
ROOM_SHARE = 0.45


def summarize_old(
    units: Units,
    options: SummarizeOld,
    toolbox: Toolbox,
    target_tokens: int,
    most_tokens: int = 0,
    recent_share: float = 1.0,
) -> StrategyOutcome:
    """Replace the oldest share of the units by an account: those of priority 3, and of 2 if that is not enough.

    Plan references stay. Earlier summaries and placeholders among the units are merged into the account. It may fill
    the room that the target leaves. A model's may fill what ``most_tokens``, a size of all units together, leaves. If
    an account by rule replaces talk, it quotes from all units but the newest ``recent_share``.
    """
    excess = total_tokens(units) + options.summary_length - target_tokens
    chosen = _least_important(units, int(len(units) * options.old_threshold), excess)
    if not chosen:
        return StrategyOutcome(units, "nothing old to summarize")
    gone, stay = those(units, chosen), without(units, chosen)
    room = _room(units, gone, options, toolbox, target_tokens)
    most = most_tokens - total_tokens(stay) - MESSAGE_TOKENS
    handed = by_model(gone, stay, max(room, most), toolbox)
    if not handed.by_model:
        if not has_calls(units):
            chosen |= _least_important(units, len(units) - ceil(len(units) * recent_share), excess)
            gone, stay = those(units, chosen), without(units, chosen)
            room = _room(units, gone, options, toolbox, target_tokens)
        if [unit.kind for unit in gone] == [UnitKind.SUMMARY] and total_tokens(gone) <= room:
            return StrategyOutcome(units, "nothing old to summarize")
        handed = by_rule(gone, stay, room, toolbox, target_tokens // PEOPLE_SHARE, handed.note)
    outcome = _replace_old(units, chosen, handed, room, toolbox)
    excess = min(outcome.excess, max(0, total_tokens(outcome.units) - target_tokens))
    return replace(outcome, excess=excess)


def _room(units: Units, gone: Units, options: SummarizeOld, toolbox: Toolbox, target_tokens: int) -> int:
    size = total_tokens(gone)
    free = target_tokens - (total_tokens(units) - size) - heading_tokens(gone, toolbox)
    return max(options.summary_length, min(size, max(free, int(target_tokens * ROOM_SHARE))))


def _least_important(units: Units, end: int, excess: int) -> set[int]:
    """Return the indices before ``end`` of priority 3, and of 2 if the former free fewer than ``excess`` tokens."""
    old = [i for i in touchable(units) if i < end and units[i].kind is not UnitKind.PLAN_REF]
    chosen = {index for index in old if units[index].priority >= 3}
    if sum(units[index].est_tokens for index in chosen) < excess:
        chosen |= set(old)
    return chosen


def replace_by_summary(units: Units, chosen: set[int], max_tokens: int, toolbox: Toolbox) -> StrategyOutcome:
    """Put an account where the first of the ``chosen`` units stood, or change nothing if that saves nothing."""
    handed = hand_off(those(units, chosen), without(units, chosen), max_tokens, toolbox, max_tokens)
    return _replace_old(units, chosen, handed, max_tokens, toolbox)


def _replace_old(units: Units, chosen: set[int], handed: HandOff, max_tokens: int, toolbox: Toolbox) -> StrategyOutcome:
    if not handed.text:
        return StrategyOutcome(units, "nothing to summarize")
    left = summarised(units, set(range(len(units))) - chosen, handed.text, toolbox)
    if len(left) <= len(units) - len(chosen):
        return StrategyOutcome(units, "a summary would be no shorter")
    replaced = those(units, chosen)
    notes = [f"summarized {in_units(len(replaced))}", handed.note]
    if handed.by_model and toolbox.similarity(text_of(replaced), handed.text) < TOO_UNLIKE:
        notes.append("it looks unlike what it stands for")
    size = total_tokens(left) - (total_tokens(units) - total_tokens(replaced))
    excess = max(0, size - max_tokens - MESSAGE_TOKENS)
    return StrategyOutcome(left, "; ".join(note for note in notes if note), excess=excess)
