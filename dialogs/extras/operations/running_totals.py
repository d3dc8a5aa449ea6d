"""Running totals over rows that are only added: the past is summed once, and then only what came since."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from dialogs.models.known_costs import COST_IS_KNOWN

PARTS = 10**10  # parts of a dollar in which costs are summed, as fine as their columns
MARGIN = 200  # newest ids that are not settled, since a transaction under way may still commit a smaller one

Sums = Counter[tuple[str, ...]]


@dataclass
class Tally:
    """Stored sums over rows that no longer change, with the newest rows, which each scrape reads again."""

    add_up: Callable[[QuerySet[Any]], Sums]
    settled_below: int = 0
    settled: Sums = field(default_factory=Counter)

    def totals(self, rows: QuerySet[Any], settled_below: int) -> Sums:
        """Return all totals so far. Rows with ids below ``settled_below`` are final."""
        if settled_below > self.settled_below:
            self.settled += self.add_up(rows.filter(pk__gte=self.settled_below, pk__lt=settled_below))
            self.settled_below = settled_below
        return self.settled + self.add_up(rows.filter(pk__gte=self.settled_below))


def spread(rows: QuerySet[Any], labels: Sequence[str], column: Any, bounds: Sequence[Any], name: str) -> Sums:
    """Return for each combination of labels the number of values up to each bound, the number of all, and their sum."""
    asked = {f"under_{n}": Count("pk", filter=Q(measured__lte=bound)) for n, bound in enumerate(bounds)}
    result = rows.annotate(measured=column).filter(measured__isnull=False).order_by().values(*labels)
    sums: Sums = Counter()
    for row in result.annotate(**asked, all_of_them=Count("pk"), added=Sum("measured")):
        key = tuple(row[label] for label in labels)
        for n in range(len(bounds)):
            sums[name, *key, str(n)] = row[f"under_{n}"]
        sums[name, *key, "count"] = row["all_of_them"]
        added = row["added"]
        sums[name, *key, "sum"] = round(added / timedelta(microseconds=1)) if isinstance(added, timedelta) else added
    return sums


def sum_columns(rows: QuerySet[Any], labels: Sequence[str], **columns: str) -> Sums:
    """Sum each column, by its name, for each combination of labels. Fractions are summed in parts of ``PARTS``."""
    asked = {
        f"sum_{name}": Sum(column, filter=COST_IS_KNOWN if column == "cost_usd" else None)
        for name, column in columns.items()
    }
    result = rows.order_by().values(*labels).annotate(**asked)
    sums: Sums = Counter()
    for row in result:
        for name in columns:
            if added := row[f"sum_{name}"]:
                parts = round(added * PARTS) if isinstance(added, Decimal) else added
                sums[name, *(row[label] for label in labels)] = parts
    return sums


def count_rows(rows: QuerySet[Any], *labels: str) -> Sums:
    result = rows.order_by().values_list(*labels).annotate(Count("pk"))
    return Counter({("count", *row[:-1]): row[-1] for row in result})


def settled_below(rows: QuerySet[Any]) -> int:
    newest = rows.order_by("-pk").values_list("pk", flat=True).first() or 0
    return max(0, newest - MARGIN)
