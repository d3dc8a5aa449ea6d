"""The third strategy of the breaking chain: shorten each unit in the way that suits its kind."""

import re

from remediation.config import ContentTypeChunking
from remediation.context import STAND_INS, Toolbox, Unit, UnitKind, Units
from remediation.strategies.digest import shorten
from remediation.strategies.masking import shorten_in
from remediation.strategies.outcome import StrategyOutcome, in_units, touchable
from remediation.strategies.stand_ins import text_counter

SMALLEST_TEXT = 24  # tokens; to shorten a smaller text saves nothing
FENCE = "```"
COMMENT = re.compile(r"\s*(?:#(?![!\w])|//|--\s|/\*.*\*/\s*$)")
STRING_END = re.compile("\"\"\"|'''|`")  # of a string of several lines, in which no line is a comment


def content_type_chunking(
    units: Units, options: ContentTypeChunking, toolbox: Toolbox, target_tokens: int
) -> StrategyOutcome:
    """Shorten units until all fit into ``target_tokens``: priority 3 before priority 2, then the oldest first.

    Code loses its comments; of other texts the best sentences stay, in the share of tokens that their kind may keep.
    Rules do this, since a model would have to be called for each unit. Tool calls stay, since their results were masked
    or cut before.
    """
    order = [index for index in touchable(units) if units[index].kind not in STAND_INS]
    order.sort(key=lambda index: -units[index].priority)
    left = shorten_in(order, units, target_tokens, lambda unit: _shorter(unit, share_kept(unit, options), toolbox))
    shorter = sum(unit is not former for unit, former in zip(left, units, strict=True))
    return StrategyOutcome(left, f"shortened {in_units(shorter)} by type")


def share_kept(unit: Unit, options: ContentTypeChunking) -> float:
    """Return the share of its tokens that a unit keeps, from 0 to 1."""
    return options.ratio_for(unit.kind) if len(unit.messages) == 1 else 1.0


def _shorter(unit: Unit, ratio: float, toolbox: Toolbox) -> Unit:
    """Return the unit with a ``ratio`` of its tokens, or as it was if that gains nothing."""
    count, text = text_counter(toolbox), unit.text
    tokens = count(text)
    if ratio >= 1 or tokens < SMALLEST_TEXT:
        return unit
    kept = minify_code(text) if unit.kind is UnitKind.CODE else shorten(text, int(tokens * ratio), count)
    candidate = unit.with_text(kept, toolbox.count) if kept.strip() else unit
    return candidate if candidate.est_tokens < unit.est_tokens else unit


def minify_code(text: str) -> str:
    """Leave out blank lines and comments of fenced code in the text, or of the whole text if it has no fence."""
    kept: list[str] = []
    inside, in_string = FENCE not in text, False
    for line in text.split("\n"):
        if FENCE in line:
            inside, in_string = not inside, False
        elif inside:
            if not in_string and (not line.strip() or COMMENT.match(line)):
                continue
            in_string ^= len(STRING_END.findall(line)) % 2 == 1
        kept.append(line)
    return "\n".join(kept)
