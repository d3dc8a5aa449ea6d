"""What all doubles share: a real HTTP server on loopback, streams, and a record of all that was asked."""

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from tests.doubles import images
from tests.doubles.brains import Brain, Prompt, Reply, echo
from tests.doubles.counting import PromptCache, Unit, canonical, count_text
from tests.doubles.rules import Refusal, RequestRefused
from tests.doubles.streams import BreaksOff

UsageMode = Literal["whole", "last", "sums", "zero", "missing"]
"""How usage is reported: as the provider does, in the last chunk alone and unasked,
without its details (chat completions), as zeros, not at all."""


@dataclass
class Exchange:
    """One request as it arrived, and what became of it."""

    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Any
    digest: str = ""  # SHA-256 of the bytes of the body
    refusal: Refusal | None = None
    prompt: Prompt | None = None
    reply: Reply | None = None
    usage: Any = None  # as it was reported, ``None`` where it was not
    is_cut_off: bool = False  # the client left before the end
    is_sent: bool = False  # to its end
    is_full: bool = False  # the answer filled the window, and was cut there
    crash: BaseException | None = None

    @property
    def account(self) -> str:
        """Who asks: the key, in whichever header it came."""
        key = self.headers.get("x-api-key") or self.headers.get("x-goog-api-key")
        return key or self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass(frozen=True)
class Answer:
    """``events`` are the bytes of a stream; without them ``body`` is sent as JSON."""

    body: Any = None
    status: int = 200
    events: Iterable[bytes] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Instead(Exception):
    """Raised with the answer that a brain gives in place of its dialect's."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


Route = Callable[[Exchange], Answer]


class Double:
    """A server that is up inside a ``with``. Dialects add ``routes`` and say how they word a refusal.

    ``weight`` multiplies the tokens of prompts, so that a short dialog can fill a long window; limits, refusals and
    reports all see the product.
    """

    def __init__(self, brain: Brain = echo, *, model: str, usage: UsageMode = "whole", weight: float = 1) -> None:
        self.brain, self.model, self.usage, self.weight = brain, model, usage, weight
        self.requests: list[Exchange] = []
        self.cache = PromptCache()
        self.routes: dict[tuple[str, str], Route] = {}
        self.lock = threading.Lock()
        self._serial = 0

    # -- what a test reads

    @property
    def refusals(self) -> list[Refusal]:
        return [request.refusal for request in self.requests if request.refusal is not None]

    @property
    def bodies(self) -> list[Any]:
        """The bodies of all that was posted, in order."""
        return [request.body for request in self.requests if request.method == "POST"]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    # -- for dialects

    def refused(self, refusal: Refusal, record: Exchange) -> Answer:
        """OpenAI's dress; dialects with another one override this."""
        error = {"message": refusal.message, "type": refusal.type, "param": refusal.param, "code": refusal.code}
        return Answer({"error": {**error, **refusal.more}}, refusal.status)

    def next_id(self, prefix: str) -> str:
        with self.lock:
            self._serial += 1
            return f"{prefix}{self._serial:024d}"

    def unit(self, content: Any, is_breakpoint: bool = False) -> Unit:
        plain, image_tokens = images.parted(content)
        text = canonical(plain)
        return Unit(text, round((count_text(text) + image_tokens) * self.weight), is_breakpoint)

    def think(self, record: Exchange, prompt: Prompt) -> Reply:
        """Ask the brain. What it answers in its own words is raised."""
        record.prompt = prompt
        reply = record.reply = self.brain(prompt)
        time.sleep(reply.pause_seconds)
        if reply.error is not None:
            status, body = reply.error
            raise Instead(Answer(body, status, headers=reply.headers))
        return reply

    # -- serving

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), self)
        serve = self._server.serve_forever
        threading.Thread(target=serve, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._server.hang_up()
        crashes = [request.crash for request in self.requests if request.crash is not None]
        if crashes and error is None:
            raise crashes[0]

    def answer(self, record: Exchange) -> Answer:
        route = self.routes.get((record.method, urlsplit(record.path).path))
        if route is None:
            words = f"Not found: {record.method} {record.path}"
            return self._note(record, Refusal("path", 404, words, "not_found_error"))
        if record.method == "POST" and not isinstance(record.body, dict):
            return self._note(record, Refusal("json", 400, "The body of the request is not valid JSON."))
        try:
            return route(record)
        except RequestRefused as refused:
            return self._note(record, refused.refusal)
        except Instead as instead:
            return instead.answer

    def _note(self, record: Exchange, refusal: Refusal) -> Answer:
        record.refusal = refusal
        return self.refused(refusal, record)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], double: Double) -> None:
        self.double = double
        self.connections: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def hang_up(self) -> None:
        """Close what clients keep open: a double that is down answers nobody."""
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients come and go; any other fault is told as usual."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        super().finish()

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Say nothing: a test reads ``requests``."""

    def _serve(self) -> None:
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        record = Exchange(self.command, self.path, headers, _json_of(content), sha256(content).hexdigest())
        double = self.server.double
        with double.lock:
            double.requests.append(record)
        try:
            self._send(double.answer(record))
            record.is_sent = True
        except (BreaksOff, ConnectionError) as end:
            record.is_cut_off = isinstance(end, ConnectionError)
            self.close_connection = True
        except Exception as crash:  # noqa: BLE001 - a fault of the double, raised again when it is closed
            record.crash = crash
            self.close_connection = True

    def _send(self, answer: Answer) -> None:
        if answer.events is None:
            content = json.dumps(answer.body).encode()
            self._head(answer, "application/json", ("content-length", str(len(content))))
            self.wfile.write(content)
            return
        self._head(answer, "text/event-stream", ("transfer-encoding", "chunked"))
        for event in answer.events:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")

    def _head(self, answer: Answer, kind: str, length: tuple[str, str]) -> None:
        self.send_response(answer.status)
        for name, value in (("content-type", kind), length, *answer.headers.items()):
            self.send_header(name, value)
        self.end_headers()


def _json_of(content: bytes) -> Any:
    try:
        return json.loads(content) if content else None
    except ValueError:
        return None
