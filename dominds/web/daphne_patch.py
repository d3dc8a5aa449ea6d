"""Patches of Daphne: socket messages of any size are sent at once, and requests are limited in time and size."""

import json
import sys
import time
from typing import Any

from dominds import budgets

# A request, head and body, has so many seconds to arrive, and one more for each BYTES_PER_SECOND bytes: a long body may
# come over a slow line, but not at a byte a second.
RECEIVE_SECONDS = budgets.RECEIVE_SECONDS.most
BYTES_PER_SECOND = 32_768
IDLE_SECONDS = 60  # between two requests of a connection, so that proxies can reuse it; Twisted's time before the first
REFUSAL = (
    b"HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: "
    b"%d\r\n\r\n"
)


def patch_sending() -> None:
    """Send socket messages of any length, at once where the line is free. Under another server this does nothing.

    Autobahn limits both directions by one number, ``--websocket-max-message-size``, which Daphne always sets. A longer
    answer raised ``PayloadExceededError``, and its page received nothing more. The limit now holds only for messages of
    browsers. A message to a page that has closed its socket is dropped, where Autobahn would raise.
    """
    if "daphne.server" not in sys.modules:
        return
    from daphne.ws_protocol import WebSocketProtocol
    from twisted.internet.tcp import Server

    limited = WebSocketProtocol.sendMessage

    def send_message(self: Any, *arguments: Any, **options: Any) -> None:
        if self.state != self.STATE_OPEN:
            return
        limit, self.maxMessagePayloadSize = self.maxMessagePayloadSize, 0
        transport = self.transport
        at_once = type(transport) is Server and not transport.dataBuffer and not transport._tempDataBuffer
        if at_once:
            transport.startWriting = transport.stopWriting = _wait
        try:
            limited(self, *arguments, **options)
            if at_once and transport.connected:
                transport.doWrite()
        finally:
            self.maxMessagePayloadSize = limit
            if at_once:
                del transport.startWriting, transport.stopWriting
                if transport.connected and (transport.dataBuffer or transport._tempDataBuffer):
                    transport.startWriting()  # the reactor sends the rest, or notices that the connection is lost

    WebSocketProtocol.sendMessage = send_message


def _wait() -> None:
    """Do nothing, instead of a turn of the reactor, which costs two system calls and a turn of the loop per frame."""


def patch_receiving() -> None:
    """End connections whose request does not arrive, or is too long. Under another server this does nothing.

    Twisted's own time-out restarts with every byte, and Twisted reads a body of any length before the application runs.
    """
    if "daphne.server" not in sys.modules:
        return
    from daphne import http_protocol
    from twisted.web import http

    _limit_seconds(http.HTTPChannel)
    _limit_bytes(http_protocol.WebRequest)


def _limit_seconds(channel: Any) -> None:
    receive, complete = channel.dataReceived, channel.allContentReceived

    def data_received(self: Any, data: bytes) -> None:
        receive(self, data)
        if self._handlingRequest:
            return
        now = time.monotonic()
        begun_at, received = getattr(self, "_request_under_way", None) or (now, 0)
        self._request_under_way = begun_at, received + len(data)
        left = begun_at + RECEIVE_SECONDS + (received + len(data)) / BYTES_PER_SECOND - now
        self.setTimeout(max(0.0, min(left, RECEIVE_SECONDS)))

    def all_content_received(self: Any) -> None:
        if getattr(self, "_is_refused", False):
            return
        self._request_under_way = None
        self.setTimeout(IDLE_SECONDS)  # takes effect once the answer is sent
        complete(self)

    channel.dataReceived, channel.allContentReceived = data_received, all_content_received


def _limit_bytes(request: Any) -> None:
    take_length, take_piece = request.gotLength, request.handleContentChunk

    def got_length(self: Any, length: int | None) -> None:
        too_long = length is not None and length > budgets.BODY_BYTES.most
        take_length(self, 0 if too_long else length)
        self._body_bytes = 0
        if too_long:
            _refuse(self)

    def content_received(self: Any, data: bytes) -> None:
        self._body_bytes += len(data)
        if self._body_bytes <= budgets.BODY_BYTES.most:
            take_piece(self, data)
        elif self._body_bytes - len(data) <= budgets.BODY_BYTES.most:
            _refuse(self)

    request.gotLength, request.handleContentChunk = got_length, content_received


def _refuse(request: Any) -> None:
    """Answer with the reason and close the connection, even while the request still arrives."""
    request._body_bytes, request.channel._is_refused = 2 * budgets.BODY_BYTES.most, True
    body = json.dumps(_complaint(getattr(request.channel, "_path", b""))).encode()
    request.channel.transport.write(REFUSAL % len(body) + body)
    request.channel.loseConnection()


def _complaint(path: bytes) -> dict[str, Any]:
    """Return an error in a form that clients of both protocols of ``/v1`` understand, or in the product's own."""
    message = budgets.BODY_BYTES.sentence("This request has")
    if not path.startswith(b"/v1/"):
        return {"error": {"code": "message_too_large", "message": message}}
    kind = "request_too_large" if path.startswith(b"/v1/messages") else "invalid_request_error"
    return {"type": "error", "error": {"type": kind, "message": message, "param": None, "code": "request_too_large"}}
