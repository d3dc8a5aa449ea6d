"""The breaking chain's third strategy: make each unit shorter in the way that suits its type."""

from remediation.config import ContentTypeChunking
from remediation.context import STAND_INS, Toolbox, Unit, UnitKind, Units, total_tokens
from remediation.strategies.breaking.minify import minify_code
from remediation.strategies.digest import shorten
from remediation.strategies.outcome import StrategyOutcome, in_units, touchable
from remediation.strategies.stand_ins import text_counter, with_text

SMALLEST_TEXT = 24  # tokens; shortening less saves nothing


def content_type_chunking(
    units: Units, options: ContentTypeChunking, toolbox: Toolbox, target_tokens: int
) -> StrategyOutcome:
    """Shorten units, oldest first and priority 3 before priority 2, until the target is reached.

    Code is minified, prose and logs are extracted from, down to their type's share; 1.0 stays verbatim. Extraction and
    not a model does it: fifty model calls would cost more than they save. What tools brought stays: masking and cutting
    have made it smaller before.
    """
    order = sorted(
        (index for index in touchable(units) if units[index].kind not in STAND_INS), key=lambda i: -units[i].priority
    )
    changed = list(units)
    excess, shorter = total_tokens(units) - target_tokens, 0
    for index in order:
        if excess <= 0:
            break
        unit = _shorter(units[index], share_kept(units[index], options), toolbox)
        shorter += unit.est_tokens < units[index].est_tokens
        excess -= units[index].est_tokens - unit.est_tokens
        changed[index] = unit
    return StrategyOutcome(tuple(changed), f"shortened {in_units(shorter)} by type")


def share_kept(unit: Unit, options: ContentTypeChunking) -> float:
    """Return the share of its tokens that a unit keeps here, from 0 to 1."""
    return options.ratio_for(unit.kind) if len(unit.messages) == 1 else 1.0


def _shorter(unit: Unit, ratio: float, toolbox: Toolbox) -> Unit:
    """The unit with its text cut to ``ratio`` of its tokens, or the unit itself when that gains nothing."""
    count, text = text_counter(toolbox), unit.text
    tokens = count(text)
    if ratio >= 1 or tokens < SMALLEST_TEXT:
        return unit
    kept = minify_code(text) if unit.kind is UnitKind.CODE else shorten(text, int(tokens * ratio), count)
    candidate = with_text(unit, kept, toolbox) if kept.strip() else unit
    return candidate if candidate.est_tokens < unit.est_tokens else unit
