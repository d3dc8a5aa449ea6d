"""Bounds for lists that grow without end.

Counting a list, skipping a million rows, or searching without an index takes as long as reading the list. So pages show
the newest 10,000 rows with a link to older ones, and such searches are limited to as many.
"""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

MOST_ROWS = 10_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # not subscriptable when run
    """Pages of the first 10,000 rows."""

    counts_in_order = False

    @cached_property
    def count(self) -> int:
        return min(self._bounded_count, MOST_ROWS)

    @property
    def is_cut(self) -> bool:
        return self._bounded_count > MOST_ROWS

    @cached_property
    def _bounded_count(self) -> int:
        rows = self.object_list
        if not isinstance(rows, QuerySet):
            return len(rows)
        # The order decides which rows are shown, not how many there are.
        return (rows if self.counts_in_order else rows.order_by())[: MOST_ROWS + 1].count()

    def __init__(self, rows: QuerySet[Any], *others: Any, shown: QuerySet[Any] | None = None, **named: Any) -> None:
        """Paginate ``rows``. ``shown`` has the columns of a page: the same rows in the same order, without a search."""
        super().__init__(rows, *others, **named)
        self._shown = rows if shown is None else shown

    def page(self, number: int | str) -> "Page[Any]":
        """Return a page. Its keys are read first, and then its rows by their keys.

        Asked for all columns and joins at once, PostgreSQL would read a whole table in the order of the page instead of
        the few rows of one old dialog.
        """
        rows, number = self.object_list, self.validate_number(number)
        if not isinstance(rows, QuerySet):
            return super().page(number)
        first = (number - 1) * self.per_page
        keys = rows.prefetch_related(None).values_list("pk", flat=True)[first : min(first + self.per_page, self.count)]
        return Page(self._shown.filter(pk__in=list(keys)), number, self)


class CountedInOrder(BoundedPaginator):
    """Pages of rows that are counted in their order, so that PostgreSQL uses the index of that order."""

    counts_in_order = True


class NewestFirst(BoundedPaginator):
    """Pages of rows in the descending order of one column, from its value ``until`` on.

    ``older`` is the value at which the next 10,000 begin: that of the row after these, which some of these may share.
    """

    def __init__(self, rows: QuerySet[Any], per_page: int, column: str = "pk", until: str = "", **named: Any) -> None:
        self._column, self.begins_later = column, False
        if (value := _value(rows, column, until)) is not None:
            rows, self.begins_later = rows.filter(**{f"{column}__lte": value}), True
        super().__init__(rows, per_page, **named)

    @cached_property
    def older(self) -> str:
        rows: Any = self.object_list
        if not self.is_cut:
            return ""
        values = rows.prefetch_related(None).values_list(self._column, flat=True)[MOST_ROWS : MOST_ROWS + 1]
        result: Any = next(iter(values), "")
        return str(result.isoformat() if hasattr(result, "isoformat") else result)


def _value(rows: QuerySet[Any], column: str, given: str) -> Any:
    """Return a column's value from its text in an address, or None if no row can have it."""
    options = rows.model._meta
    field = options.pk if column == "pk" else options.get_field(column)
    try:
        return field.to_python(given.strip() or None)
    except (ValidationError, ValueError, OverflowError):
        return None


def edge_of_newest(rows: QuerySet[Any], column: str) -> Any:
    """Return the 10,000th greatest value of an indexed column, or None if there are no more rows than that."""
    keys = rows.order_by(f"-{column}").values_list(column, flat=True)
    values = list(keys[MOST_ROWS - 1 : MOST_ROWS + 1])
    return values[0] if len(values) > 1 else None
