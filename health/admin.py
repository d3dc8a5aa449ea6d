from django.contrib import admin

from dominds.readonly_admin import RecordAdmin
from health.models import HealthSnapshot


@admin.register(HealthSnapshot)
class HealthSnapshotAdmin(RecordAdmin):
    """A record of what was reported: read, never edited."""

    list_display = ("id", "generation", "level", "reason", "prompt_tokens", "model_context_limit", "percent_of_limit")
    list_filter = ("level", "reason")
    list_select_related = ("generation",)
    search_fields = ("=generation__dialog__id",)
    ordering = ("-generation_id",)  # as its own, and of one dialog by an index

    @admin.display(description="of the limit")
    def percent_of_limit(self, snapshot: HealthSnapshot) -> str:
        return "unknown" if snapshot.hard_util is None else f"{snapshot.hard_util:.0%}"
