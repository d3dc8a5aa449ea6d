"""Budgets in USD: what has been spent, and the question for a human when a budget is used up. Pure."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

BUDGET_KIND = "budget_exceeded"

Budget = Literal["dialog", "month"]


@dataclass(frozen=True, slots=True)
class Spending:
    """The cost of a dialog, and of all dialogs of its owner in this calendar month, as far as prices are known.

    A budget of None is unlimited. A budget that is used up exactly counts as exceeded, and so does a damaged one, until
    somebody sets it anew.
    """

    dialog: Decimal = Decimal(0)
    dialog_budget: Decimal | None = None
    month: Decimal = Decimal(0)
    month_budget: Decimal | None = None
    unpriced: int = 0  # calls of the dialog whose cost is not known
    beside: Decimal = Decimal(0)  # cost of the dialogs that it opened, which counts against its budget as well
    refused_above: str = ""  # why a dialog that opened this one allows no further call: no budget, or ended
    reserved: Decimal = Decimal(0)  # part of the month's budget that running calls may use

    @property
    def exceeded(self) -> Budget | None:
        if is_used_up(self.dialog_budget, self.dialog + self.beside):
            return "dialog"
        return "month" if is_used_up(self.month_budget, self.month) else None

    @property
    def must_wait(self) -> bool:
        """Check whether running calls may use up the rest of the month's budget, so that no other call may begin."""
        return bool(self.reserved) and is_used_up(self.month_budget, self.month + self.reserved)

    def of(self, budget: Budget) -> tuple[Decimal, Decimal | None]:
        """Return the cost that counts against this budget, and the budget."""
        whole = self.dialog + self.beside
        return (whole, self.dialog_budget) if budget == "dialog" else (self.month, self.month_budget)

    @property
    def reason(self) -> str:
        """Explain to people why the dialog must not go on; empty when it may."""
        exceeded = self.exceeded or ("month" if self.must_wait else None)
        if exceeded is None:
            return ""
        spent, budget = self.of(exceeded)
        alone = "This dialog and those that it opened have cost" if self.beside else "This dialog has cost"
        whose = alone if exceeded == "dialog" else "The dialogs of its owner have cost"
        when = "" if exceeded == "dialog" else " this month, others are under way" if self.must_wait else " this month"
        rest = f" {self.unpriced} of its calls have no known price and are not counted." if self.unpriced else ""
        limit = budget or Decimal(0)
        stored = f"is {in_usd(limit)}" if is_amount(limit) else "that is stored is damaged: give another one"
        return f"{whose} {in_usd(spent)}{when}, and the budget {stored}.{rest}"


NOTHING_SPENT = Spending()


@dataclass(frozen=True, slots=True)
class Spent:
    """The sum of some calls as far as prices are known, and how many calls it leaves out."""

    usd: Decimal = Decimal(0)
    unpriced: int = 0

    @property
    def is_unknown(self) -> bool:
        """Check whether no price is known at all, since a sum of zero would look free."""
        return bool(self.unpriced) and not self.usd

    @property
    def rest(self) -> str:
        """Return words for the calls that the sum leaves out; empty if there are none."""
        if not self.unpriced:
            return ""
        return f"{self.unpriced:,} call{'' if self.unpriced == 1 else 's'} of unknown price"

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.usd + other.usd, self.unpriced + other.unpriced)

    def __str__(self) -> str:
        if self.is_unknown:
            return "unknown price"
        return f"{in_usd(self.usd)} and {self.rest}" if self.rest else in_usd(self.usd)


def is_amount(usd: Decimal) -> bool:
    """Check a stored amount. A damaged row may hold a negative number, or NaN, which raises in comparisons."""
    return usd.is_finite() and usd >= 0


def is_used_up(budget: Decimal | None, spent: Decimal) -> bool:
    """Check whether a budget has no room left. If it or its costs are damaged, it has none."""
    return budget is not None and not (is_amount(budget) and is_amount(spent) and spent < budget)


def in_usd(cost: Decimal) -> str:
    """Write a cost to the cent, and below a dollar to at most four significant digits."""
    if not cost.is_finite():
        return "$?"  # damaged; one bad amount must not break a whole list
    places = 2 if cost >= 1 or not cost else max(2, min(10, 3 - cost.adjusted()))
    whole, _, cents = f"{cost:,.{places}f}".partition(".")
    return f"${whole}.{cents[:2]}{cents[2:].rstrip('0')}"
