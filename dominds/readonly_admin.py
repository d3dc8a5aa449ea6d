"""Read-only admin classes: whoever may read all dialogs sees these records, and nobody edits them."""

from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from dominds.db.bounded import BoundedPaginator

SHOWN_CHARS = 120


class StaffReads:
    """Who may read all dialogs sees every row, without a permission for each table."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(
            request.user.is_active and request.user.is_staff and request.user.has_perm("dialogs.view_all_dialogs")
        )

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)


class NoEdits(StaffReads):
    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class RecordAdmin(NoEdits, admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable when run
    """Of tables that grow without end: no page reads the whole of one."""

    show_full_result_count = False
    list_per_page = 50
    ordering = ("-pk",)
    paginator = BoundedPaginator

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """An id is looked for as one: Django's own search compares it as text, which no index knows."""
        columns = [str(name) for name in self.get_search_fields(request)]
        ids = [name[1:] for name in columns if name.startswith("=")]
        if ids and (wanted := _as_id(search_term)) is not None:
            return queryset.filter(reduce(or_, (Q(**{name: wanted}) for name in ids))), False
        if search_term and len(ids) == len(columns):
            return queryset.none(), False
        return super().get_search_results(request, queryset, search_term)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        shown = super().get_changelist_instance(request)
        if shown.paginator.is_cut:
            shown.title = f"{shown.title}: the first {shown.paginator.count:,}. Filter or search for others"
        return shown


class RecordInline(NoEdits, admin.TabularInline):  # type: ignore[type-arg]
    extra = 0
    can_delete = False
    show_change_link = False


def _as_id(text: str) -> UUID | None:
    try:
        return UUID(text.strip())
    except ValueError:
        return None


def shortened(text: str) -> str:
    line = " ".join(text[: SHOWN_CHARS * 2].split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"
