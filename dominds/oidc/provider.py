"""Sign-in at an OpenID provider: authorization code with PKCE (OpenID Connect Core 1.0 and Discovery 1.0, RFC 7636).

``docs/decisions/0008-sign-in-on-pyjwt.md`` says why no larger library does this.
"""

import asyncio
import hashlib
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import aiohttp

from dominds.llm.http import event_loop
from dominds.llm.json_text import NotJson, parse
from dominds.oidc.registration import Registration, SignInFailed

DEADLINE_SECONDS = 12  # for all requests of one step to the provider, including the look-up of its name
KEPT_SECONDS = 3600  # lifetime of the cached addresses and keys of the provider
FRESH_SECONDS = 30  # if a token's key is unknown, cached keys older than this are fetched again
MOST_BYTES = 1_000_000  # of one answer
OK, BAD_REQUEST, FORBIDDEN, CONFLICT, SERVER_FAULT = 200, 400, 403, 409, 500  # HTTP

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Attempt:
    """An unfinished sign-in, known only to the browser that began it."""

    state: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(32))


def address_at_provider(registration: Registration, attempt: Attempt, redirect_uri: str) -> str:
    """Return the address to which the browser is sent. Raises ``SignInFailed``."""
    document = _run(registration, _document(registration))
    query = {
        "response_type": "code",
        "client_id": registration.client_id,
        "redirect_uri": redirect_uri,
        "scope": registration.scopes,
        "state": attempt.state,
        "nonce": attempt.nonce,
        "code_challenge": _challenge(attempt.verifier),
        "code_challenge_method": "S256",
    }
    address = document["authorization_endpoint"]
    return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"


def claims_for(registration: Registration, attempt: Attempt, code: str, redirect_uri: str) -> dict[str, Any]:
    """Exchange a code for the provider's claims about the person, whom ``iss`` and ``sub`` identify.

    Raises ``SignInFailed``.
    """
    return _run(registration, _claims(registration, attempt, code, redirect_uri))


def _challenge(verifier: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _run(registration: Registration, asking: Coroutine[Any, Any, Answer]) -> Answer:
    try:
        return event_loop.LOOP.run(asyncio.wait_for(asking, DEADLINE_SECONDS))
    except (aiohttp.ClientError, OSError) as error:  # a TimeoutError is an OSError
        raise registration.away(f"{type(error).__name__}: {error}") from error


# -- Requests to the provider ------------------------------------------------------------------------------------------

_kept: dict[str, tuple[float, dict[str, Any]]] = {}  # cached documents by address, used only on the event loop's thread


async def _document(registration: Registration) -> Mapping[str, str]:
    """Return the provider's discovery document, with its addresses."""
    document = await _kept_json(registration, f"{registration.issuer.rstrip('/')}/.well-known/openid-configuration")
    if not registration.names(str(document.get("issuer"))):
        raise registration.misbehaviour(f"the provider calls itself {str(document.get('issuer'))[:200]!r}")
    needs = urlsplit(registration.issuer).scheme
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"):
        address = document.get(name, "" if name == "userinfo_endpoint" else None)
        if not isinstance(address, str) or (address and urlsplit(address).scheme not in ("https", needs)):
            raise registration.misbehaviour(f"{name} of the provider is {str(address)[:200]!r}")
    return document


async def _claims(registration: Registration, attempt: Attempt, code: str, redirect_uri: str) -> dict[str, Any]:
    document = await _document(registration)
    tokens = await _tokens(registration, document, attempt, code, redirect_uri)
    claims = await _verify(registration, document, str(tokens.get("id_token")), attempt)
    endpoint = document.get("userinfo_endpoint")
    if not endpoint or {registration.groups_claim, "preferred_username"} <= claims.keys():
        return claims
    headers = {"Authorization": f"Bearer {tokens.get('access_token')}"}
    status, more = await _ask(registration, "GET", endpoint, headers=headers)
    if status != OK or more.get("sub") != claims["sub"]:  # the answer may be about another person (Core, 5.3.2)
        raise registration.misbehaviour(f"user info: {status}, or of another subject")
    return more | claims


async def _tokens(
    registration: Registration, document: Mapping[str, Any], attempt: Attempt, code: str, redirect_uri: str
) -> dict[str, Any]:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": attempt.verifier,
    }
    headers = {}
    identity, secret = registration.client_id, registration.client_secret
    methods = document.get("token_endpoint_auth_methods_supported")
    if not isinstance(methods, list) or "client_secret_basic" in methods:
        # RFC 6749, 2.3.1: both are URL-encoded before they are joined.
        headers["Authorization"] = aiohttp.encode_basic_auth(quote(identity, safe=""), quote(secret, safe=""))
    else:
        form |= {"client_id": identity, "client_secret": secret}
    status, answer = await _ask(registration, "POST", document["token_endpoint"], headers=headers, data=form)
    if status == OK:
        return answer
    error = str(answer.get("error"))[:60]
    if error == "invalid_grant":
        text = f"{registration.name} no longer takes this sign-in: it was used before, or took too long. Begin again."
        raise SignInFailed(text, error, BAD_REQUEST)
    text = f"{registration.name} refused this server, not you. Tell your operator, or log in with a password."
    raise SignInFailed(text, f"{status} {error}")


async def _verify(
    registration: Registration, document: Mapping[str, Any], token: str, attempt: Attempt
) -> dict[str, Any]:
    """Return the claims of an ID token. If its key is unknown, the provider's keys are fetched again."""
    from dominds.oidc.id_token import UnknownKey, Untrusted, verify

    for most_seconds in (KEPT_SECONDS, FRESH_SECONDS):
        keys = (await _kept_json(registration, document["jwks_uri"], most_seconds)).get("keys")
        named = {"issuer": document["issuer"], "client_id": registration.client_id, "nonce": attempt.nonce}
        try:
            return verify(token, keys, **named)
        except UnknownKey:
            continue
        except Untrusted as error:
            raise registration.misbehaviour(f"ID token: {error}") from error
    raise registration.misbehaviour("ID token: the provider has no such key")


async def _kept_json(registration: Registration, address: str, most_seconds: float = KEPT_SECONDS) -> dict[str, Any]:
    at, result = _kept.get(address, (-float("inf"), {}))
    if time.monotonic() - at > most_seconds:
        status, result = await _ask(registration, "GET", address)
        if status != OK:
            raise registration.misbehaviour(f"{status} from {address}")
        _kept[address] = time.monotonic(), result
    return result


async def _ask(registration: Registration, method: str, address: str, **more: Any) -> tuple[int, dict[str, Any]]:
    """Send a request, and return the answer's status and its JSON object."""
    async with event_loop.LOOP.session().request(method, address, allow_redirects=False, **more) as answer:
        body = bytearray()
        while piece := await answer.content.readany():
            body += piece
            if len(body) > MOST_BYTES:
                raise registration.misbehaviour(f"more than {MOST_BYTES:,} bytes from {address}")
    if answer.status >= SERVER_FAULT:
        raise registration.away(f"{answer.status} from {address}")
    try:
        document = parse(bytes(body))
    except NotJson:
        document = None
    if not isinstance(document, dict):
        raise registration.misbehaviour(f"{answer.status} without a JSON object from {address}")
    return answer.status, document
