"""Whether a rewrite pays: arithmetic, and that it never waits when something presses."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.models.prices import Price
from health.levels import Level
from remediation.budget import Budget
from remediation.context import Context, Economy
from remediation.decisions import Proceed, Rewrite
from remediation.economy import balance_of, waits
from remediation.policies import breaking, decide, retention

USD = Decimal
OPUS = Price(USD(4), USD(20), USD("0.20"), USD(5))
NO_WRITE = Price(USD(2), USD(10), USD("0.10"))
NO_CACHE = Price(USD(2), USD(10))


@pytest.mark.parametrize(
    ("before", "after", "price", "saving", "reread", "requests"),
    [
        (9_000, 5_000, OPUS, "0.0008", "0.024", 30),  # 4,000 x 0.20 and 5,000 x (5 - 0.20)
        (9_000, 1_000, OPUS, "0.0016", "0.0048", 3),
        (9_000, 5_000, NO_WRITE, "0.0004", "0.0095", 24),  # 23.75
        (9_000, 5_000, NO_CACHE, "0.008", "0", 0),  # nothing is read anew that was not before
        (5_000, 5_000, OPUS, "0", "0.024", None),
        (5_000, 6_000, OPUS, "0", "0.0288", None),
        (9_000, 0, OPUS, "0.0018", "0", 0),
    ],
)
def test_saving_reread_and_the_requests_that_pay(
    before: int, after: int, price: Price, saving: str, reread: str, requests: int | None
) -> None:
    balance = balance_of(before, after, price)
    assert (balance.saving, balance.reread, balance.requests_to_pay) == (USD(saving), USD(reread), requests)


# est. 8,500 of 10,000: over the warning of 80 %; the rewrite aims at 5,000: 3,500 x 0.20 against 5,000 x 4.80,
# 35 requests
DUE = Context(Level.HEALTHY, Budget(limit=10_000, view=8_500), economy=Economy(OPUS, 34))


@pytest.mark.parametrize(
    ("changes", "put_off"),
    [
        ({}, True),
        ({"economy": Economy(OPUS, 35)}, False),  # it pays
        ({"economy": None}, False),
        ({"economy": Economy(NO_CACHE, 0)}, False),
        ({"level": Level.CAUTION}, False),
        ({"level": Level.CRITICAL}, False),
        ({"level": Level.UNKNOWN}, False),
        ({"budget": Budget(limit=10_000, view=8_500, answer=500, counts_answer=True)}, True),
        ({"budget": Budget(limit=10_000, view=8_500, answer=501, counts_answer=True)}, False),
        ({"overflowed": True}, False),
        ({"interrupted": True}, False),
        ({"loop_detected": True}, False),
        ({"over_hits_last_hour": 3}, False),  # a recovery
        ({"requested": "break"}, False),
        ({"restarts": 1}, False),
    ],
)
def test_it_waits_only_while_nothing_presses(changes: dict[str, Any], put_off: bool) -> None:
    decision = decide(breaking.POLICY, replace(DUE, **changes))
    assert (decision == Proceed()) == put_off
    assert put_off or isinstance(decision, Rewrite)


prices = st.builds(
    Price,
    st.decimals(1, 10, places=2),
    st.just(USD(20)),
    st.none() | st.decimals("0.01", 1, places=2),
    st.none() | st.decimals(1, 20, places=2),
)
tokens = st.integers(1, 1_000_000)


@given(tokens, tokens, prices, st.integers(0, 1_000))
def test_what_pays_is_cheaper_in_all_and_nothing_else_is(before: int, after: int, price: Price, requests: int) -> None:
    balance = balance_of(before, after, price)
    gain = requests * balance.saving - balance.reread
    assert balance.pays_within(requests) == (gain >= 0 and (bool(balance.saving) or not balance.reread))


@given(tokens, tokens, prices, st.integers(0, 1_000), st.integers(0, 1_000))
def test_what_pays_soon_pays_later(before: int, after: int, price: Price, requests: int, more: int) -> None:
    balance = balance_of(before, after, price)
    assert not balance.pays_within(requests) or balance.pays_within(requests + more)


@given(
    est=st.integers(1, 20_000),
    level=st.sampled_from(Level),
    price=prices,
    requests=st.integers(0, 100),
    overflowed=st.booleans(),
    policy=st.sampled_from([breaking.POLICY, retention.POLICY]),
)
def test_a_rewrite_that_the_window_needs_never_waits(
    est: int, level: Level, price: Price, requests: int, overflowed: bool, policy: Any
) -> None:
    context = Context(level, Budget(limit=10_000, view=est), overflowed=overflowed, economy=Economy(price, requests))
    without = decide(policy, replace(context, economy=None))
    if isinstance(without, Rewrite) and waits(context, without, policy.name):
        assert level is Level.HEALTHY and est <= 9_000 and not overflowed
    else:
        assert decide(policy, context) == without
