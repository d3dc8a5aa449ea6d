"""Erasure of a person: everything that is theirs goes, and figures stay under an account without a name."""

from uuid import UUID

import structlog
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Q

from dialogs.accounts import login
from dialogs.actions import expiry
from dialogs.errors import Conflict
from dialogs.models import (
    ApiKey,
    Delivery,
    Dialog,
    Identity,
    PersonSettings,
    PromptTemplate,
    PushSubscription,
    SiteSettings,
)

log = structlog.get_logger(__name__)

OWN = (Delivery, PushSubscription, Identity, PromptTemplate, ApiKey, PersonSettings)  # a person's rows, except dialogs
BATCH = 500


def erase(user: User, by: User | None = None) -> int:
    """Erase a person, and return the number of dialogs that were theirs. Raises ``Conflict`` for oneself and for the
    last administrator.

    Their words in dialogs of others stay there, and calls, tokens and costs stay in all sums, under the name
    ``erased-NUMBER``. An interrupted erasure can be repeated.
    """
    if user == by:
        raise Conflict("own_account", "You cannot erase yourself. Another administrator can.")
    if user.is_superuser and not User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk).exists():
        raise Conflict("last_administrator", "Nobody else administers this server. Appoint somebody first.")
    username, address = user.username, user.email
    _lock_out(user)
    dialogs: set[UUID] = set()
    # An agent at work, or a request that was admitted before, may open another dialog meanwhile.
    while more := set(Dialog._base_manager.filter(owner=user).values_list("pk", flat=True)) - dialogs:
        for dialog_id in more:
            expiry.erase_now(dialog_id)
        dialogs |= more
    with transaction.atomic():
        _forget_in_log(user, username, address)
        _forget_address(address)
        for model in OWN:
            column = "owner" if model in (PromptTemplate, ApiKey) else "person" if model is Delivery else "user"
            model._default_manager.filter(**{column: user}).delete()
        user.username = user.first_name = user.last_name = user.email = ""
        user.username, user.last_login = f"erased-{user.pk}", None
        user.save()
    log.info("person_erased", person=user.pk, by=by.pk if by else None, dialogs=len(dialogs))
    return len(dialogs)


def _lock_out(user: User) -> None:
    """Take away all their access before anything is erased, so that nothing new comes meanwhile."""
    user.is_active = user.is_staff = user.is_superuser = False
    user.set_unusable_password()
    user.save()
    user.groups.clear()
    user.user_permissions.clear()
    ApiKey.objects.filter(owner=user).delete()
    ours = [row.pk for row in Session.objects.iterator(BATCH) if row.get_decoded().get("_auth_user_id") == str(user.pk)]
    Session.objects.filter(pk__in=ours).delete()
    login.request_recheck(user)


def _forget_in_log(user: User, username: str, address: str) -> None:
    """Remove their names from the admin's log, which stores the names of rows as text."""
    named = Q(user=user) | Q(content_type__app_label="auth", content_type__model="user", object_id=str(user.pk))
    for text in filter(None, (username, address)):
        named |= Q(object_repr__contains=text) | Q(change_message__contains=text)
    LogEntry.objects.filter(named).update(object_repr="erased", change_message="")


def _forget_address(address: str) -> None:
    """Remove an address that was theirs alone from those to which overdue questions are sent."""
    site = SiteSettings.objects.first()
    if site is None or not address or User.objects.filter(email__iexact=address).count() > 1:
        return
    lines = site.escalation_address.splitlines()
    kept = [line for line in lines if line.split()[:1] != [address]]
    SiteSettings.objects.filter(pk=site.pk).update(escalation_address="\n".join(kept))
    Delivery.objects.filter(body=address).delete()
