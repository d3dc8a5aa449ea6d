"""Opaque texts that only their maker accepts unchanged, as signatures of thinking and encrypted reasoning are."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any


class Signer:
    """``provider`` is the secret: doubles of one provider read each other's texts, as its servers do."""

    def __init__(self, provider: str) -> None:
        self._secret = provider.encode()

    def seal(self, payload: Mapping[str, Any]) -> str:
        content = json.dumps(payload, sort_keys=True).encode()
        return base64.urlsafe_b64encode(self._mac(content) + content).decode()

    def open(self, sealed: Any) -> dict[str, Any] | None:
        """What was sealed, or ``None`` for a text that this signer did not make so."""
        try:
            content = base64.urlsafe_b64decode(sealed)
        except (binascii.Error, TypeError, ValueError):
            return None
        mac, content = content[:16], content[16:]
        if (
            not hmac.compare_digest(mac, self._mac(content))
            or base64.urlsafe_b64encode(mac + content) != sealed.encode()
        ):
            return None  # the second: base64 reads over what it does not know
        payload: dict[str, Any] = json.loads(content)
        return payload

    def _mac(self, content: bytes) -> bytes:
        return hmac.digest(self._secret, content, "sha256")[:16]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
