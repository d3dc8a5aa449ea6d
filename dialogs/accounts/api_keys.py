"""API keys: random, shown once, stored as hashes."""

import hashlib
import secrets

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from dialogs.models import ApiKey
from dominds.db.prepared import Select

PREFIX = "dmk_"


def create_key(owner: User, name: str = "") -> str:
    """Make a key for a person and return it; it cannot be read again."""
    key = PREFIX + secrets.token_urlsafe(32)
    ApiKey.objects.create(owner=owner, name=name[:80], digest=_digest(key), last_four=key[-4:])
    return key


def key_of(key: str) -> ApiKey | None:
    """The row of a key that holds and whose owner is active."""
    row = _THAT_HOLDS.first(_digest(key))
    return row if row is not None and row.owner.is_active else None


def _that_holds(digest: str) -> QuerySet[ApiKey]:
    return ApiKey.objects.select_related("owner").filter(digest=digest, revoked_at__isnull=True)


_THAT_HOLDS = Select(_that_holds)


def owner_of(key: str) -> User | None:
    """Whose key this is, if it is one that holds and its owner is active."""
    row = key_of(key)
    return row.owner if row is not None else None


def revoke(owner: User, key_id: int) -> bool:
    return bool(
        ApiKey.objects.filter(pk=key_id, owner=owner, revoked_at__isnull=True).update(revoked_at=timezone.now())
    )


def _digest(key: str) -> str:
    # A random 256-bit key needs no slow hash: nobody can guess it.
    return hashlib.sha256(key.encode()).hexdigest()
