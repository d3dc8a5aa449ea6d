"""A forecast of the answers that are left until a threshold, from the growth of the last ones."""

from collections.abc import Sequence
from statistics import median

LEAST_ANSWERS = 3
LAST_GROWTHS = 5


def growth_per_answer(prompts: Sequence[int | None]) -> float | None:
    """Return the median of the last five growths from prompt to prompt, in tokens.

    ``prompts`` are the reported sizes in one conversation, oldest first. Those before a missing report, and those
    before the prompts last became smaller, are ignored. The result is ``None`` if fewer than three are left, or if
    nothing grows.
    """
    growths = list[int]()
    for before, after in zip(prompts[-2::-1], prompts[:0:-1], strict=True):
        if before is None or after is None or after < before or len(growths) == LAST_GROWTHS:
            break
        growths.append(after - before)
    return (median(growths) or None) if len(growths) >= LEAST_ANSWERS - 1 else None


def answers_until(threshold: int, prompt: int, growth: float) -> int:
    """Return how many answers remain until a prompt exceeds ``threshold``; 0 if ``prompt`` already does."""
    return 0 if prompt > threshold else int((threshold - prompt) // growth) + 1
