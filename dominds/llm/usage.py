"""Token counts as the provider reported them, or the fact that it reported none.

Counts are never guessed, and a missing count is never zero.
"""

from dataclasses import dataclass
from typing import Any

MAX_PLAUSIBLE_TOKENS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """The reported tokens of one generation; None stands for a number that was not reported.

    ``prompt_tokens`` is the whole prompt, including cache reads and writes, and ``completion_tokens`` the whole answer,
    including reasoning. ``cache_write_long_tokens`` are those that the provider caches for hours, at a higher price.
    """

    prompt_tokens: int
    completion_tokens: int
    reported_total: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_long_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def written_tokens(self) -> int | None:
        """Return the tokens of the prompt that were written to any cache."""
        counts = [count for count in (self.cache_write_tokens, self.cache_write_long_tokens) if count is not None]
        return sum(counts) if counts else None

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens if self.reported_total is None else self.reported_total


@dataclass(frozen=True, slots=True)
class UsageUnavailable:
    """The provider reported no usable counts; ``why`` says what was found, for the log."""

    why: str = "not reported"


UsageReport = Usage | UsageUnavailable


@dataclass(frozen=True, slots=True)
class Shares:
    """Unchecked counts of parts of a prompt and its answer, as the provider states them."""

    cache_read: object = None
    cache_write: object = None
    cache_write_long: object = None
    reasoning: object = None


def usage_from(prompt: object, completion: object, total: object = None, shares: Shares | None = None) -> UsageReport:
    """Accept counts only if they can be true.

    The usage is unavailable if a count is missing, negative, fractional, a text or absurdly large, or if the prompt has
    0 tokens, since no request is empty. Other shares that cannot be true are left out, but if more tokens were read
    from the cache than the prompt has, the whole report is rejected.
    """
    prompt, completion = as_whole(prompt), as_whole(completion)
    for name, value in (("prompt", prompt), ("completion", completion)):
        if isinstance(value, bool) or not isinstance(value, int):
            return UsageUnavailable(f"{name} tokens are {value!r}, not a whole number")
        if not 0 <= value <= MAX_PLAUSIBLE_TOKENS:
            return UsageUnavailable(f"{name} tokens are {value}, which is not plausible")
    if prompt == 0:
        return UsageUnavailable("prompt tokens are 0 for a request that was not empty")
    assert isinstance(prompt, int) and isinstance(completion, int)
    shares = shares or Shares()
    read = count_of(shares.cache_read)
    if read is not None and read > prompt:
        return UsageUnavailable(f"prompt tokens are {prompt}, fewer than the {read} cached ones among them")
    short, long = count_of(shares.cache_write), count_of(shares.cache_write_long)
    if (read or 0) + (short or 0) + (long or 0) > prompt:
        short = long = None
    whole = count_of(total)
    return Usage(
        prompt,
        completion,
        whole if whole and whole <= 2 * MAX_PLAUSIBLE_TOKENS else None,
        read,
        short,
        long,
        _at_most(completion, count_of(shares.reasoning)),
    )


def as_whole(value: object) -> object:
    """Return a float without a fraction as an integer, since some gateways count in floats. Other values stay."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def count_of(value: object) -> int | None:
    """Return a count of tokens, or None where the value is not a count."""
    value = as_whole(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def first_of(reported: dict[str, Any], *names: str) -> object:
    """Return the first of these counts that is set, since some servers use the names of other formats."""
    return next((reported[name] for name in names if reported.get(name)), reported.get(names[0]))


def _at_most(most: int, count: int | None) -> int | None:
    return count if count is not None and count <= most else None


def part(reported: dict[str, Any], name: str, key: str) -> object:
    """Return the count ``key`` of the report's object ``name``, or None."""
    inner = reported.get(name)
    return inner.get(key) if isinstance(inner, dict) else None
