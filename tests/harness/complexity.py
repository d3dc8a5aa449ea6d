"""Whether a function's time grows in proportion to what it is given."""

import gc
import time
from collections.abc import Callable
from typing import Any, TypeVar

Given = TypeVar("Given")

MOST_GROWTH = 2.5  # time at 2N, in times of that at N: 2 is linear, 4 is quadratic
TRIES = 5
SHORT_SECONDS = 0.05  # below this the machine's caches matter more than the function; what is quadratic takes longer


def assert_linear(function: Callable[[Given], Any], make: Callable[[int], Given], n: int) -> None:
    """``function(make(2 * n))`` takes at most 2.5 times as long as ``function(make(n))``.

    The best of several runs counts, in time of this thread alone: other programs can only make a run longer. It is
    tried again as long as it looks quadratic; what is quadratic looks so each time. And at the next doubling as well,
    unlike what only outgrows a cache of the processor at this one.
    """
    seen: list[str] = []
    if not any(_is_linear(function, make, size, seen) for size in (n, 2 * n)):
        raise AssertionError(f"{function} looks quadratic: {'; '.join(seen)}")


def _is_linear(function: Callable[[Given], Any], make: Callable[[int], Given], n: int, seen: list[str]) -> bool:
    small, large = make(n), make(2 * n)
    at_n = at_2n = float("inf")
    for _ in range(TRIES):
        # Before and after: a moment in which the machine is slow must not make the short run look long.
        at_n, at_2n = min(at_n, _seconds(function, small)), min(at_2n, _seconds(function, large))
        at_n = min(at_n, _seconds(function, small))
        seen.append(f"{n:,} to {2 * n:,}: {at_n:.3f} s, {at_2n:.3f} s")
        if at_2n <= max(SHORT_SECONDS, MOST_GROWTH * at_n):
            return True
    return False


def _seconds(function: Callable[[Given], Any], given: Given) -> float:
    gc.disable()  # it looks through all that the function made again and again, which is not the function's doing
    try:
        begun_at = time.thread_time()
        function(given)
        return time.thread_time() - begun_at
    finally:
        gc.enable()
