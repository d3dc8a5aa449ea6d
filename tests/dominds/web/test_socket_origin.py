from typing import Any

import pytest

from dominds.web.socket_origin import is_own


def handshake(origin: str | None, host: str = "127.0.0.1:8000", scheme: str = "ws", **headers: str) -> dict[str, Any]:
    text = [(b"host", host.encode())] + ([(b"origin", origin.encode())] if origin is not None else [])
    text += [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "websocket", "scheme": scheme, "headers": text}


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1:8000"),
        ("http://localhost", "localhost"),
        ("http://localhost:80", "localhost"),
        ("http://[::1]:8000", "[::1]:8000"),
        ("http://LOCALHOST", "localhost"),
    ],
)
def test_a_page_of_this_server_may_open_a_socket(origin: str, host: str) -> None:
    assert is_own(handshake(origin, host))


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "null",
        "http://127.0.0.1:8001",  # another program of this machine
        "http://127.0.0.1",
        "https://127.0.0.1:8000",
        "http://localhost:8000",
        "http://evil.example",
        "http://127.0.0.1:8000.evil.example",
        "http://x.127.0.0.1:8000",
        "http://evil@127.0.0.1:8000",
        "http://127.0.0.1:8000/path",
        "http://127.0.0.1:99999",
        "ws://127.0.0.1:8000",
        "file://",
    ],
)
def test_no_other_page_may(origin: str | None) -> None:
    assert not is_own(handshake(origin))


def test_a_foreign_name_that_leads_here_is_no_origin() -> None:
    assert not is_own(handshake("http://rebound.example:8000", "rebound.example:8000"))


def test_two_origins_are_none() -> None:
    twice = handshake("http://127.0.0.1:8000")
    twice["headers"].append((b"origin", b"http://127.0.0.1:8000"))
    assert not is_own(twice)


def test_the_scheme_of_a_proxy_counts_only_behind_one(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["dominds.example.org"]
    page, host = "https://dominds.example.org", "dominds.example.org"
    assert not is_own(handshake(page, host, x_forwarded_proto="https"))
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert is_own(handshake(page, host, x_forwarded_proto="https"))
    assert not is_own(handshake("http://dominds.example.org", host, x_forwarded_proto="https"))
    assert not is_own(handshake(page, host))


def test_trusted_origins_may_where_a_proxy_changes_the_host(settings: Any) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://dominds.example.org:8443"]
    assert is_own(handshake("https://dominds.example.org:8443", "inside:8000"))
    assert not is_own(handshake("https://dominds.example.org", "inside:8000"))
