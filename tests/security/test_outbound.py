"""S10: an address that somebody typed must not make the server call itself, its network, or a cloud's metadata."""

import ipaddress
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from dialogs.extras.notices import deliveries
from dialogs.models import Delivery, SiteSettings
from dominds import outbound_http
from dominds.address_ranges import Range, ipv4_within, range_of
from dominds.llm.connect import connect
from dominds.llm.messages import Message, Request, Role
from dominds.llm.models.model import ModelInfo
from dominds.llm.provider import ProviderError
from dominds.llm.providers.ollama import OLLAMA
from dominds.outbound_http import Refused, check
from tests.dialogs.factories import UserFactory

INSIDE = [
    "http://127.0.0.1/",
    "http://127.1/",  # short for the same
    "http://2130706433/",  # and as one number
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://localhost:6379/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[64:ff9b::a00:1]/",  # 10.0.0.1 by NAT64
    "http://[2002:a00:1::]/",  # 10.0.0.1 by 6to4
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://[fd00::1]/",
]
NEVER = [
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://[fe80::1]/",
    "http://0.0.0.0/",
    "http://[::]/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "file:///etc/passwd",
    "ftp://example.org/",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "//example.org/",
    "https://",
    "https://name:password@example.org/",
    "https://name@example.org/",
    "http://example.org:99999/",
    "http://[::1/",
    "http://no-such-host.invalid/",
]
DISGUISED = [  # as parsers, look-ups and people read them differently
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://１２７.0.0.1/",
    "http://ⓛocalhost/",
    "http://local\u00adhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://127.0.0.1\t/",
    "http://127.0.0.1\n/",
    "http:\\\\127.0.0.1/",
    "http:///127.0.0.1/",
    "http:127.0.0.1",
    "http://127.0.0.1:80:80/",
    "http://127.0.0.1#@8.8.8.8/",
    "http://8.8.8.8@127.0.0.1/",
    "http://8.8.8.8\\@127.0.0.1/",
    "http://127.0.0.1%2f@8.8.8.8/",
    "http://8.8.8.8%00.127.0.0.1/",
    "http://0/",
    "http://0x7f.1/",
    "http://017700000001/",
    "http://127.000.000.001/",
    "http://[::127.0.0.1]/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]/",
    "http://[fe80::1%25lo]/",
    "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",  # Teredo
    "http://[64:ff9b:1::7f00:1]/",  # NAT64 of one's own
    "http://169.254.169.254.:80/",
    "jar:http://127.0.0.1!/",
    "data:text/plain,x",
    "unix:///var/run/docker.sock",
]


@pytest.mark.parametrize("url", [*INSIDE, *NEVER, *DISGUISED])
def test_addresses_inside_are_refused(url: str) -> None:
    with pytest.raises(Refused):
        check(url, allow_private=False)


@pytest.mark.parametrize("url", INSIDE)
def test_an_operator_may_allow_the_own_network(url: str) -> None:
    check(url, allow_private=True)


@pytest.mark.parametrize("url", NEVER)
def test_some_addresses_stay_refused_even_then(url: str) -> None:
    with pytest.raises(Refused):
        check(url, allow_private=True)


RANGES = {
    Range.PUBLIC: "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 "
    "168.63.129.15 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 198.17.255.255 198.20.0.0 223.255.255.255 "
    "2000:: 2001:200:: 2606:4700::1111 2a00:1450:4001::1 3ffd:: ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1",
    Range.LOOPBACK: "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::",
    Range.PRIVATE: "10.0.0.1 100.64.0.1 100.127.255.255 172.16.0.1 172.31.255.255 192.168.0.1 198.18.0.1 fc00::1 "
    "fdff::1 ::ffff:10.0.0.1 64:ff9b::a00:1 2002:a00:1::",
    Range.SPECIAL: "0.0.0.0 0.1.2.3 100.100.100.200 168.63.129.16 169.254.0.1 169.254.169.254 192.0.0.1 192.0.0.192 "
    "192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.175.48.1 198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1 "
    "240.0.0.1 255.255.255.255 :: ::2 ::8.8.8.8 ::ffff:0:808:808 ::ffff:169.254.169.254 ::ffff:168.63.129.16 "
    "64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001::1 2001:10::1 2001:20::1 2001:db8::1 2002:a9fe:a9fe::1 "
    "2620:4f:8000::1 3fff::1 4000::1 5f00::1 8000::1 fd00:ec2::254 fd20:ce::254 fe80::1 fec0::1 feff::1 ff02::1",
}


@pytest.mark.parametrize(("expected", "text"), [(kind, one) for kind, many in RANGES.items() for one in many.split()])
def test_each_range_is_known_by_our_own_table(expected: Range, text: str) -> None:
    assert range_of(ipaddress.ip_address(text)) is expected


@given(st.ip_addresses())
def test_only_what_the_registries_call_global_is_public(address: Any) -> None:
    """No address of which any Python says that it is not global; an IPv6 one may only stand for an IPv4 one."""
    real = ipv4_within(address)
    if range_of(address) is Range.PUBLIC:
        assert real.is_global
        assert not (real.is_private or real.is_loopback or real.is_link_local or real.is_multicast or real.is_reserved)


@given(st.ip_addresses(v=4))
def test_an_address_in_another_form_is_judged_as_itself(address: Any) -> None:
    number = int(address)
    for form in (0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80):
        assert range_of(ipaddress.IPv6Address(form)) is range_of(address)


