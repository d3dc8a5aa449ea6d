"""What people may do beyond their own dialogs. ``is_staff`` opens the admin's index, and nothing else."""

from django.contrib.auth.models import Permission, User
from django.db.models import Q, QuerySet

from dominds.db.prepared import Select

VIEW_ALL = "view_all_dialogs"
ACT_IN_ALL = "act_in_all_dialogs"
OPERATE = "operate"
VIEW_METRICS = "view_metrics"
RESOLVE = "resolve_question"
ALL = {
    VIEW_ALL: "Can read the dialogs of others",
    ACT_IN_ALL: "Can act in the dialogs of others",
    OPERATE: "Can use the operations page and change settings of the site",
    VIEW_METRICS: "Can read the metrics",
    RESOLVE: "Can resolve a critical Q4H",
}


def may(user: User, permission: str) -> bool:
    """Whether this person was given the permission, directly or through a group. Superusers have all."""
    if not user.is_active:
        return False
    return user.is_superuser or bool(_GRANTED(user.pk, permission))


def _granted(user_id: int, permission: str) -> QuerySet[Permission, int]:
    given = Permission.objects.filter(content_type__app_label="dialogs", codename=permission)
    return given.filter(Q(user=user_id) | Q(group__user=user_id)).values_list("pk", flat=True)[:1]


_GRANTED: Select[int] = Select(_granted)
