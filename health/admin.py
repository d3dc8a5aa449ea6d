from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from dominds.db.bounded import CountedInOrder
from dominds.readonly_admin import RecordAdmin, as_id
from health.models import HealthSnapshot


@admin.register(HealthSnapshot)
class HealthSnapshotAdmin(RecordAdmin):
    """Records of reported usage, which are read and never edited."""

    list_display = ("id", "generation", "level", "reason", "prompt_tokens", "model_context_limit", "percent_of_limit")
    list_filter = ("level", "reason")
    list_select_related = ("generation",)
    search_fields = ("=generation__dialog__id",)
    paginator = CountedInOrder
    ordering = ("-generation_id",)  # the order of its primary key

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Order one dialog's snapshots by the index of its calls.

        Ordered by id alone, PostgreSQL would read all snapshots from the newest back to those of an old dialog. The
        search filters by a range (``gte`` and ``lte``), since PostgreSQL drops a column that equals a constant from
        the order.
        """
        by_dialog = as_id(request.GET.get("q", ""))
        return ("generation__dialog", "-generation") if by_dialog else self.ordering

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[HealthSnapshot], search_term: str
    ) -> tuple[QuerySet[HealthSnapshot], bool]:
        if dialog := as_id(search_term):
            return queryset.filter(generation__dialog__gte=dialog, generation__dialog__lte=dialog), False
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description="of the limit")
    def percent_of_limit(self, snapshot: HealthSnapshot) -> str:
        return "unknown" if snapshot.hard_util is None else f"{snapshot.hard_util:.0%}"
