"""An OpenID provider on loopback that refuses what real ones refuse: redirect addresses that nobody registered, wrong
client secrets, codes that are unknown, used, old, of another client or redirect address, verifiers that do not fit, and
tokens of nobody. Its tokens are signed by RS256 under a key of its key set."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT, SECRET = "dominds", "s3cret:of/the client, of more than 32 bytes"
Reply = tuple[int, dict[str, str], bytes]


@cache
def key(name: str) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Code:
    """What a code was given for."""

    claims: dict[str, Any]
    redirect_uri: str
    challenge: str
    made_at: float
    used: bool = False


@dataclass
class Provider:
    """``person`` are the claims of whoever is logged in there; ``wrong`` bends its tokens."""

    redirect_uris: tuple[str, ...]
    person: dict[str, Any] = field(default_factory=dict)
    user_info: dict[str, Any] = field(default_factory=dict)  # what stands there alone
    wrong: dict[str, Any] = field(default_factory=dict)
    key_id: str = "first"
    algorithm: str = "RS256"
    signing_key: str = ""  # another one than the key set has under ``key_id``
    code_seconds: float = 60
    denies: bool = False
    client_authentication: str = "client_secret_basic"
    issuer: str = ""
    refusals: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # paths
    codes: dict[str, Code] = field(default_factory=dict)
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)

    def refuse(self, error: str, status: int = 400) -> Reply:
        self.refusals.append(error)
        return _json({"error": error, "error_description": "in words of its own"}, status)

    def answer(self, method: str, target: str, headers: dict[str, str], body: str) -> Reply:
        path = urlsplit(target).path
        self.asked.append(path)
        given = {name: values[0] for name, values in parse_qs(urlsplit(target).query or body).items()}
        match method, path:
            case "GET", "/.well-known/openid-configuration":
                return _json(self._document())
            case "GET", "/keys":
                return _json({"keys": [self._public_key()]})
            case "GET", "/authorize":
                return self._authorize(given)
            case "POST", "/token":
                return self._token(given, headers)
            case "GET", "/userinfo":
                result = self.tokens.get(headers.get("authorization", "").removeprefix("Bearer "))
                return _json({**result, **self.user_info}) if result else self.refuse("invalid_token", 401)
        return self.refuse("not_found", 404)

    def _document(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": [self.client_authentication],
            "code_challenge_methods_supported": ["S256"],
        }

    def _public_key(self) -> dict[str, Any]:
        numbers = RSAAlgorithm.to_jwk(key(self.key_id).public_key(), as_dict=True)
        return {**numbers, "kid": self.key_id, "use": "sig", "alg": "RS256"}

    def _authorize(self, given: dict[str, str]) -> Reply:
        """Whoever asks is logged in here already, and agrees."""
        back = given.get("redirect_uri", "")
        if given.get("client_id") != CLIENT or back not in self.redirect_uris:
            return self.refuse("redirect_uri")  # a page: nobody is sent to an address that is not registered
        state = {"state": given["state"]} if "state" in given else {}
        wanted = {"response_type": "code", "code_challenge_method": "S256"}
        if any(given.get(name) != value for name, value in wanted.items()) or "openid" not in given["scope"].split():
            self.refusals.append("invalid_request")
            return _redirect(back, {"error": "invalid_request", **state})
        if self.denies:
            return _redirect(back, {"error": "access_denied", **state})
        code = secrets.token_urlsafe(24)
        claims = {**self.person, "nonce": given.get("nonce")}
        self.codes[code] = Code(claims, back, given["code_challenge"], time.monotonic())
        return _redirect(back, {"code": code, "iss": self.issuer, **state})

    def _token(self, given: dict[str, str], headers: dict[str, str]) -> Reply:
        scheme, _, word = headers.get("authorization", "").partition(" ")
        if self.client_authentication == "client_secret_basic":
            pair = [unquote(part) for part in base64.b64decode(word).decode().split(":")] if scheme == "Basic" else []
        else:
            pair = [given.get("client_id", ""), given.get("client_secret", "")]
        if pair != [CLIENT, SECRET]:
            return self.refuse("invalid_client", 401)
        code = self.codes.get(given.get("code", ""))
        verified = base64.urlsafe_b64encode(hashlib.sha256(given.get("code_verifier", "").encode()).digest())
        if (
            given.get("grant_type") != "authorization_code"
            or code is None
            or code.used
            or time.monotonic() - code.made_at > self.code_seconds
            or given.get("redirect_uri") != code.redirect_uri
            or verified.rstrip(b"=").decode() != code.challenge
        ):
            return self.refuse("invalid_grant")
        code.used = True
        access_token = secrets.token_urlsafe(24)
        self.tokens[access_token] = {"sub": code.claims["sub"]}
        return _json(
            {
                "access_token": access_token,
                "token_type": "Bearer",
                "expires_in": 300,
                "id_token": self._id_token(code.claims),
            }
        )

    def _id_token(self, claims: dict[str, Any]) -> str:
        now = int(time.time())
        message = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, **claims, **self.wrong}
        kept = {name: value for name, value in message.items() if value is not None}
        signing_key: Any = {"none": None, "HS256": SECRET}.get(self.algorithm, key(self.signing_key or self.key_id))
        return jwt.encode(kept, signing_key, self.algorithm, headers={"kid": self.key_id})


def _json(content: dict[str, Any], status: int = 200) -> Reply:
    return status, {"content-type": "application/json"}, json.dumps(content).encode()


def _redirect(address: str, query: dict[str, str]) -> Reply:
    return 302, {"location": f"{address}?{urlencode(query)}"}, b""


@contextmanager
def openid_provider(*redirect_uris: str, **more: Any) -> Iterator[Provider]:
    provider = Provider(redirect_uris, **more)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, more, content = provider.answer(self.command, self.path, headers, body)
            self.send_response(status)
            for name, value in {**more, "content-length": str(len(content)), "connection": "close"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
            self.close_connection = True

        do_GET = do_POST = _serve

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
            """Say nothing: a test reads ``asked`` and ``refusals``."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
