"""The fourth strategy of the breaking chain: discard the least relevant units, and say where they stood."""

from itertools import groupby

from remediation.config import DiscardLowRel
from remediation.context import STAND_INS, Toolbox, Unit, UnitKind, Units, total_tokens
from remediation.strategies.breaking.prioritize_recent import removal_order, score_units, until_freed
from remediation.strategies.breaking.summarize_old import replace_by_summary
from remediation.strategies.outcome import StrategyOutcome, in_units, text_of, tokens_at, touchable
from remediation.strategies.stand_ins import placeholder

# If the units that are left are less similar to those before, discarding is undone, as docs/spec.md has it. 0 changes
# nothing in the sets of docs/experiments.md.
MIN_SIMILARITY = 0.6
SUMMARY_SHARE = 4  # an account may take the tokens of its units divided by this
SMALLEST_SUMMARY = 40  # tokens


def discard_low_rel(units: Units, options: DiscardLowRel, toolbox: Toolbox, target_tokens: int) -> StrategyOutcome:
    """Discard the least relevant units, at most a share, until the target is reached: priority 3 before priority 2.

    A placeholder stands in place of units in a row. If the rest is too unlike what there was, an account replaces the
    same units instead.
    """
    candidates = [index for index in touchable(units) if units[index].kind not in STAND_INS]
    order = removal_order(units, candidates, score_units(units, candidates, 1.0, toolbox))
    share = max(1, int(len(order) * options.discard_percent)) if options.discard_percent else 0
    gone = until_freed(units, order[:share], total_tokens(units) - target_tokens)
    left = _with_placeholders(units, gone, options.placeholder_detail, toolbox)
    if total_tokens(left) >= total_tokens(units):
        return StrategyOutcome(units, "nothing to discard")
    if toolbox.similarity(text_of(units), text_of(left)) < MIN_SIMILARITY:
        room = max(SMALLEST_SUMMARY, tokens_at(units, gone) // SUMMARY_SHARE)
        summarised = replace_by_summary(units, gone, room, toolbox)
        note = f"discarding was undone, since little was left of the meaning; {summarised.note}"
        return StrategyOutcome(summarised.units, note)
    return StrategyOutcome(left, f"discarded {in_units(len(gone))} of low relevance")


def _with_placeholders(units: Units, gone: set[int], detail: str, toolbox: Toolbox) -> Units:
    """Put one placeholder in place of units in a row that go and placeholders among them, if it is smaller."""
    left: list[Unit] = []
    for leaves, group in groupby(
        enumerate(units), lambda item: item[0] in gone or item[1].kind is UnitKind.PLACEHOLDER
    ):
        run = tuple(unit for _, unit in group)
        if leaves and any(unit.kind is not UnitKind.PLACEHOLDER for unit in run):
            mark = placeholder(run, detail, toolbox, (*units, *left))
            run = (mark,) if mark.est_tokens < total_tokens(run) else run
        left += run
    return tuple(left)
