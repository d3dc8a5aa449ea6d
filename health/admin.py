from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from health.models import HealthSnapshot


@admin.register(HealthSnapshot)
class HealthSnapshotAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable when run
    """A record of what was reported: read, never edited."""

    list_display = ("id", "generation", "level", "reason", "prompt_tokens", "model_context_limit", "percent_of_limit")
    list_filter = ("level", "reason")
    list_select_related = ("generation",)
    ordering = ("-id",)
    show_full_result_count = False

    @admin.display(description="of the limit")
    def percent_of_limit(self, snapshot: HealthSnapshot) -> str:
        return "unknown" if snapshot.hard_util is None else f"{snapshot.hard_util:.0%}"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
