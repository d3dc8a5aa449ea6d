"""The double of a push service takes a message that is right, and refuses it with each thing changed."""

import os
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from dominds import outbound_http
from dominds.web import web_push
from tests.doubles.push import DAY, PushService, push_service

OTHER = web_push.read_key(web_push.new_key())
KEY = web_push.read_key(web_push.new_key())


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PushService]:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "push.pem"))
    with push_service(tmp_path) as running:
        yield running


def token(service: PushService, key: Any = KEY, **changed: Any) -> str:
    claims = {"aud": service.origin, "exp": int(time.time()) + 60, "sub": "mailto:ops@example.org", **changed}
    signed = jwt.encode({name: value for name, value in claims.items() if value}, key, "ES256")
    return f"vapid t={signed}, k={web_push.as_text(web_push.point_of(KEY))}"


def send(service: PushService, changed: dict[str, Any] | None = None, body: bytes = b"", text: bytes = b"Hello") -> int:
    browser = service.browser(web_push.as_text(web_push.point_of(KEY)))
    headers = {"Authorization": token(service), "TTL": "60", "Content-Encoding": "aes128gcm", **(changed or {})}
    given = {name: value for name, value in headers.items() if value}
    body = body or web_push.encrypt(text, browser.point, browser.secret)
    return outbound_http.post(browser.address, body, given, timeout_seconds=5, allow_private=True)


def test_a_message_that_is_right_is_shown(service: PushService) -> None:
    most = b"x" * web_push.MOST_BYTES
    assert (send(service), send(service, text=most), send(service, {"Topic": "a" * 32, "Urgency": "high"})) == (
        201,
    ) * 3
    shown = [text for browser in service.browsers.values() for text, _ in browser.shown]
    assert (shown, service.refusals) == ([b"Hello", most, b"Hello"], [])


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({"Authorization": ""}, 401, "no token"),
        ({"TTL": ""}, 400, "no TTL"),
        ({"Content-Encoding": "aesgcm"}, 400, "content encoding"),
        ({"Urgency": "urgent"}, 400, "urgency"),
        ({"Topic": "a" * 33}, 400, "topic"),
    ],
)
def test_headers(service: PushService, changed: dict[str, Any], status: int, words: str) -> None:
    assert (send(service, changed), service.refusals) == (status, [words])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"aud": "https://elsewhere.example"}, "token: InvalidAudienceError"),
        ({"exp": 1}, "token: ExpiredSignatureError"),
        ({"exp": None}, "token: MissingRequiredClaimError"),
        ({"exp": int(time.time()) + DAY + 3600}, "token of more than a day"),
        ({"sub": None}, "token: MissingRequiredClaimError"),
        ({"sub": "ops@example.org"}, "contact"),
        ({"key": OTHER}, "token: InvalidSignatureError"),
    ],
)
def test_tokens(service: PushService, changed: dict[str, Any], words: str) -> None:
    assert (send(service, {"Authorization": token(service, **changed)}), service.refusals) == (403, [words])


def test_others(service: PushService) -> None:
    others = f"vapid t={token(service).split()[1][2:-1]}, k={web_push.as_text(web_push.point_of(OTHER))}"
    assert (send(service, {"Authorization": others}), service.refusals) == (
        403,
        ["another key than the subscription's"],
    )
    assert send(service, body=os.urandom(4_097)) == 413
    gone = service.browser("")
    gone.is_gone = True
    for address, status in ((gone.address, 410), (f"{service.origin}/push/none", 404)):
        assert outbound_http.post(address, b"", {}, timeout_seconds=5, allow_private=True) == status


def test_its_certificate_is_not_trusted_by_itself(service: PushService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(ssl.SSLCertVerificationError):
        send(service)
