"""The breaking chain's third strategy: make each unit shorter in the way that suits its type."""

import re

from remediation.config import ContentTypeChunking
from remediation.context import STAND_INS, Toolbox, Unit, UnitKind, Units
from remediation.strategies.digest import shorten
from remediation.strategies.masking import shorten_in
from remediation.strategies.outcome import StrategyOutcome, in_units, touchable
from remediation.strategies.stand_ins import text_counter

SMALLEST_TEXT = 24  # tokens; shortening less saves nothing
FENCE = "```"
COMMENT = re.compile(r"\s*(?:#(?![!\w])|//|--\s|/\*.*\*/\s*$)")
STRING_END = re.compile("\"\"\"|'''|`")  # of a string of several lines, within which nothing is a comment


def content_type_chunking(
    units: Units, options: ContentTypeChunking, toolbox: Toolbox, target_tokens: int
) -> StrategyOutcome:
    """Shorten units, oldest first and priority 3 before priority 2, until the target is reached.

    Code is minified, prose and logs are extracted from, down to their type's share; 1.0 stays verbatim. Extraction and
    not a model does it: fifty model calls would cost more than they save. What tools brought stays: masking and cutting
    have made it smaller before.
    """
    order = [index for index in touchable(units) if units[index].kind not in STAND_INS]
    order.sort(key=lambda index: -units[index].priority)
    left = shorten_in(order, units, target_tokens, lambda unit: _shorter(unit, share_kept(unit, options), toolbox))
    shorter = sum(unit is not former for unit, former in zip(left, units, strict=True))
    return StrategyOutcome(left, f"shortened {in_units(shorter)} by type")


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
    candidate = unit.with_text(kept, toolbox.count) if kept.strip() else unit
    return candidate if candidate.est_tokens < unit.est_tokens else unit


def minify_code(text: str) -> str:
    """Leave out lines that are blank or only comment, of the fenced code in ``text``, or of all where it holds none."""
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
