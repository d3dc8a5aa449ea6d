"""Budgets: when a dialog may go on, and what people are told when it may not."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.levels import Level
from remediation.budget import Budget
from remediation.context import Context
from remediation.decisions import Suspend
from remediation.policies import decide
from remediation.policies.policy import Policy
from remediation.policies.registry import own
from remediation.spending import BUDGET_KIND, Spending, Spent, in_usd

USD = Decimal


@pytest.mark.parametrize(
    ("spending", "exceeded"),
    [
        (Spending(), None),
        (Spending(dialog=USD(900), month=USD(900)), None),  # without a budget nothing is too much
        (Spending(dialog=USD("0.99"), dialog_budget=USD(1)), None),
        (Spending(dialog=USD(1), dialog_budget=USD(1)), "dialog"),  # used up exactly
        (Spending(dialog=USD(0), dialog_budget=USD(0)), "dialog"),  # a budget of nothing
        (Spending(dialog=USD(9), month=USD(2), month_budget=USD(1)), "month"),
        (Spending(dialog=USD(2), dialog_budget=USD(1), month=USD(2), month_budget=USD(1)), "dialog"),
    ],
)
def test_a_budget_is_exceeded_when_it_is_used_up(spending: Spending, exceeded: str | None) -> None:
    assert spending.exceeded == exceeded
    assert bool(spending.reason) == bool(exceeded)


def test_the_reason_says_what_was_spent_and_what_is_not_counted() -> None:
    assert Spending(dialog=USD("1.005"), dialog_budget=USD(1), unpriced=2).reason == (
        "This dialog has cost $1.00, and the budget is $1.00. 2 of its calls have no known price and are not counted."
    )
    month = Spending(month=USD("0.05"), month_budget=USD("0.01")).reason
    assert month == "The dialogs of its owner have cost $0.05 this month, and the budget is $0.01."


@pytest.mark.parametrize(
    ("month", "reserved", "waits"),
    [
        ("0.98", "0", False),
        ("0.98", "0.01", False),
        ("0.98", "0.02", True),  # what is under way may use it up exactly
        ("0", "0", False),
    ],
)
def test_a_call_waits_where_others_may_use_up_the_rest(month: str, reserved: str, waits: bool) -> None:
    spending = Spending(month=USD(month), month_budget=USD(1), reserved=USD(reserved))
    assert (spending.must_wait, spending.exceeded) == (waits, None)
    assert ("others are under way" in spending.reason) == waits


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        (Spent(), "$0.00"),
        (Spent(USD("1.2")), "$1.20"),
        (Spent(unpriced=14), "unknown price"),  # zero would look free
        (Spent(USD("1.2"), 1), "$1.20 and 1 call of unknown price"),
        (Spent(USD("1.2")) + Spent(unpriced=1_400), "$1.20 and 1,400 calls of unknown price"),
    ],
)
def test_a_sum_says_which_calls_it_leaves_out(spent: Spent, words: str) -> None:
    assert str(spent) == words


amounts = st.decimals(0, 1_000, places=4)
spendings = st.builds(Spending, amounts, st.none() | amounts, amounts, st.none() | amounts)


@given(spendings, amounts)
def test_what_costs_more_is_never_freer(spending: Spending, more: Decimal) -> None:
    dearer = replace(spending, dialog=spending.dialog + more, month=spending.month + more)
    assert dearer.exceeded or not spending.exceeded


@given(spendings, st.sampled_from(own()), st.sampled_from(Level), st.sampled_from(["", "clear", "break"]))
def test_no_policy_goes_on_with_an_exceeded_budget(
    spending: Spending, policy: Policy, level: Level, requested: str
) -> None:
    context = Context(level, Budget(limit=8_000, view=9_000), requested=requested)
    decision = decide(policy, replace(context, spending=spending))
    if spending.exceeded:
        assert decision == Suspend(BUDGET_KIND, spending.reason)
    else:
        assert decision == decide(policy, context)


@given(amounts)
def test_amounts_are_read_back_to_four_digits(cost: Decimal) -> None:
    shown = Decimal(in_usd(cost).removeprefix("$").replace(",", ""))
    assert abs(shown - cost) <= (USD("0.005") if cost >= 1 else cost / 1_000)
