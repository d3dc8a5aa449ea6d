"""The breaking chain's third strategy: make each unit shorter in the way that suits its type."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from dominds.llm.messages import Role
from remediation.config import ContentTypeChunking
from remediation.context import Toolbox, Unit, UnitKind, Units, total_tokens
from remediation.strategies.breaking.minify import minify_code
from remediation.strategies.outcome import STAND_INS, StrategyOutcome, in_units, touchable
from remediation.strategies.stand_ins import text_counter, with_text
from remediation.text.summaries import extractive_summary

SMALLEST_TEXT = 24  # tokens; shortening less saves nothing


def content_type_chunking(
    units: Units, options: ContentTypeChunking, toolbox: Toolbox, target_tokens: int
) -> StrategyOutcome:
    """Shorten units, oldest first and priority 3 before priority 2, until the target is reached.

    Code is minified, prose and logs are extracted from, down to their type's share; 1.0 stays verbatim. Extraction and
    not a model does it: fifty model calls would cost more than they save. Of a tool unit only the results change.
    """
    order = sorted(
        (index for index in touchable(units) if units[index].kind not in STAND_INS), key=lambda i: -units[i].priority
    )
    changed = list(units)
    excess, shorter = total_tokens(units) - target_tokens, 0
    for index in order:
        if excess <= 0:
            break
        unit = _shorter(units[index], options.ratio_for(units[index].kind), toolbox)
        shorter += unit.est_tokens < units[index].est_tokens
        excess -= units[index].est_tokens - unit.est_tokens
        changed[index] = unit
    return StrategyOutcome(tuple(changed), f"shortened {in_units(shorter)} by type")


def _shorter(unit: Unit, ratio: float, toolbox: Toolbox) -> Unit:
    """The unit with its text cut to ``ratio`` of its tokens, or the unit itself when that gains nothing."""
    if ratio >= 1:
        return unit
    cut = partial(_cut, kind=unit.kind, ratio=ratio, count=text_counter(toolbox))
    if len(unit.messages) == 1:
        candidate = with_text(unit, cut(unit.messages[0].text), toolbox)
    else:
        messages = tuple(replace(m, text=cut(m.text)) if m.role is Role.TOOL else m for m in unit.messages)
        candidate = replace(unit, messages=messages, est_tokens=toolbox.count(messages))
    return candidate if candidate.est_tokens < unit.est_tokens else unit


def _cut(text: str, kind: UnitKind, ratio: float, count: Callable[[str], int]) -> str:
    tokens = count(text)
    if tokens < SMALLEST_TEXT:
        return text
    kept = minify_code(text) if kind is UnitKind.CODE else extractive_summary(text, int(tokens * ratio), count)
    return kept if kept.strip() else text
