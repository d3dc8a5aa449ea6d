"""What a generation costs: tiers, days, and what caches read and wrote."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.catalog.catalog import load_catalog
from dominds.llm.models.prices import Price, cost_of
from dominds.llm.usage import Usage

TODAY = date(2026, 11, 22)
CATALOG = load_catalog(Path("/nonexistent"))


def usd(*numbers: str) -> tuple[Decimal, ...]:
    return tuple(Decimal(number) for number in numbers)


FLAT = Price(*usd("2", "10", "0.1", "2.5", "4"))


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
    assert cost_of(Usage(1_000_000, 0, None, 500_000, 500_000), [Price(*usd("2", "10"))], TODAY) == 2


def test_beyond_a_tier_the_whole_prompt_costs_its_price() -> None:
    tiers = [Price(*usd("2", "12")), Price(*usd("4", "18"), above=200_000)]
    assert cost_of(Usage(200_000, 0), tiers, TODAY) == Decimal("0.4")
    assert cost_of(Usage(200_001, 0), tiers, TODAY) == Decimal("0.800004")


def test_a_price_holds_from_its_first_day_to_its_last() -> None:
    prices = [Price(*usd("2", "10"), until=date(2026, 11, 30)), Price(*usd("4", "20"), since=date(2026, 12, 1))]
    usage = Usage(1_000_000, 0)
    assert [cost_of(usage, prices, day) for day in (TODAY, date(2026, 11, 30), date(2026, 12, 1))] == [2, 2, 4]
    assert cost_of(usage, [Price(*usd("2", "10"), until=date(2026, 1, 1))], TODAY) is None


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
