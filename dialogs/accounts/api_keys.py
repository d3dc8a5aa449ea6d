"""API keys: random, shown once, stored as hashes."""

import hashlib
import secrets
from datetime import timedelta
from decimal import Decimal

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from dialogs.errors import Invalid
from dialogs.models import ApiKey
from dominds.db.prepared import Select

PREFIX = "dmk_"
MAKE_ONE = "Make one in the settings, or with `dominds apikey USERNAME`."
NOTED = timedelta(minutes=1)  # the use of a key is stored at most once in this time


def create_key(
    owner: User,
    name: str = "",
    *,
    scope: str = ApiKey.Scope.ALL,
    days: int | None = None,
    keep_days: int | None = None,
    budget_usd: Decimal | None = None,
) -> str:
    """Make a key for a person and return it; it cannot be read again. Raises ``Invalid``.

    It expires after ``days``, or never. Dialogs that it makes are kept for ``keep_days``, or for ever. ``budget_usd``
    is what it may cost a month.
    """
    if budget_usd is not None and scope == ApiKey.Scope.READ:
        raise Invalid("A key that may only read asks no model: it has no budget.")
    key = PREFIX + secrets.token_urlsafe(32)
    ApiKey.objects.create(
        owner=owner,
        name=name[:80],
        digest=_digest(key),
        last_four=key[-4:],
        scope=scope,
        keep_days=keep_days,
        budget_usd=budget_usd,
        expires_at=timezone.now() + timedelta(days=days) if days else None,
    )
    return key


def key_of(key: str) -> ApiKey | None:
    """Return the row of a valid key with an active owner, and note that the key was used."""
    row = _valid_keys.first(_digest(key))
    if row is None or not row.owner.is_active:
        return None
    if row.last_used_at is None or timezone.now() - row.last_used_at > NOTED:
        ApiKey.objects.filter(pk=row.pk).update(last_used_at=Now())
    return row


def refusal_of(key: str) -> str:
    """Return the reason why a key is refused, for its sender."""
    if not key:
        return f"No API key was sent: `Authorization: Bearer KEY`. {MAKE_ONE}"
    row = ApiKey.objects.select_related("owner").filter(digest=_digest(key)).first()
    if row is None:
        return f"This API key is not valid. {MAKE_ONE}"
    if row.revoked_at:
        return f"The API key {row} was revoked on {row.revoked_at:%Y-%m-%d}. {MAKE_ONE}"
    if not row.owner.is_active:
        return f"The API key {row} is of an account that is not active."
    return f"The API key {row} has expired. {MAKE_ONE}"


def owner_of(key: str) -> User | None:
    """Return the active owner of a valid key, or None."""
    row = key_of(key)
    return row.owner if row is not None else None


@Select
def _valid_keys(digest: str) -> QuerySet[ApiKey]:
    holds = Q(expires_at__isnull=True) | Q(expires_at__gt=Now())
    return ApiKey.objects.select_related("owner").filter(holds, digest=digest, revoked_at__isnull=True)


def revoke(owner: User, key_id: int) -> bool:
    return bool(
        ApiKey.objects.filter(pk=key_id, owner=owner, revoked_at__isnull=True).update(revoked_at=timezone.now())
    )


def _digest(key: str) -> str:
    # A random 256-bit key needs no slow hash: nobody can guess it.
    return hashlib.sha256(key.encode()).hexdigest()
