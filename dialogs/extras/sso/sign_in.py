"""Sign-in at OpenID providers: which account a person gets, which sign-ins they have linked to it, and into which
groups the providers put them.

An account is found by issuer and subject alone. Equal names and mail addresses prove nothing, since people choose their
own at some providers.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from dialogs.accounts.login import free_username
from dialogs.errors import Conflict, NotFound
from dialogs.models import Identity
from dominds.oidc.provider import CONFLICT, FORBIDDEN
from dominds.oidc.registration import Registration, SignInFailed

log = structlog.get_logger(__name__)

TRIES = 3  # tries to make an account while others are being made
MOST_NAME_CHARS = 120  # Django takes 150, so a number fits behind the name
MOST_GROUPS = 1000  # groups in one claim
MOST_IDENTITIES = 20  # linked sign-ins of one person
LAST_WAY_IN = (
    "Nothing was changed: without it you could not log in any more. Link another sign-in first, or ask your operator "
    "for a password."
)
NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")  # characters that Django's user names do not take


def provider_numbered(number: int) -> Registration | None:
    """Return the provider of this number, if the environment names one."""
    return next((provider for provider in settings.OIDC_PROVIDERS if provider.number == number), None)


def provider_of(identity: Identity) -> Registration | None:
    """Return the provider of a sign-in, or None if it is no longer configured."""
    return next((provider for provider in settings.OIDC_PROVIDERS if provider.names(identity.issuer)), None)


def person_of(claims: Mapping[str, Any], provider: Registration) -> User:
    """Return the person of a sign-in, in the groups that the claims name now. Raises ``SignInFailed``.

    The first sign-in makes an account.
    """
    identity = _identity_of(claims) or _make_account(claims, provider)
    if not identity.user.is_active:
        raise SignInFailed("Your account here is switched off. Ask your operator.", "inactive account", FORBIDDEN)
    _follow_groups(identity, claims.get(provider.groups_claim))
    return identity.user


def link(user: User, claims: Mapping[str, Any], provider: Registration) -> bool:
    """Link a sign-in to this account as well, and return whether that is new. Raises ``SignInFailed``."""
    with transaction.atomic():
        own = _lock_sign_ins(user)
        identity, is_new = Identity.objects.get_or_create(
            issuer=claims["iss"], subject=claims["sub"], defaults={"user": user}
        )
        if identity.user_id != user.pk:
            text = (
                f"This account at {provider.name} belongs to somebody else here. Log in with it, or ask your operator."
            )
            raise SignInFailed(text, "linked to another account", CONFLICT)
        if is_new and len(own) >= MOST_IDENTITIES:
            text = f"You have {MOST_IDENTITIES} sign-ins, and no more are kept. Unlink one."
            raise SignInFailed(text, "too many identities", CONFLICT)
    _follow_groups(identity, claims.get(provider.groups_claim))
    return is_new


def unlink(user: User, identity_id: int) -> Identity:
    """Unlink a sign-in, with the groups that it alone gave. Raises ``NotFound``, and ``Conflict`` for the last one."""
    with transaction.atomic():
        own = _lock_sign_ins(user)
        identity = own.pop(identity_id, None)
        if identity is None:
            raise NotFound("You have no such sign-in, or it was unlinked before. Nothing was changed.")
        if not user.has_usable_password() and not any(map(provider_of, own.values())):
            raise Conflict("last_way_in", LAST_WAY_IN)
        user.groups.remove(*(set(identity.groups.all()) - _given_by(own.values())))
        identity.delete()
    return identity


def _lock_sign_ins(user: User) -> dict[int, Identity]:
    """Return a person's sign-ins by their ids, locked, so that nobody else links or unlinks one meanwhile."""
    User.objects.select_for_update().get(pk=user.pk)
    return {identity.pk: identity for identity in Identity.objects.filter(user=user)}


def _given_by(identities: Iterable[Identity]) -> set[Group]:
    return {group for identity in identities for group in identity.groups.all()}


def _identity_of(claims: Mapping[str, Any]) -> Identity | None:
    named = Identity.objects.filter(issuer=claims["iss"], subject=claims["sub"])
    return named.select_related("user").first()


def _make_account(claims: Mapping[str, Any], provider: Registration) -> Identity:
    if not provider.makes_accounts:
        text = (
            f"You have no account here yet. Ask your operator for one, and name the subject {claims['sub']}. If you "
            f"have one, log in to it and link {provider.name} in its settings."
        )
        raise SignInFailed(text, f"no account for the subject {claims['sub']}", FORBIDDEN)
    for _ in range(TRIES):
        user = User(username=_free_name(claims), email=_mail_address(claims))
        user.set_unusable_password()
        try:
            with transaction.atomic():
                user.save()
                return Identity.objects.create(user=user, issuer=claims["iss"], subject=claims["sub"])
        except IntegrityError:  # the name, or the whole person, was made a moment ago
            if identity := _identity_of(claims):
                return identity
    raise SignInFailed("Too many accounts are being made. Begin again.", "no free user name")


def _free_name(claims: Mapping[str, Any]) -> str:
    """Return the provider's name for the person, or a free one made from it."""
    wanted = claims.get("preferred_username") or str(claims.get("email", "")).partition("@")[0]
    return free_username(
        NOT_IN_NAMES.sub("-", User.normalize_username(str(wanted)))[:MOST_NAME_CHARS].strip("-") or "person"
    )


def _mail_address(claims: Mapping[str, Any]) -> str:
    """Return a mail address only if it is verified, since links that answer in a person's name are sent there."""
    address = claims.get("email")
    if claims.get("email_verified") is not True or not isinstance(address, str):
        return ""
    try:
        validate_email(address)
    except ValidationError:
        return ""
    return address if len(address) <= 254 else ""  # the length of Django's column


def _follow_groups(identity: Identity, claimed: Any) -> None:
    """Follow the claimed groups that exist here. Memberships given by an operator, or by another sign-in, stay."""
    names = [claimed] if isinstance(claimed, str) else claimed if isinstance(claimed, list) else []
    names = [name for name in names[:MOST_GROUPS] if isinstance(name, str) and name.isprintable()]
    with transaction.atomic():
        others = _lock_sign_ins(identity.user)
        others.pop(identity.pk, None)
        given, by_others, own = set(identity.groups.all()), _given_by(others.values()), identity.user.groups
        named = set(Group.objects.filter(name__in=names))
        joined, left = named - set(own.all()), given - named - by_others
        own.remove(*left)
        own.add(*joined)
        identity.groups.set((named & (given | by_others)) | joined)
    if joined or left:
        shown = {"joined": sorted(map(str, joined)), "left": sorted(map(str, left))}
        log.info("groups_followed", person=identity.user_id, **shown)
