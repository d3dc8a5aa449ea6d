"""Document C's first strategy: one summary in place of the oldest units."""

import re
from collections.abc import Callable

from remediation.config import SummarizeOld
from remediation.context import Toolbox, UnitKind, Units, total_tokens
from remediation.strategies.outcome import StrategyOutcome, touchable
from remediation.strategies.stand_ins import SUMMARY_HEADING, put_in_place, stand_in, text_counter, told
from remediation.text.ledger import redact
from remediation.text.summaries import extractive_summary, summary_problem

MIN_SIMILARITY = 0.7  # of a summary to what it stands for, document C; below it the text is truncated instead
SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")


def summarize_old(units: Units, options: SummarizeOld, toolbox: Toolbox, target_tokens: int) -> StrategyOutcome:
    """Summarise the oldest share of the units: those of priority 3, and of priority 2 if that is not enough.

    Plan references stay verbatim. Earlier summaries and placeholders among the old are merged into the new summary.
    """
    boundary = int(len(units) * options.old_threshold)
    old = [i for i in touchable(units) if i < boundary and units[i].kind is not UnitKind.PLAN_REF]
    chosen = _least_important(units, old, total_tokens(units) + options.summary_length - target_tokens)
    if not chosen:
        return StrategyOutcome(units, "nothing old to summarise")
    return replace_by_summary(units, chosen, options.summary_length, toolbox)


def _least_important(units: Units, old: list[int], excess: int) -> set[int]:
    """The old units of priority 3, joined by those of priority 2 while they do not free ``excess`` tokens."""
    chosen = {index for index in old if units[index].priority >= 3}
    if sum(units[index].est_tokens for index in chosen) < excess:
        chosen |= set(old)
    return chosen


def replace_by_summary(units: Units, chosen: set[int], max_tokens: int, toolbox: Toolbox) -> StrategyOutcome:
    """One summary where the first of ``chosen`` stood; the units as they were when it would not save anything."""
    replaced = tuple(unit for index, unit in enumerate(units) if index in chosen)
    text = "\n".join(part for part in map(told, replaced) if part)
    summary, note = gated_summary(text, max_tokens, toolbox)
    if not summary:
        return StrategyOutcome(units, "nothing to summarise")
    unit = stand_in(UnitKind.SUMMARY, SUMMARY_HEADING + summary, replaced, toolbox, units)
    if unit.est_tokens >= total_tokens(replaced):
        return StrategyOutcome(units, "a summary would be no shorter")
    return StrategyOutcome(put_in_place(units, chosen, unit), _joined(f"summarised {len(replaced)} units", note))


def gated_summary(text: str, max_tokens: int, toolbox: Toolbox) -> tuple[str, str]:
    """A summary that passed the gates, and a note when a fallback was needed.

    A summary with a problem gives way to extraction; one less than 0.7 similar to the text gives way to truncation (C4).
    """
    text, count = redact(text), text_counter(toolbox)
    if not text.strip():
        return "", ""
    summary, note = redact(toolbox.summarise(text, max_tokens)), ""
    if problem := summary_problem(summary, text, count, max_tokens):
        summary, note = extractive_summary(text, max_tokens, count), f"extracted, because {problem}"
    if not summary.strip() or toolbox.similarity(text, summary) < MIN_SIMILARITY:
        return truncated(text, max_tokens, count), _joined(note, "truncated, because the summary was unlike")
    return summary.strip(), note


def truncated(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    """Sentences of ``text`` word for word: the newest in half the room, and of the older those that say most."""
    older, newest = split_newest(text, max_tokens // 2, count)
    telling = extractive_summary(older, max_tokens - count(newest) - 1, count)
    return "\n".join(part for part in (telling, newest) if part)


def split_newest(text: str, max_tokens: int, count: Callable[[str], int]) -> tuple[str, str]:
    """The newest sentences that fit, and the text before them."""
    sentences = [sentence.strip() for sentence in SENTENCE_END.split(text) if sentence.strip()]
    first, tokens = len(sentences), 0
    while first > 0 and (tokens := tokens + count(sentences[first - 1]) + 1) <= max_tokens:
        first -= 1
    return "\n".join(sentences[:first]), "\n".join(sentences[first:])


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
