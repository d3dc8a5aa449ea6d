"""Rewrites, their archive and context events in the admin, read-only.

Proposals and cleanup tasks ask for a decision, and stand in the admin of ``operations``, which carries it out.
"""

from django.contrib import admin

from dominds.readonly_admin import NewestValues, RecordAdmin, shorten
from remediation.models import ContextEvent, ContextSettings, PreparedRewrite, RemediationRun, RemovedUnit


@admin.register(RemediationRun)
class RemediationRunAdmin(RecordAdmin):
    list_display = (
        "id",
        "dialog",
        "round_number",
        "policy",
        "reason",
        "est_before",
        "est_after",
        "recovered",
        "reward",
        "undone_at",
        "created_at",
    )
    list_filter = (("policy", NewestValues), "recovered", ("undone_at", admin.EmptyFieldListFilter), "created_at")
    list_select_related = ("dialog",)
    search_fields = ("=dialog__id", "reason")


@admin.register(RemovedUnit)
class RemovedUnitAdmin(RecordAdmin):
    list_display = ("unit_id", "dialog", "run", "kind", "role", "est_tokens", "start")
    list_filter = (("kind", NewestValues), ("role", NewestValues))
    list_select_related = ("dialog", "run")
    search_fields = ("=dialog__id",)

    @admin.display(description="text")
    def start(self, unit: RemovedUnit) -> str:
        return shorten(unit.text)


@admin.register(PreparedRewrite)
class PreparedRewriteAdmin(RecordAdmin):
    list_display = ("dialog", "covers")
    list_select_related = ("dialog",)
    search_fields = ("=dialog__id",)


@admin.register(ContextEvent)
class ContextEventAdmin(RecordAdmin):
    """Every error of context management."""

    list_display = ("id", "code", "dialog", "message", "est_tokens", "limit", "created_at")
    list_filter = ("code", "created_at")
    list_select_related = ("dialog",)
    search_fields = ("=dialog__id", "message")


@admin.register(ContextSettings)
class ContextSettingsAdmin(RecordAdmin):
    list_display = ("__str__", "config")
