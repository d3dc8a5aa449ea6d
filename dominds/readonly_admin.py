"""Read-only admin classes, for records that people who may read all dialogs see and nobody edits.

Records of a dialog that its owner deleted are shown only to superusers, until the dialog is purged.
"""

from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from dominds.db.bounded import BoundedPaginator, edge_of_newest

SHOWN_CHARS = 120


def sees_deleted(request: HttpRequest) -> bool:
    """Check for a superuser, who may restore deleted dialogs or purge them early."""
    return bool(request.user.is_active and request.user.is_superuser)


class StaffReads:
    """A mixin for tables that everybody who may read all dialogs sees, without a permission for each table."""

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


class Among(admin.SimpleListFilter):
    """A filter that limits searches to the newest 10,000 rows of a list, unless all are asked for.

    Most columns have no index. Searches for the rows of one dialog have one, and are not limited.
    """

    title, parameter_name = "looked through", "among"
    ALL = "all"

    def __init__(self, request: HttpRequest, params: dict[str, Any], model: Any, model_admin: Any) -> None:
        self._column = _newest_by(model_admin)
        self._edge = edge_of_newest(model._base_manager, self._column) if _narrows(request) else None
        super().__init__(request, params, model, model_admin)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [] if self._edge is None else [(self.ALL, "all")]

    def choices(self, changelist: Any) -> Any:
        """Show "the newest 10,000" instead of Django's word for an unset filter, "All"."""
        newest, *others = super().choices(changelist)
        yield {**newest, "display": "the newest 10,000"}
        yield from others

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        if self._edge is None or self.value() == self.ALL:
            return rows
        return rows.filter(**{f"{self._column}__gte": self._edge})


class NewestValues(admin.AllValuesFieldListFilter):
    """A filter by the values of the newest rows, since finding all values takes as long as reading the whole table."""

    LOOKED_AT = 1_000

    def __init__(self, field: Any, request: HttpRequest, params: Any, model: Any, *others: Any, **named: Any) -> None:
        super().__init__(field, request, params, model, *others, **named)
        newest = model._base_manager.order_by("-pk").values_list(field.name, flat=True)[: self.LOOKED_AT]
        self.lookup_choices: Any = sorted({*newest, *filter(None, [self.lookup_val and self.lookup_val[0]])})


def _newest_by(model_admin: Any) -> str:
    """Return the indexed column by which the list is ordered, newest first."""
    return str(model_admin.ordering[0]).removeprefix("-")


def _narrows(request: HttpRequest) -> bool:
    if "dialog__id__exact" in request.GET or as_id(request.GET.get("q", "")):
        return False
    return any(value for name, value in request.GET.items() if name not in ("p", "e", "all", Among.parameter_name))


class RecordAdmin(NoEdits, admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable when run
    """An admin for tables that grow without end. None of its pages reads a whole table."""

    show_full_result_count = False
    list_per_page = 50
    ordering = ("-pk",)
    paginator = BoundedPaginator

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        if sees_deleted(request) or "dialog" not in {field.name for field in self.model._meta.fields}:
            return rows
        # A join lets the database stop at the page's limit.
        return rows.filter(Q(dialog__removed_at=None) | Q(dialog__expires_at=None))

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        return [*super().get_list_filter(request), Among]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search for an id by its index. Django's own search would compare ids as text, without the index."""
        columns = [str(name) for name in self.get_search_fields(request)]
        ids = [name[1:] for name in columns if name.startswith("=")]
        if ids and (wanted := as_id(search_term)) is not None:
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


def as_id(text: str) -> UUID | None:
    try:
        return UUID(text.strip())
    except ValueError:
        return None


def shorten(text: str) -> str:
    line = " ".join(text[: SHOWN_CHARS * 2].split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"
