"""Selection of what stays, by one rule for accounts, ledgers and shortened texts: by worth for the tokens, as far as
they fit.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

# Added to each price, so that long sentences are not punished in full measure. 4: LoCoMo -10, BFCL -7, 16: lost +6.
OFFSET_TOKENS = 8
# Powers of a price. Of the twelve dialogs, rewritten again and again to a fifth, 136 of 480 facts are lost with these,
# 143 with the former for both; of the notes' 404 answers 307 stand in sight, 287 with the latter for both.
IN_CONTEXT, ALONE = 0.8, 0.5  # of a sentence between others of its text, and of a line cut out of it
FILLS = 3  # rounds at most, each with the tokens that the one before left over; 1: lost +15, 6: LoCoMo -8

Choice = TypeVar("Choice")


def density(worth: float, tokens: float, power: float = IN_CONTEXT) -> float:
    """Return what a choice is worth for its tokens."""
    return worth / math.pow(tokens + OFFSET_TOKENS, power)


def fill(order: Iterable[tuple[Choice, int]], room: int, size: Callable[[Sequence[Choice]], int]) -> list[Choice]:
    """Take the choices that fit into ``room`` tokens, tried in ``order``, each with an estimate of its tokens.

    ``size`` counts those that were taken, since tokens of parts do not add up exactly: what is left over is filled
    again, and what is too much goes, the last first.
    """
    chosen: list[Choice] = []
    waiting, used = list(order), size(())
    for _ in range(FILLS):
        left, passed = room - used, []
        for choice, tokens in waiting:
            if tokens <= left:
                chosen.append(choice)
                left -= tokens
            else:
                passed.append((choice, tokens))
        if len(passed) == len(waiting):
            break
        waiting, used = passed, size(chosen)
    while chosen and used > room:
        chosen.pop()
        used = size(chosen)
    return chosen
