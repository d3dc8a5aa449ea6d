"""People who sign in at the OpenID provider: which account is theirs, and the groups that the provider puts them in.

An account is found by issuer and subject alone. Equal names and mail addresses prove nothing: there are providers where
people choose their own.
"""

import re
from collections.abc import Mapping
from itertools import chain, count
from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from dialogs.models import Identity
from dominds.oidc.provider import FORBIDDEN, Registration, SignInFailed

log = structlog.get_logger(__name__)

TRIES = 3  # to make an account while others are made
MOST_NAME_CHARS = 120  # of the 150 that Django takes, so that a number fits behind it
MOST_GROUPS = 1000  # of one claim
NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")  # what Django's user names leave out


def registration() -> Registration | None:
    """With which provider this server is registered, if with any."""
    if not settings.OIDC_ISSUER:
        return None
    return Registration(
        settings.OIDC_NAME,
        settings.OIDC_ISSUER,
        settings.OIDC_CLIENT_ID,
        settings.OIDC_CLIENT_SECRET,
        settings.OIDC_SCOPES,
        settings.OIDC_GROUPS_CLAIM,
    )


def person_of(claims: Mapping[str, Any]) -> User:
    """Whose sign-in this is, with an account of their own from the first one on, in the groups that the claims name now.
    Raises ``SignInFailed``."""
    identity = _found(claims) or _made(claims)
    if not identity.user.is_active:
        raise SignInFailed("Your account here is switched off. Ask your operator.", "inactive account", FORBIDDEN)
    _follow_groups(identity, claims.get(settings.OIDC_GROUPS_CLAIM))
    return identity.user


def _found(claims: Mapping[str, Any]) -> Identity | None:
    named = Identity.objects.filter(issuer=claims["iss"], subject=claims["sub"])
    return named.select_related("user").first()


def _made(claims: Mapping[str, Any]) -> Identity:
    if not settings.OIDC_NEW_ACCOUNTS:
        text = f"You have no account here yet. Ask your operator for one, and name the subject {claims['sub']}."
        raise SignInFailed(text, f"no account for the subject {claims['sub']}", FORBIDDEN)
    for _ in range(TRIES):
        user = User(username=_free_name(claims), email=_mail_address(claims))
        user.set_unusable_password()
        try:
            with transaction.atomic():
                user.save()
                return Identity.objects.create(user=user, issuer=claims["iss"], subject=claims["sub"])
        except IntegrityError:  # the name, or the whole person, was made a moment ago
            if identity := _found(claims):
                return identity
    raise SignInFailed("Too many accounts are being made. Begin again.", "no free user name")


def _free_name(claims: Mapping[str, Any]) -> str:
    """The provider's name for the person, with a number behind it where somebody here is called so."""
    wanted = claims.get("preferred_username") or str(claims.get("email", "")).partition("@")[0]
    name = NOT_IN_NAMES.sub("-", User.normalize_username(str(wanted)))[:MOST_NAME_CHARS].strip("-") or "person"
    alike = User.objects.filter(username__istartswith=name).values_list("username", flat=True)
    taken = {username.casefold() for username in alike}
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(name for name in names if name.casefold() not in taken)


def _mail_address(claims: Mapping[str, Any]) -> str:
    """Only a verified one: links that answer in a person's name are sent there."""
    address = claims.get("email")
    if claims.get("email_verified") is not True or not isinstance(address, str):
        return ""
    try:
        validate_email(address)
    except ValidationError:
        return ""
    return address if len(address) <= 254 else ""  # what Django's column holds


def _follow_groups(identity: Identity, claimed: Any) -> None:
    """Only groups that exist here count. Memberships that an operator gave stay, whatever the claim says."""
    names = [claimed] if isinstance(claimed, str) else claimed if isinstance(claimed, list) else []
    names = [name for name in names[:MOST_GROUPS] if isinstance(name, str) and name.isprintable()]
    with transaction.atomic():
        identity = Identity.objects.select_for_update(of=("self",)).select_related("user").get(pk=identity.pk)
        given, own = set(identity.groups.all()), identity.user.groups
        named = set(Group.objects.filter(name__in=names))
        joined, left = named - set(own.all()), given - named
        own.remove(*left)
        own.add(*joined)
        identity.groups.set((given & named) | joined)
    if joined or left:
        shown = {"joined": sorted(map(str, joined)), "left": sorted(map(str, left))}
        log.info("groups_followed", person=identity.user_id, **shown)
