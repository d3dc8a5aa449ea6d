"""Verification of ID tokens (OpenID Connect Core 1.0, 3.1.3.7).

This is a separate module, so that PyJWT is loaded only when somebody signs in.
"""

import secrets
from typing import Any

import jwt

# PyJWT does not check the types of values in a key or a token, and so may raise any of these.
MISREAD = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
LEEWAY_SECONDS = 60  # by which the provider's clock may differ from ours
MOST_SUBJECT_CHARS = 255  # OpenID Connect Core 1.0, section 2
# The accepted algorithms, with the type of key for each. HS* (by the client secret) and "none" are left out on purpose.
KEY_TYPES = {
    "RS256": "RSA",
    "RS384": "RSA",
    "RS512": "RSA",
    "PS256": "RSA",
    "PS384": "RSA",
    "PS512": "RSA",
    "ES256": "EC",
    "ES384": "EC",
    "ES512": "EC",
    "EdDSA": "OKP",
}


class Untrusted(Exception):
    """Raised for a token that proves nothing. The message gives the reason for the log."""


class UnknownKey(Untrusted):
    """Raised if no key of the provider, or more than one, has the token's key id and algorithm."""


def verify(token: str, keys: Any, *, issuer: str, client_id: str, nonce: str) -> dict[str, Any]:
    """Verify a token by one of these JSON Web Keys, and return its claims. Raises ``Untrusted``."""
    try:
        header = jwt.get_unverified_header(token)
        key = _key(keys, header)
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            audience=client_id,
            issuer=issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iat", "aud", "iss", "sub"], "enforce_minimum_key_length": True},
        )
    except (jwt.PyJWTError, *MISREAD) as error:
        raise Untrusted(f"{type(error).__name__}: {error}") from error
    if not secrets.compare_digest(str(claims.get("nonce")).encode(), nonce.encode()):
        raise Untrusted("the nonce is of another sign-in")
    parties = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if claims.get("azp", client_id if len(parties) == 1 else None) != client_id:
        raise Untrusted("made for another client")
    if not 0 < len(claims["sub"]) <= MOST_SUBJECT_CHARS or not claims["sub"].isprintable():
        raise Untrusted("no usable subject")
    return claims


def _key(keys: Any, header: dict[str, Any]) -> jwt.PyJWK:
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in KEY_TYPES:
        raise Untrusted(f"signed by {str(algorithm)[:20]!r}")
    fitting = [
        key
        for key in (keys if isinstance(keys, list) else ())
        if isinstance(key, dict)
        and (key.get("kty"), key.get("alg", algorithm)) == (KEY_TYPES[algorithm], algorithm)
        and key.get("use", "sig") == "sig"
        and (key_id is None or key.get("kid") == key_id)
    ]
    if len(fitting) != 1:
        raise UnknownKey(f"{len(fitting)} keys fit")
    return jwt.PyJWK(fitting[0], algorithm)
