"""Sums of the costs that rows hold. A damaged cost, such as NaN, would make a whole sum unreadable: sums leave it out,
and it counts as a call of unknown price."""

from decimal import Decimal

from django.db.models import Case, F, IntegerField, Q, Sum, When

MOST_USD = Decimal(99_999_999)  # the most whole dollars that the columns hold
# PostgreSQL sorts NaN behind every number, and SQLite does so with text and infinity.
COST_IS_KNOWN = Q(cost_usd__range=(Decimal(0), MOST_USD))
COST_IS_UNKNOWN = Q(cost_usd=None) | Q(cost_usd__lt=Decimal(0)) | Q(cost_usd__gt=MOST_USD)


def sum_of_costs() -> Sum:
    """Return the sum of the costs that are known."""
    return Sum("cost_usd", filter=COST_IS_KNOWN, default=Decimal(0))


def unpriced_of_sums() -> Case:
    """Return the number of calls whose cost a row of sums does not include: all of them if its cost is damaged."""
    return Case(When(COST_IS_KNOWN, then=F("unpriced")), default=F("calls"), output_field=IntegerField())
