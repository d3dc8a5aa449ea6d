"""People's permissions on dialogs: to see, act in and share their own, those shared with a group of theirs, and others
by permission (``docs/spec.md#sharing``). ``is_staff`` opens the admin's index, and nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from django.contrib.auth.models import Group, Permission, User
from django.db.models import Exists, Q, QuerySet

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
    """Check whether this person has the permission, directly or through a group. Superusers have all."""
    if not user.is_active:
        return False
    return user.is_superuser or bool(_granted_permissions(user.pk, permission))


class Shared(Protocol):
    """A dialog, as far as permissions depend on it."""

    owner_id: int
    group_id: int | None


@dataclass(frozen=True, slots=True)
class Reach:
    """The dialogs beside their own that a person may see: all, or those of the groups with these numbers."""

    all: bool
    groups: frozenset[int]


def reach_of(user: User) -> Reach:
    """Return a person's reach, which is read once for each ``user`` object and so for each request."""
    result: Reach | None = vars(user).get("_reach")
    if result is None:
        rows = _reach(user.pk)
        sees_all = user.is_active and (user.is_superuser or any(granted for _, granted in rows))
        result = Reach(sees_all, frozenset(group for group, _ in rows if group is not None))
        vars(user)["_reach"] = result
    return result


def within(user_id: int, groups: Iterable[int] | QuerySet[Group], dialog: str = "") -> Q:
    """Filter a person's own dialogs, and those shared with these groups, at the path ``dialog`` from other rows."""
    return Q(**{f"{dialog}owner": user_id}) | Q(**{f"{dialog}group__in": groups})


def takes_part(user: User, dialog: Shared) -> bool:
    return dialog.owner_id == user.pk or (dialog.group_id is not None and dialog.group_id in reach_of(user).groups)


def may_see(user: User, dialog: Shared) -> bool:
    return takes_part(user, dialog) or reach_of(user).all


def may_act(user: User, dialog: Shared) -> bool:
    """Check whether a person who may see a dialog may also write, answer and change it."""
    return takes_part(user, dialog) or may(user, ACT_IN_ALL)


def may_share(user: User, dialog: Shared) -> bool:
    return dialog.owner_id == user.pk or may(user, ACT_IN_ALL)


@Select
def _granted_permissions(user_id: int, permission: str) -> QuerySet[Permission, int]:
    return Permission.objects.filter(_given_to(user_id, permission)).values_list("pk", flat=True)[:1]


def _given_to(user_id: int, permission: str) -> Q:
    named = Q(content_type__app_label="dialogs", codename=permission)
    return named & (Q(user=user_id) | Q(group__user=user_id))


@Select
def _reach(user_id: int) -> QuerySet[User, Any]:
    """Return a row for each group of the person, or one row without a group, with whether they may see all dialogs."""
    granted = Exists(Permission.objects.filter(_given_to(user_id, VIEW_ALL)))
    return User.objects.filter(pk=user_id).annotate(sees_all=granted).values_list("groups", "sees_all")


@Select
def members_of(group_id: int) -> QuerySet[User, int]:
    return User.objects.filter(groups=group_id, is_active=True).values_list("pk", flat=True)
