"""Linked sign-ins in the admin."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest

from dialogs.models import Identity
from dominds.readonly_admin import StaffReads


@admin.register(Identity)
class IdentityAdmin(StaffReads, admin.ModelAdmin):  # type: ignore[type-arg]
    """Linked sign-ins. Superusers alone change them, since the holder of the identity gets the account."""

    list_display = ("user", "issuer", "subject")
    list_select_related = ("user",)
    list_per_page = 50
    search_fields = ("user__username", "subject")
    fields = ("user", "issuer", "subject")
    raw_id_fields = ("user",)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"issuer": next((provider.issuer for provider in settings.OIDC_PROVIDERS), "")}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_add_permission(request)

    has_delete_permission = has_change_permission
