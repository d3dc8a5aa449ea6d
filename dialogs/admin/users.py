"""People and groups in the admin. Nobody can give rights there that they lack, or change people with more rights than
they have."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from dialogs.accounts.names import check_name

RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")


def _has_all(user: Any, permissions: set[str]) -> bool:
    return bool(user.is_superuser or permissions <= user.get_all_permissions())


class _Named:
    """A mixin for forms that checks a changed name of a person or group."""

    def clean(self) -> Any:
        result: Any = super().clean()  # type: ignore[misc]  # of the form
        for field in ("username", "name"):
            name = self.cleaned_data.get(field)  # type: ignore[attr-defined]
            if name and field in self.changed_data:  # type: ignore[attr-defined]
                try:
                    check_name(name, self.instance)  # type: ignore[attr-defined]
                except ValidationError as error:
                    self.add_error(field, error)  # type: ignore[attr-defined]
        return result


class _Guarded:
    """A mixin that makes rows with more rights than one's own read-only."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_change_permission(request, obj)) and self._reaches(request, obj)  # type: ignore[misc]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_delete_permission(request, obj)) and self._reaches(request, obj)  # type: ignore[misc]

    def _reaches(self, request: HttpRequest, obj: Any) -> bool:
        """Check whether this person has all the rights that a row has or gives. None stands for a new row."""
        raise NotImplementedError  # people and groups differ in what their rights are

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **named: Any) -> Any:
        form = super().get_form(request, obj, change=change, **named)  # type: ignore[misc]
        return type(form.__name__, (_Named, form), {})


class PersonAdmin(_Guarded, UserAdmin):  # type: ignore[type-arg]
    def _reaches(self, request: HttpRequest, obj: User | None) -> bool:
        """Check that nobody resets the password, or takes over the mail address, of a person with more rights."""
        if obj is None or request.user.is_superuser or obj == request.user:
            return True
        return not obj.is_superuser and _has_all(request.user, obj.get_all_permissions())

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if request.user.is_superuser else (*fields, *RIGHTS)


class RoleAdmin(_Guarded, GroupAdmin):
    def _reaches(self, request: HttpRequest, obj: Group | None) -> bool:
        if obj is None or request.user.is_superuser:
            return True
        rows = obj.permissions.select_related("content_type")
        return _has_all(request.user, {f"{row.content_type.app_label}.{row.codename}" for row in rows})

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        result: Any = super().formfield_for_manytomany(db_field, request, **kwargs)
        if db_field.name == "permissions" and not request.user.is_superuser:
            own = request.user.get_all_permissions()
            rows = Permission.objects.select_related("content_type")
            result.queryset = result.queryset.filter(
                pk__in=[row.pk for row in rows if f"{row.content_type.app_label}.{row.codename}" in own]
            )
        return result


admin.site.unregister([User, Group])
admin.site.register(User, PersonAdmin)
admin.site.register(Group, RoleAdmin)
