"""Web Push: encryption of a message for one browser (RFC 8291, in the coding ``aes128gcm`` of RFC 8188), and the token
that tells a push service who sends it (VAPID, RFC 8292).

This module does not import Django. Callers pass keys and time.
"""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CURVE = ec.SECP256R1()
POINT_BYTES, SECRET_BYTES, SALT_BYTES = 65, 16, 16
RECORD_BYTES = 4_096  # every push service accepts a body of this size (RFC 8030, 7.2)
# The longest text of one record, without header, delimiter and tag.
MOST_BYTES = RECORD_BYTES - (SALT_BYTES + 4 + 1 + POINT_BYTES) - 1 - 16
TOKEN_SECONDS = 12 * 3600  # push services refuse tokens that are valid for more than a day
LAST_RECORD = b"\x02"


def encrypt(
    text: bytes,
    browser_key: bytes,
    secret: bytes,
    sender: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes | None = None,
) -> bytes:
    """Encrypt a text for the browser with this public key and secret.

    ``sender`` and ``salt`` must be new for each message, so only tests pass them. Raises ``ValueError`` for a key that
    is not on the curve, and for a text longer than ``MOST_BYTES``.
    """
    if len(text) > MOST_BYTES:
        raise ValueError(f"A push message has {MOST_BYTES:,} bytes at most, this one {len(text):,}.")
    sender, salt = sender or ec.generate_private_key(CURVE), salt or os.urandom(SALT_BYTES)
    sender_key = point_of(sender)
    shared = sender.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, browser_key))
    keying = _derive(secret, shared, b"WebPush: info\0" + browser_key + sender_key, 32)
    key = _derive(salt, keying, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(salt, keying, b"Content-Encoding: nonce\0", 12)
    header = salt + RECORD_BYTES.to_bytes(4, "big") + bytes([POINT_BYTES]) + sender_key
    return header + AESGCM(key).encrypt(nonce, text + LAST_RECORD, None)


def _derive(salt: bytes, keying: bytes, purpose: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=purpose).derive(keying)


def authorization(key: ec.EllipticCurvePrivateKey, address: str, contact: str, unix_seconds: int) -> str:
    """Return the header ``Authorization`` for a message to ``address``.

    ``contact`` is the operator's ``mailto:`` or ``https:`` address. The RFC does not require it, but the services of
    Mozilla and Apple refuse a token without one.
    """
    import jwt  # takes 0.03 s, which a process without subscribers is spared

    parts = urlsplit(address)
    claims = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": unix_seconds + TOKEN_SECONDS, "sub": contact}
    return f"vapid t={jwt.encode(claims, key, 'ES256')}, k={as_text(point_of(key))}"


# -- Keys --------------------------------------------------------------------------------------------------------------


def new_key() -> str:
    """Return a new private key as it is stored: its number in base64url."""
    return as_text(ec.generate_private_key(CURVE).private_numbers().private_value.to_bytes(32, "big"))


def read_key(kept: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(from_text(kept), "big"), CURVE)


def point_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the uncompressed point of the public key."""
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def check_browser_keys(key: bytes, secret: bytes) -> None:
    """Raise ``ValueError`` unless a message can be encrypted for these keys."""
    if len(key) != POINT_BYTES or len(secret) != SECRET_BYTES:
        raise ValueError(f"a key of {len(key)} and a secret of {len(secret)} bytes")
    ec.EllipticCurvePublicKey.from_encoded_point(CURVE, key)


def as_text(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def from_text(value: str) -> bytes:
    """Decode base64url. Raises ``ValueError`` for anything else."""
    return urlsafe_b64decode(value.encode("ascii") + b"=" * (-len(value) % 4))
