"""The cost of a generation, by the provider's list and the counts that it reported."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from dominds.llm.usage import Usage

PER = 1_000_000  # tokens
DAY = timedelta(days=1)
WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, slots=True)
class Hours:
    """The hours from one time of day to another, in UTC. They may pass midnight, and equal times mean a whole day.

    ``days`` are indices in ``WEEK``: the days on which the hours begin.
    """

    begin: timedelta
    end: timedelta
    days: frozenset[int] = frozenset(range(7))

    def hold(self, at: datetime) -> bool:
        since = at - self.begin  # shifted so that the hours begin at midnight
        passed = timedelta(hours=since.hour, minutes=since.minute, seconds=since.second)
        return since.weekday() in self.days and passed < ((self.end - self.begin) % DAY or DAY)


@dataclass(frozen=True, slots=True)
class Price:
    """A price in USD per million tokens.

    If ``cached``, ``write`` or ``write_long`` is None, such tokens cost as much as other input. The price holds for
    prompts of more than ``above`` tokens, and then for the whole prompt and its answer. ``since`` and ``until`` are its
    first and last day; None leaves that side open. During ``hours``, this price replaces one without hours.
    """

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    write: Decimal | None = None
    write_long: Decimal | None = None
    above: int = 0
    since: date | None = None
    until: date | None = None
    hours: tuple[Hours, ...] = ()

    def holds(self, prompt_tokens: int, at: datetime) -> bool:
        is_its_day = (self.since is None or self.since <= at.date()) and (self.until is None or at.date() <= self.until)
        is_its_hour = not self.hours or any(hours.hold(at) for hours in self.hours)
        return is_its_day and is_its_hour and (not self.above or prompt_tokens > self.above)


def price_of(prompt_tokens: int, prices: Iterable[Price], at: datetime) -> Price | None:
    """Return the price in force at this time, in UTC. Of several tiers it is the highest that the prompt reaches."""
    held = (price for price in prices if price.holds(prompt_tokens, at))
    return max(held, key=lambda price: (price.above, bool(price.hours)), default=None)


def cost_of(usage: Usage, prices: Iterable[Price], at: datetime) -> Decimal | None:
    """Return a generation's cost in USD, or None without a known price. Reasoning is charged as completion."""
    price = price_of(usage.prompt_tokens, prices, at)
    if price is None:
        return None
    read, short, long = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0, usage.cache_write_long_tokens or 0
    plain = usage.prompt_tokens - read - short - long
    parts = ((plain, price.input), (read, price.cached), (short, price.write), (long, price.write_long))
    total = sum((count * (price.input if each is None else each) for count, each in parts), Decimal(0))
    return (total + usage.completion_tokens * price.output) / PER
