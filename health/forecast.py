"""Forecast of the answers that are left until a threshold, by the growth of the last ones."""

from collections.abc import Sequence
from statistics import median

LEAST_ANSWERS = 3
LAST_GROWTHS = 5


def growth_per_answer(prompts: Sequence[int | None]) -> float | None:
    """Tokens, the median of the last few. ``prompts`` are the reported ones of one conversation, oldest first.

    What came before a missing report or a smaller prompt says nothing of what comes.
    ``None`` when fewer than three answers are left, or nothing grows.
    """
    growths = list[int]()
    for before, after in zip(prompts[-2::-1], prompts[:0:-1], strict=True):
        if before is None or after is None or after < before or len(growths) == LAST_GROWTHS:
            break
        growths.append(after - before)
    return (median(growths) or None) if len(growths) >= LEAST_ANSWERS - 1 else None


def answers_until(threshold: int, prompt: int, growth: float) -> int:
    """Return how many more answers until a prompt is above ``threshold``: at least one, 0 where it is already."""
    return 0 if prompt > threshold else int((threshold - prompt) // growth) + 1
