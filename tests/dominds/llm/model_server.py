"""A model server on this machine that plays answers byte by byte, and remembers what it was asked."""

import json
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Play = Callable[["Connection"], None]


@dataclass(frozen=True)
class Asked:
    """One request that arrived."""

    path: str
    headers: dict[str, str]
    body: Any
    connection: int


class Connection:
    """The server's end of one connection, with helpers for well-formed and broken answers."""

    def __init__(self, connection: socket.socket, number: int) -> None:
        self.socket = connection
        self.number = number
        self._received = b""

    def read_request(self) -> Asked | None:
        while b"\r\n\r\n" not in self._received:
            if not self._receive():
                return None
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        while len(self._received) < length:
            if not self._receive():
                return None
        body, self._received = self._received[:length], self._received[length:]
        return Asked(first.split(" ")[1], headers, json.loads(body) if body else None, self.number)

    def _receive(self) -> bool:
        piece = self.socket.recv(65536)
        self._received += piece
        return bool(piece)

    def send(self, content: bytes) -> None:
        self.socket.sendall(content)

    def start_stream(self) -> None:
        self.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")

    def chunk(self, content: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(content), content))

    def end_stream(self) -> None:
        self.send(b"0\r\n\r\n")

    def reset(self) -> None:
        """Drop the connection with RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.socket.close()

    def is_closed_within(self, seconds: float) -> bool:
        """Whether the client hangs up in time."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True


class ModelServer:
    """Plays ``plays`` one after another; the last one repeats."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.asked: list[Asked] = []
        self.plays: list[Play] = []
        self.failures: list[BaseException] = []
        self._count = 0

    def serve(self) -> socketserver.ThreadingTCPServer:
        owner = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                owner._count += 1
                owner.talk(Connection(self.request, owner._count))

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 512

        self._server = Server(("127.0.0.1", 0), Handler)
        if self._tls is not None:
            self._server.socket = self._tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self._server

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._server.server_address[1]}"

    def talk(self, connection: Connection) -> None:
        try:
            while (asked := connection.read_request()) is not None:
                self.asked.append(asked)
                play = self.plays.pop(0) if len(self.plays) > 1 else self.plays[0]
                play(connection)
        except OSError:
            pass  # the client left, which many tests want

    def will(self, *plays: Play) -> None:
        self.plays = list(plays)


@contextmanager
def running_server(tls: ssl.SSLContext | None = None) -> Iterator[ModelServer]:
    server = ModelServer(tls)
    running = server.serve()
    try:
        yield server
    finally:
        running.shutdown()
        running.server_close()


# Plays


def stream_of(*chunks: bytes, pause_seconds: float = 0.0) -> Play:
    """An HTTP 200 event stream that ends regularly."""

    def play(connection: Connection) -> None:
        connection.start_stream()
        for chunk in chunks:
            connection.chunk(chunk)
            time.sleep(pause_seconds)
        connection.end_stream()

    return play


def cut_stream_of(*chunks: bytes, with_reset: bool = False) -> Play:
    """An event stream whose connection breaks before its regular end."""

    def play(connection: Connection) -> None:
        connection.start_stream()
        for chunk in chunks:
            connection.chunk(chunk)
        if with_reset:
            time.sleep(0.05)
            connection.reset()
        else:
            connection.socket.shutdown(socket.SHUT_RDWR)

    return play


def plain(status: int, body: bytes | str, content_type: str = "application/json", **headers: str) -> Play:
    """An answer that is no stream."""
    content = body.encode() if isinstance(body, str) else body
    lines = {"content-type": content_type, "content-length": str(len(content)), **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())

    def play(connection: Connection) -> None:
        connection.send(f"HTTP/1.1 {status} Because\r\n{head}\r\n".encode() + content)

    return play


def data(*payloads: Any) -> bytes:
    """Events without names, as chat completions use them."""
    return b"".join(b"data: " + (p if isinstance(p, bytes) else json.dumps(p).encode()) + b"\n\n" for p in payloads)


def named(payloads: Iterable[dict[str, Any]]) -> bytes:
    """Events named by their type, as Anthropic and the Responses API use them."""
    return b"".join(f"event: {p['type']}\ndata: {json.dumps(p)}\n\n".encode() for p in payloads)
