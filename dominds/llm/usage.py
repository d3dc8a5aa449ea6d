"""Token counts as the provider reported them, or the fact that it did not. Never a guess, never a zero for missing."""

from dataclasses import dataclass

MAX_PLAUSIBLE_TOKENS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """Reported tokens of one generation. ``prompt_tokens`` is the whole prompt, cache reads and writes included."""

    prompt_tokens: int
    completion_tokens: int
    reported_total: int | None = None

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens if self.reported_total is None else self.reported_total


@dataclass(frozen=True, slots=True)
class UsageUnavailable:
    """The provider reported no usable counts; ``why`` says what was found, for the log."""

    why: str = "not reported"


UsageReport = Usage | UsageUnavailable


def usage_from(prompt: object, completion: object, total: object = None) -> UsageReport:
    """Accept counts only when they can be true.

    A prompt of 0 for a request that was not empty is no measurement (rule of design section 4), and neither are
    negative, fractional, textual or absurd numbers.
    """
    for name, value in (("prompt", prompt), ("completion", completion)):
        if isinstance(value, bool) or not isinstance(value, int):
            return UsageUnavailable(f"{name} tokens are {value!r}, not a whole number")
        if not 0 <= value <= MAX_PLAUSIBLE_TOKENS:
            return UsageUnavailable(f"{name} tokens are {value}, which is not plausible")
    if prompt == 0:
        return UsageUnavailable("prompt tokens are 0 for a request that was not empty")
    plausible_total = isinstance(total, int) and not isinstance(total, bool) and 0 < total <= 2 * MAX_PLAUSIBLE_TOKENS
    assert isinstance(prompt, int) and isinstance(completion, int)
    return Usage(prompt, completion, total if plausible_total and isinstance(total, int) else None)