@contextmanager
def answering(answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A server on loopback that answers this; its port, and what it was asked."""
    asked: list[bytes] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            asked.append(self.request.recv(65536))
            self.request.sendall(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield server.server_address[1], asked
        server.shutdown()


def send(url: str) -> int:
    return outbound_http.post(url, b"{}", {"Content-Type": "application/json"}, timeout_seconds=3, allow_private=True)


def test_a_redirect_is_not_followed() -> None:
    with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n") as (secret_port, asked_inside):
        location = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:%d/secret\r\ncontent-length: 0\r\n\r\n"
        with answering(location % secret_port) as (port, asked):
            assert send(f"http://127.0.0.1:{port}/hook?a=b") == 302
    assert asked[0].startswith(b"POST /hook?a=b HTTP/1.1\r\n")
    assert not asked_inside


HEAD = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def dripping(first: bytes, drop: bytes) -> Iterator[int]:
    """A server whose bytes all come in time, but whose answer never ends; its port."""

    class Drips(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.sendall(first)
                for _ in range(200):
                    self.request.sendall(drop)
                    time.sleep(0.05)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Drips) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("scheme", "first", "drop"),
    [
        ("http", b"", b"H"),
        ("http", HEAD, b"x"),
        ("http", HEAD, b"x: y\r\n"),
        ("http", b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ("http", HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        ("http", HEAD + b"content-length: 1000\r\n\r\n", b"x"),
        ("https", b"", b"\x16"),
    ],
)
def test_an_answer_that_drips_is_given_up(method: str, scheme: str, first: bytes, drop: bytes) -> None:
    with dripping(first, drop) as port:
        begun_at, url = time.monotonic(), f"{scheme}://127.0.0.1:{port}/"
        bounded: dict[str, Any] = {"timeout_seconds": 0.3, "allow_private": True}
        try:
            if method == "GET":
                outbound_http.get(url, {}, most_bytes=1_000_000, **bounded)
            elif b"\r\n\r\n" in first or outbound_http.post(url, b"{}", {}, **bounded):
                return  # the body of what a POST is answered is not read
            raise AssertionError("It never ended.")
        except (OSError, HTTPException):
            assert time.monotonic() - begun_at < 2


def test_a_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS that answers well at first and leads inside afterwards (rebinding)."""
    looked_up: list[str] = []
    original = socket.getaddrinfo

    def rebinding(host: Any, *arguments: Any, **options: Any) -> Any:
        if host == "rebinding.example":
            looked_up.append(host)
            host = "127.0.0.1" if len(looked_up) == 1 else "10.0.0.1"
        return original(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with answering(b"HTTP/1.1 204 No Content\r\n\r\n") as (port, asked):
        assert send(f"http://rebinding.example:{port}/") == 204
    assert len(looked_up) == 1
    assert f"Host: rebinding.example:{port}".encode() in asked[0]


def test_a_typed_model_server_is_checked_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """By then its name may lead elsewhere. One that stands in a file may lead anywhere."""
    original = socket.getaddrinfo

    def moved(host: Any, *arguments: Any, **options: Any) -> Any:
        return original("169.254.169.254" if str(host).endswith(".example") else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", moved)
    outbound_http.guard("http://typed.example/v1", allow_private=True)
    model = ModelInfo("typed", "m", "m", OLLAMA, base_url="http://typed.example:1/v1")
    with pytest.raises(ProviderError, match="special uses"):
        connect(model).stream(Request("m", "", (Message(Role.USER, "Hello"),))).run(lambda _: None)
    limit = OLLAMA.loaded_window
    assert limit is not None and "special uses" in str(limit(model.base_url, "m", ""))
    outbound_http.check_found("in-a-file.example", ["169.254.169.254"])


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://[::1]:1/v1", "http://[::ffff:127.0.0.1]:1/v1"])
def test_a_model_server_may_be_on_this_machine(url: str) -> None:
    check(url, allow_private=False, allow_loopback=True)


@pytest.mark.parametrize("url", [*NEVER, "http://10.0.0.1/", "http://[::ffff:10.0.0.1]/", "http://[64:ff9b::a00:1]/"])
def test_but_nowhere_else_inside(url: str) -> None:
    with pytest.raises(Refused):
        check(url, allow_private=False, allow_loopback=True)


def test_one_inner_address_among_several_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def two(host: str, port: int, **_: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("8.8.8.8", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", two)
    with pytest.raises(Refused):
        check("https://both.example/", allow_private=False)


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n") as (port, _):
        assert send(f"http://127.0.0.1:{port}/") == 200


@pytest.mark.django_db
def test_the_form_for_everybody_refuses_them_too(client: Client, settings: Any) -> None:
    client.force_login(UserFactory.create(is_staff=True, is_superuser=True))
    row = SiteSettings.objects.create()
    settings.PRIVATE_WEBHOOKS = False
    answer = client.post(reverse("save-site"), {"webhook_url": "http://127.0.0.1:6379/"}, follow=True)
    assert "lies on this machine" in answer.content.decode()
    row.refresh_from_db()
    assert row.webhook_url == ""


def called(port: int) -> Delivery:
    SiteSettings.objects.create(webhook_url=f"http://127.0.0.1:{port}/")
    row = Delivery.objects.create(channel="webhook", event="question.opened", body="{}")
    deliveries.deliver(row.pk)
    row.refresh_from_db()
    return row


@pytest.mark.django_db
def test_a_refused_webhook_is_given_up_and_harms_nobody(settings: Any) -> None:
    settings.PRIVATE_WEBHOOKS = False
    with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n") as (port, asked):
        row = called(port)
    assert not asked
    assert (row.due_at, "lies on this machine" in row.error) == (None, True)


@pytest.mark.django_db
def test_a_server_that_talks_nonsense_is_called_again(settings: Any) -> None:
    settings.PRIVATE_WEBHOOKS = True
    with answering(b"nonsense\r\n\r\n") as (port, asked):
        row = called(port)
    assert asked
    assert row.due_at is not None
    assert "BadStatusLine" in row.error
