"""People and groups as administrators see them: invited by a link, put into groups, switched off."""

import re

import structlog
from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db import transaction

from dialogs.accounts import login
from dialogs.errors import Conflict, NotFound
from dialogs.permissions import ALL

log = structlog.get_logger(__name__)


class _Links(PasswordResetTokenGenerator):
    """Links for choosing a password. A link is valid until its person logs in, changes password or mail address, or
    ``PASSWORD_RESET_TIMEOUT`` has passed.
    """

    key_salt = "dialogs.accounts.people.invitation"


_links = _Links()


def invite(user: User, by: User) -> str:
    """Save a new person, who gets a password only by choosing one, and return the end of their link."""
    user.set_unusable_password()
    user.save()
    log.info("person_invited", person=user.pk, by=by.pk)
    return link_of(user)


def link_of(user: User) -> str:
    return _links.make_token(user)


def person_of_link(user_id: int, token: str) -> User:
    """Return the person whom this link invites. Raises ``NotFound`` for an old link, or for a person switched off."""
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None or not _links.check_token(user, token):
        raise NotFound("This link is no longer valid. Ask your administrator for another.")
    return user


def switch(user: User, by: User, *, on: bool) -> None:
    """Switch a person on or off. Raises ``Conflict``.

    A person who is off is logged out everywhere, and their keys are refused. Their dialogs stay.
    """
    if user == by:
        raise Conflict("own_account", "You cannot switch yourself off. Another administrator can.")
    user.is_active = on
    user.save(update_fields=["is_active"])
    login.request_recheck(user)
    log.info("person_switched", person=user.pk, on=on, by=by.pk)


def change(user: User, by: User, groups: list[Group], *, administers: bool) -> None:
    """Save a person. Raises ``Conflict`` for ending one's own administration, so that an administrator remains."""
    if user == by and not administers:
        raise Conflict("own_account", "You cannot end your own administration. Another administrator can.")
    with transaction.atomic():
        user.is_superuser = user.is_staff = administers
        user.save(update_fields=["username", "email", "is_superuser", "is_staff"])
        user.groups.set(groups)
    login.request_recheck(user)
    log.info("person_changed", person=user.pk, groups=sorted(group.pk for group in groups), by=by.pk)


def permissions_of(group: Group) -> list[str]:
    """Return the group's permissions that Dominds defines."""
    results = group.permissions.filter(content_type__app_label="dialogs", codename__in=ALL)
    return list(results.values_list("codename", flat=True))


def save_group(group: Group, granted: list[str], by: User) -> None:
    """Save a group with these permissions of Dominds; others that the admin gave it stay."""
    with transaction.atomic():
        group.save()
        ours = Permission.objects.filter(content_type__app_label="dialogs", codename__in=ALL)
        group.permissions.remove(*ours.exclude(codename__in=granted))
        group.permissions.add(*ours.filter(codename__in=granted))
    log.info("group_saved", group=group.pk, permissions=sorted(granted), by=by.pk)


def delete_group(group: Group, by: User) -> None:
    """Delete a group. Its dialogs are their owners' alone from then on."""
    log.info("group_deleted", group=group.pk, by=by.pk)
    members = list(group.user_set.all())
    group.delete()
    for member in members:
        login.request_recheck(member)


def join(group: Group, username: str, by: User) -> User:
    """Add somebody to a group. Raises ``NotFound``."""
    user = User.objects.filter(username=username.strip()).first()
    if user is None:
        raise NotFound(f"Nobody here is called {username.strip()[:150]!r}. Invite them first.")
    group.user_set.add(user)
    login.request_recheck(user)
    log.info("group_joined", person=user.pk, group=group.pk, by=by.pk)
    return user


def leave(group: Group, number: str, by: User) -> User:
    """Remove the member with this number, as in a form, from a group. Raises ``NotFound``."""
    user = group.user_set.filter(pk=int(number)).first() if re.fullmatch(r"[0-9]{1,9}", number) else None
    if user is None:
        raise NotFound("They are not in this group.")
    group.user_set.remove(user)
    login.request_recheck(user)
    log.info("group_left", person=user.pk, group=group.pk, by=by.pk)
    return user
