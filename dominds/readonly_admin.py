"""Read-only admin classes: whoever may read all dialogs sees these records, and nobody edits them."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

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
    """``show_full_result_count`` would count the whole table at every search."""

    show_full_result_count = False
    list_per_page = 50
    ordering = ("-pk",)


class RecordInline(NoEdits, admin.TabularInline):  # type: ignore[type-arg]
    extra = 0
    can_delete = False
    show_change_link = False


def shortened(text: str) -> str:
    line = " ".join(text[: SHOWN_CHARS * 2].split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"
