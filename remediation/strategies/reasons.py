"""What pages say about strategies: their names, why each removed or changed a unit, and notes on what it did."""

from collections.abc import Mapping, Sequence
from typing import Any

NAMES = {
    "mask": "mask old tool output",
    "summarize_old": "summarize old messages",
    "prioritize_recent": "prioritize recent messages",
    "content_type_chunking": "shorten by type",
    "discard_low_rel": "discard low relevance",
    "digest": "condense what went",
    "prune": "prune",
    "fallback": "keep the newest",
    "summarize": "summarize",
    "cut_answer": "shorten a cut-off answer",
}
BY_RULE = "chosen by rule"
# The notes that steps carry, for their translation. A number stands in place of each pair of braces.
NOTES = (
    "masked old tool output",
    "summarized {} units",
    "a summary would be no shorter",
    "nothing to summarize",
    "nothing old to summarize",
    BY_RULE,
    "it looks unlike what it stands for",
    "removed {} units",
    "removed {} units of low relevance",
    "discarded {} units of low relevance",
    "nothing to discard",
    "nothing to judge",
    "everything is relevant",
    "shortened {} units by type",
    "said in short what {} units said",
    "kept the newest {} units",
    "the tail stays word for word",
    "asked once more for {} missing facts, {} went to the ledger",
    "{} missing facts went to the ledger",
    "prepared while the dialog rested",
    # What was wrong with a model's summary, so that sentences were chosen by rule.
    "the summary is empty",
    "the summary holds the model's reasoning instead of prose",
    "the summary is a tool call instead of prose",
    "the summary is an error text",
    "the model refused to summarise",
    "the summary is cut off",
    "the summary is no smaller than its input ({} tokens for {})",
    "the summary is longer than asked ({} tokens for at most {})",
    "the summary says nothing of what it stands for",
)
REASONS = {
    "mask": "old tool output: a line says what it was and how to read it again",
    "summarize_old": "among the oldest: a summary stands for it",
    "prioritize_recent": "neither recent nor relevant enough to the task",
    "content_type_chunking": "shortened as its kind allows",
    "discard_low_rel": "among the least relevant to the task",
    "prune": "more important messages took the room",
    "fallback": "not among what must stay and the newest that fit",
    "summarize": "older than the newest messages, which stay",
    "cut_answer": "the beginning of an answer that filled the window",
}
BY_AGENT = "the pruning agent left it out or shortened it"
HANDOVER = "a fresh start: the handover stands for it"
TRUNCATED = "truncated: what must stay and the newest that fit are left"
WRITTEN_ANEW = "written anew by this rewrite"


def name_of(strategy: str) -> str:
    """Return the strategy's name for people. A plug-in's strategy has its own name, without underscores."""
    return NAMES.get(strategy) or strategy.replace("_", " ")


def reasons_of(strategies: Sequence[str], policy: str, steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why each strategy removed or changed a unit. A plug-in's strategy has the note of its step as reason."""
    notes = {step["strategy"]: step["note"] for step in steps}
    words = REASONS | ({"prune": BY_AGENT} if policy == "autocompaction" else {})
    return [words.get(name) or notes.get(name) or name for name in dict.fromkeys(strategies)]
