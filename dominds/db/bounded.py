"""Pages of lists that grow without end."""

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

MOST_ROWS = 10_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # not subscriptable when run
    """Pages of the first 10,000 rows. To count them all, or to skip a million, takes as long as reading them: whoever wants
    others searches."""

    @cached_property
    def count(self) -> int:
        return min(self._found, MOST_ROWS)

    @property
    def is_cut(self) -> bool:
        return self._found > MOST_ROWS

    @cached_property
    def _found(self) -> int:
        rows = self.object_list
        # The order decides which rows are shown, not how many there are.
        return rows.order_by()[: MOST_ROWS + 1].count() if isinstance(rows, QuerySet) else len(rows)
