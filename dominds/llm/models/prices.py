"""Cost of a generation, by the provider's list and the counts that it reported."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from dominds.llm.usage import Usage

PER = 1_000_000  # tokens


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens. Of ``cached``, ``write`` and ``write_long`` None means: as any input.

    ``above`` is the prompt length in tokens from beyond which it holds, for the whole prompt and its answer. ``since``
    and ``until`` are the first and last day; None: open.
    """

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    write: Decimal | None = None
    write_long: Decimal | None = None
    above: int = 0
    since: date | None = None
    until: date | None = None

    def holds(self, prompt_tokens: int, at: date) -> bool:
        begun = self.since is None or self.since <= at
        return begun and (self.until is None or at <= self.until) and (not self.above or prompt_tokens > self.above)


def price_of(prompt_tokens: int, prices: Iterable[Price], at: date) -> Price | None:
    """The one that holds: of several tiers the highest that the prompt reaches."""
    return max((price for price in prices if price.holds(prompt_tokens, at)), key=lambda p: p.above, default=None)


def cost_of(usage: Usage, prices: Iterable[Price], at: date) -> Decimal | None:
    """USD of one generation, or None where no price holds. Reasoning is part of the completion and costs as such."""
    price = price_of(usage.prompt_tokens, prices, at)
    if price is None:
        return None
    read, short, long = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0, usage.cache_write_long_tokens or 0
    plain = usage.prompt_tokens - read - short - long
    parts = ((plain, price.input), (read, price.cached), (short, price.write), (long, price.write_long))
    total = sum((count * (price.input if each is None else each) for count, each in parts), Decimal(0))
    return (total + usage.completion_tokens * price.output) / PER
