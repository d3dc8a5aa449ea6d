"""Requests that never arrive, and those that are too long, against Daphne itself."""

import json
import os
import socket
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dominds import budgets
from dominds.local.embedded_redis import free_port

pytestmark = pytest.mark.server
ROOT = Path(__file__).resolve().parents[3]
RECEIVE_SECONDS, BODY_BYTES = 2, 300_000


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    port = free_port()
    bounds = {budgets.RECEIVE_SECONDS.setting: str(RECEIVE_SECONDS), budgets.BODY_BYTES.setting: str(BODY_BYTES)}
    command = [sys.executable, "-m", "daphne", "-v", "0", "-p", str(port), "tests.dominds.web.plain_app:application"]
    log = (tmp_path_factory.mktemp("daphne") / "log").open("w")
    with log, subprocess.Popen(command, cwd=ROOT, env={**os.environ, **bounds}, stdout=log, stderr=log) as process:
        deadline = time.monotonic() + 30
        while True:
            try:
                connect(port).close()
                break
            except OSError:
                assert time.monotonic() < deadline, Path(log.name).read_text()
                time.sleep(0.1)
        yield port
        process.terminate()


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 10)
    connection.settimeout(10)
    return connection


def seconds_until_closed(connection: socket.socket, begun_at: float) -> float:
    while connection.recv(65_536):
        pass
    return time.monotonic() - begun_at


@pytest.mark.parametrize(
    "first",
    [b"GET /", b"GET / HTTP/1.1\r\nHost: x\r\n", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc"],
)
def test_a_request_that_stops_half_way_is_ended(port: int, first: bytes) -> None:
    begun_at = time.monotonic()
    with connect(port) as connection:
        connection.sendall(first)
        assert RECEIVE_SECONDS - 0.5 < seconds_until_closed(connection, begun_at) < RECEIVE_SECONDS + 3


def test_a_request_that_drips_is_ended_as_well(port: int) -> None:
    begun_at = time.monotonic()
    with connect(port) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n")
        connection.settimeout(0.2)
        while time.monotonic() - begun_at < 10:
            try:
                connection.sendall(b"a")
                if not connection.recv(100):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
    assert RECEIVE_SECONDS - 0.5 < time.monotonic() - begun_at < RECEIVE_SECONDS + 3


def test_a_hundred_half_open_requests_leave_room_for_the_next(port: int) -> None:
    with ExitStack() as opened:
        begun_at = time.monotonic()
        waiting = [opened.enter_context(connect(port)) for _ in range(100)]
        for connection in waiting:
            connection.sendall(b"GET / HTTP/1.1\r\n")
        for connection in waiting:
            assert seconds_until_closed(connection, begun_at) < RECEIVE_SECONDS + 5
    assert answered(port, b"abc") == (200, b"3")


def test_a_connection_stays_for_the_next_request(port: int) -> None:
    with connect(port) as connection:
        for _ in range(2):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(65_536).endswith(b"\r\n\r\n0")
            time.sleep(RECEIVE_SECONDS + 1)


def test_messages_to_a_page_that_says_goodbye_raise_nothing(port: int) -> None:
    with connect(port) as page:
        page.sendall(
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: %s\r\n\r\n" % b64encode(16 * b"a")
        )
        assert page.recv(12) == b"HTTP/1.1 101"
        time.sleep(0.3)
        page.sendall(bytes([0x88, 0x80, 0, 0, 0, 0]))  # goodbye, which stands in the way behind what is not read
        time.sleep(0.5)
        assert get(port, b"/failures") == b"0"


def get(port: int, path: bytes) -> bytes:
    with connect(port) as connection:
        connection.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path)
        return connection.recv(65_536).partition(b"\r\n\r\n")[2]


def answered(port: int, body: bytes, *, chunked: bool = False) -> tuple[int, bytes]:
    kind = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
    with connect(port) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n" % kind)
        received = b""
        try:
            for start in range(0, len(body), 10_000):
                piece = body[start : start + 10_000]
                connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            if chunked:
                connection.sendall(b"0\r\n\r\n")
        except OSError:
            pass  # it was refused before its end
        try:
            while not (received.startswith(b"HTTP") and b"\r\n\r\n" in received and received.split(b"\r\n\r\n")[1]):
                received += connection.recv(65_536)
        except OSError:
            pass
    head, _, text = received.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), text


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_is_taken_up_to_its_bound(port: int, chunked: bool) -> None:
    assert answered(port, b"a" * BODY_BYTES, chunked=chunked) == (200, str(BODY_BYTES).encode())
    status, text = answered(port, b"a" * (BODY_BYTES + 1), chunked=chunked)
    assert status == 413
    says = "This request has more than 300,000 bytes in one request. DOMINDS_BODY_BYTES sets this limit."
    assert json.loads(text) == {"error": {"code": "message_too_large", "message": says}}
