"""What a generation costs: tiers, days, and what caches read and wrote."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.catalog.catalog import load_catalog
from dominds.llm.models.prices import Hours, Price, cost_of, price_of
from dominds.llm.usage import Usage

TODAY = datetime(2026, 11, 22, 12, tzinfo=UTC)  # a Sunday
CATALOG = load_catalog(Path("/nonexistent"))


def price(prompt: str, answer: str, **fields: Any) -> Price:
    return Price(Decimal(prompt), Decimal(answer), **fields)


FLAT = price("2", "10", cached=Decimal("0.1"), write=Decimal("2.5"), write_long=Decimal("4"))


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(1_000_000, 0), "2"),
        (Usage(0, 1_000_000), "10"),
        # 1,000 in, of which 600 were read, 200 written, 100 for long: 100 x 2 + 600 x 0.1 + 200 x 2.5 + 100 x 4 = 1,160
        (Usage(1_000, 0, None, 600, 200, 100), "0.00116"),
        (Usage(1_000, 500, None, None, None, None, 400), "0.007"),  # 2,000 + 5,000: reasoning is among the 500
    ],
)
def test_every_part_has_its_price(usage: Usage, cost: str) -> None:
    assert cost_of(usage, [FLAT], TODAY) == Decimal(cost)


def test_what_has_no_price_of_its_own_costs_as_any_input() -> None:
    assert cost_of(Usage(1_000_000, 0, None, 500_000, 500_000), [price("2", "10")], TODAY) == 2


def test_beyond_a_tier_the_whole_prompt_costs_its_price() -> None:
    tiers = [price("2", "12"), price("4", "18", above=200_000)]
    assert cost_of(Usage(200_000, 0), tiers, TODAY) == Decimal("0.4")
    assert cost_of(Usage(200_001, 0), tiers, TODAY) == Decimal("0.800004")


def test_a_price_holds_from_its_first_day_to_its_last() -> None:
    prices = [price("2", "10", until=date(2026, 11, 30)), price("4", "20", since=date(2026, 12, 1))]
    usage = Usage(1_000_000, 0)
    last = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)
    assert [cost_of(usage, prices, at) for at in (TODAY, last, last + timedelta(minutes=1))] == [2, 2, 4]
    assert cost_of(usage, [price("2", "10", until=date(2026, 1, 1))], TODAY) is None


times = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC))
clocks = st.integers(0, 24 * 60 - 1).map(lambda minutes: timedelta(minutes=minutes))
weekdays = st.frozensets(st.integers(0, 6), min_size=1)


@given(times, clocks, clocks, weekdays)
def test_hours_hold_from_their_beginning_on_each_of_their_days(
    at: datetime, begin: timedelta, end: timedelta, days: frozenset[int]
) -> None:
    """Written out: what began today or yesterday, and has not ended."""
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    begun = [day + begin for day in (midnight, midnight - timedelta(days=1)) if day.weekday() in days]
    ends = [start + (end - begin if end > begin else end - begin + timedelta(days=1)) for start in begun]
    assert Hours(begin, end, days).hold(at) == any(a <= at < z for a, z in zip(begun, ends, strict=True))


@given(times, clocks, clocks, weekdays)
def test_hours_and_what_is_between_them_are_the_whole_week(
    at: datetime, begin: timedelta, end: timedelta, days: frozenset[int]
) -> None:
    within, cheap = Hours(begin, end, days), price("1", "5")
    dear = price("2", "10", hours=(within,))
    assert price_of(0, [cheap, dear], at) == (dear if within.hold(at) else cheap)
    assert price_of(0, [dear], at) == (dear if within.hold(at) else None)
    assert begin == end or Hours(begin, end).hold(at) != Hours(end, begin).hold(at)


def test_a_tier_goes_before_hours() -> None:
    always = (Hours(timedelta(0), timedelta(0)),)
    prices = [price("2", "10", hours=always), price("4", "20", above=1_000), price("1", "5")]
    assert [cost_of(Usage(tokens, 0), prices, TODAY) for tokens in (1_000, 2_000)] == [
        Decimal("0.002"),
        Decimal("0.008"),
    ]


@pytest.mark.parametrize(
    ("hour", "minute", "is_peak"),
    [(0, 59, False), (1, 0, True), (3, 59, True), (4, 0, False), (6, 0, True), (9, 59, True), (10, 0, False)],
)
@pytest.mark.parametrize("model", ["deepseek-flash", "deepseek-v4-flash", "deepseek-v4-pro"])
def test_deepseek_costs_half_outside_its_peak(model: str, hour: int, minute: int, is_peak: bool) -> None:
    monday = datetime(2026, 11, 23, hour, minute, tzinfo=UTC)
    prices = CATALOG.model("deepseek", model).prices
    usage = Usage(1_000_000, 100_000, None, 500_000)
    week = [cost_of(usage, prices, monday + timedelta(days=day)) for day in range(7)]
    half = week[6]
    assert half == (Decimal("0.1365") if "flash" in model else Decimal("0.539"))
    assert week == [half * 2 if is_peak else half] * 5 + [half] * 2


def test_without_a_price_there_is_no_cost() -> None:
    assert cost_of(Usage(9, 3), (), TODAY) is None


counts = st.integers(0, 400_000)


@given(counts, counts, counts, counts)
def test_reading_from_a_cache_is_never_dearer(plain: int, read: int, written: int, completion: int) -> None:
    prompt = plain + read + written
    cached = cost_of(Usage(prompt, completion, None, read, 0), [FLAT], TODAY)
    uncached = cost_of(Usage(prompt, completion), [FLAT], TODAY)
    assert cached is not None and uncached is not None and 0 <= cached <= uncached


@pytest.mark.parametrize(
    ("name", "usage", "cost"),
    [
        ("anthropic/claude-fable-5-2", Usage(100_000, 1_000, None, 90_000, 5_000), "0.148"),  # .04 + .018 + .05 + .04
        ("anthropic/claude-haiku-5-5", Usage(200_000, 0), "0.1"),  # above 100,000 five times as much
        ("openai/gpt-6.1-terra", Usage(300_000, 100_000), "1.35"),  # twice the input, 1.5 times the output
        ("google/gemini-3.1-pro-preview", Usage(100_000, 0), "0.2"),
    ],
)
def test_shipped_prices(name: str, usage: Usage, cost: str) -> None:
    provider, model = name.split("/")
    assert cost_of(usage, CATALOG.model(provider, model).prices, TODAY) == Decimal(cost)
