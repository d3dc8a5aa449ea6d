"""API keys, settings and the login in the admin. Keys can only be revoked there."""

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.views import redirect_to_login
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from dialogs.accounts import api_keys, login
from dialogs.context import spending
from dialogs.models import (
    ApiKey,
    CallTotals,
    EmbeddingUse,
    PersonSettings,
    PromptTemplate,
    SiteSettings,
)
from dominds.readonly_admin import RecordAdmin, StaffReads
from remediation.spending import Spent


@admin.register(ApiKey)
class ApiKeyAdmin(RecordAdmin):
    list_display = ("__str__", "owner", "name", "scope", "created_at", "last_used_at", "expires_at", "revoked_at")
    list_filter = ("scope", ("revoked_at", admin.EmptyFieldListFilter))
    list_select_related = ("owner",)
    search_fields = ("owner__username", "name", "last_four")
    fields = (
        "owner",
        "name",
        "last_four",
        "scope",
        "keep_days",
        "budget_usd",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    actions = ("revoke",)

    @admin.action(description="Revoke selected keys")
    def revoke(self, request: HttpRequest, selected: QuerySet[ApiKey]) -> None:
        revoked = [row for row in selected.select_related("owner") if api_keys.revoke(row.owner, row.pk)]
        for row in revoked:
            self.log_change(request, row, "Revoked")
        messages.success(request, f"Revoked: {len(revoked)}. Programs that use them are refused from now on.")


@admin.register(EmbeddingUse)
class EmbeddingUseAdmin(RecordAdmin):
    list_display: tuple[str, ...] = (
        "began_at",
        "person",
        "agent",
        "provider",
        "model",
        "calls",
        "prompt_tokens",
        "cost",
    )
    list_select_related = ("person",)
    ordering = ("-began_at",)

    @admin.display(ordering="cost_usd")
    def cost(self, row: EmbeddingUse | CallTotals) -> str:
        return str(Spent(row.cost_usd, row.unpriced))


@admin.register(CallTotals)
class CallTotalsAdmin(EmbeddingUseAdmin):
    list_display = (*EmbeddingUseAdmin.list_display[:-1], "completion_tokens", "cost")


@admin.register(PromptTemplate)
class PromptTemplateAdmin(RecordAdmin):
    list_display = ("__str__", "owner")
    list_select_related = ("owner",)
    fields = ("owner", "name")


@admin.register(PersonSettings)
class PersonSettingsAdmin(StaffReads, admin.ModelAdmin):  # type: ignore[type-arg]
    """Personal settings. Operators can change only the monthly budget."""

    list_display = ("user", "monthly_budget_usd", "theme", "notifications", "progress_detail")
    list_select_related = ("user",)
    list_per_page = 50

    @admin.display(description="spent this month")
    def spent_this_month(self, row: PersonSettings) -> str:
        return str(spending.cost_this_month(row.user_id))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        own = [field.name for field in PersonSettings._meta.fields if field.name != "monthly_budget_usd"]
        return ["spent_this_month", *own] if obj else [name for name in own if name != "user"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(SiteSettings)
class SiteSettingsAdmin(RecordAdmin):
    """The site's settings, which are changed on the page Settings."""

    list_display = ("__str__", "pruning_agent", "keep_discarded_outputs", "webhook_url")
    list_select_related = ("pruning_agent",)
    fields = (
        "pruning_agent",
        "write_titles",
        "keep_discarded_outputs",
        "webhook_url",
        "question_deadline_minutes",
        "escalation_address",
    )


_log_in = admin.site.login


def log_in(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
    """Log in under the limits of the site's login page. With sign-in providers, a GET leads to that page, which offers
    them.
    """
    if request.method != "POST":
        if settings.OIDC_PROVIDERS and not request.user.is_authenticated:
            return redirect_to_login(request.GET.get("next") or reverse("admin:index"))
        return _log_in(request, extra_context)
    try:
        return login.try_to_log_in(request, lambda: _log_in(request, extra_context))
    except login.LoginRefused as refusal:
        answer = HttpResponse(str(refusal), status=refusal.status, content_type="text/plain")
        answer["Retry-After"] = str(refusal.seconds)
        return answer


admin.site.login = log_in  # type: ignore[method-assign]
