"""A push service on loopback, over TLS, with the browsers that it brings messages to. It refuses what real ones refuse:
tokens that are missing, of another key, for another service, expired or of more than a day, without a contact; messages
without a TTL, over 4,096 bytes, or in another coding; topics and urgencies that there are not. Browsers decrypt by what
RFC 8188 and 8291 say, written here a second time."""

import base64
import hmac
import re
import secrets
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

DAY = 24 * 3600
URGENCIES = ("very-low", "low", "normal", "high")


@dataclass
class Browser:
    """A subscription: its address, its keys, and the messages that it showed, with the headers that they came with."""

    address: str
    application_key: str  # base64url, of whoever may send here
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    is_gone: bool = False
    shown: list[tuple[bytes, dict[str, str]]] = field(default_factory=list)

    def as_form(self) -> dict[str, str]:
        """What the script of the settings page sends."""
        return {"address": self.address, "key": text_of(self.point), "secret": text_of(self.secret)}

    @property
    def point(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def decrypt(self, body: bytes) -> bytes:
        """RFC 8188, section 2, and RFC 8291, section 3.4. Raises where anything is not as it should be."""
        salt, record_size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert length == 65 and record_size >= 18 and len(record) <= record_size
        shared = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        keying = _hmac(_hmac(self.secret, shared), b"WebPush: info\0" + self.point + sender + b"\1")
        drawn = _hmac(salt, keying)
        key = _hmac(drawn, b"Content-Encoding: aes128gcm\0\1")[:16]
        nonce = _hmac(drawn, b"Content-Encoding: nonce\0\1")[:12]
        text = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        assert text[-1:] == b"\2", "the last record ends so"
        return text[:-1]


def _hmac(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, "sha256").digest()


def text_of(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class PushService:
    """``fails`` are statuses of the next answers, before it takes what comes."""

    origin: str = ""
    browsers: dict[str, Browser] = field(default_factory=dict)
    fails: list[int] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    def browser(self, application_key: str) -> Browser:
        """A new one, which subscribed here with the key of a server."""
        path = f"/push/{secrets.token_urlsafe(24)}"
        self.browsers[path] = result = Browser(f"{self.origin}{path}", application_key)
        return result

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> int:
        if self.fails:
            return self.fails.pop(0)
        browser = self.browsers.get(path)
        if browser is None or browser.is_gone:
            return 410 if browser else 404
        for status, words in self._problems(browser, headers, body):
            self.refusals.append(words)
            return status
        browser.shown.append((browser.decrypt(body), headers))
        return 201

    def _problems(self, browser: Browser, headers: dict[str, str], body: bytes) -> Iterator[tuple[int, str]]:
        yield from self._problems_of_token(browser, headers.get("authorization", ""))
        if not headers.get("ttl", "").isdecimal():
            yield 400, "no TTL"
        if headers.get("content-encoding") != "aes128gcm":
            yield 400, "content encoding"
        if headers.get("urgency", "normal") not in URGENCIES:
            yield 400, "urgency"
        if not re.fullmatch(r"[\w-]{1,32}", headers.get("topic", "none"), re.ASCII):
            yield 400, "topic"
        if len(body) > 4096:
            yield 413, "too large"

    def _problems_of_token(self, browser: Browser, header: str) -> Iterator[tuple[int, str]]:
        pattern_match = re.fullmatch(r"vapid t=([\w.-]+), ?k=([\w-]+)", header)
        if pattern_match is None:
            yield 401, "no token"
            return
        token, key = pattern_match.groups()
        if key != browser.application_key:
            yield 403, "another key than the subscription's"
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), bytes_of(key))
        try:
            wanted: dict[str, Any] = {"options": {"require": ["aud", "exp", "sub"]}, "audience": self.origin}
            claims = jwt.decode(token, public, ["ES256"], **wanted)
        except jwt.PyJWTError as error:
            yield 403, f"token: {type(error).__name__}"
            return
        if claims["exp"] > time.time() + DAY:
            yield 403, "token of more than a day"
        if not re.match(r"mailto:[^@\s]+@[^@\s]+$|https://\w", claims["sub"]):
            yield 403, "contact"


@cache
def certificate() -> bytes:
    """Key and certificate of 127.0.0.1, in PEM."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=True)
        .sign(key, SHA256())
    )
    kept = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return kept + made.public_bytes(Encoding.PEM)


@contextmanager
def push_service(folder: Path) -> Iterator[PushService]:
    """``folder / "push.pem"`` is what a client must trust: name it in ``SSL_CERT_FILE``."""
    service, file = PushService(), folder / "push.pem"
    file.write_bytes(certificate())

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(service.answer(self.path, headers, body))
            self.send_header("content-length", "0")
            self.end_headers()
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
            """Say nothing: a test reads ``refusals``."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    service.origin = f"https://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
