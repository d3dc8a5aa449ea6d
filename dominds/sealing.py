"""Encryption of secrets that people type into pages, under a key derived from the signing key."""

from base64 import urlsafe_b64encode

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unreadable(Exception):
    """Raised for a secret that was encrypted under a signing key which no longer exists."""


def seal(secret: str) -> str:
    return _box().encrypt(secret.encode()).decode()


def unseal(sealed: str) -> str:
    """Decrypt by the signing key or one of ``SECRET_KEY_FALLBACKS``. Raises ``Unreadable``."""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise Unreadable from error


def _box() -> MultiFernet:
    return MultiFernet([Fernet(_derive_key(key)) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


def _derive_key(key: str) -> bytes:
    """Derive a separate key from a signing key, so that signed data reveals nothing about it."""
    hkdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"dominds sealed secrets")
    return urlsafe_b64encode(hkdf.derive(key.encode()))
