"""Why a piece of the context went, in words for people: what each strategy takes, and why."""

from collections.abc import Mapping, Sequence
from typing import Any

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


def reasons_of(strategies: Sequence[str], policy: str, steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """One for each of the strategies that took or changed a piece. Of a plug-in's strategy, its own note."""
    notes = {step["strategy"]: step["note"] for step in steps}
    words = REASONS | ({"prune": BY_AGENT} if policy == "autocompaction" else {})
    return [words.get(name) or notes.get(name) or name for name in dict.fromkeys(strategies)]
