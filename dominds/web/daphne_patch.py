"""What Daphne does with a socket message that we send: no limit on its size, and no detour on its way."""

import sys
from typing import Any


def patch_sending() -> None:
    """Let long turns reach their pages, and short ones at once. Does nothing under another server.

    Autobahn holds both directions to one number, ``--websocket-max-message-size``, and Daphne sets it always: an answer beyond it
    raised ``PayloadExceededError``, and its page got nothing any more. A browser may send no more than that, as before.
    """
    if "daphne.server" not in sys.modules:
        return
    from daphne.ws_protocol import WebSocketProtocol
    from twisted.internet.tcp import Server

    limited = WebSocketProtocol.sendMessage

    def send_message(self: Any, *arguments: Any, **options: Any) -> None:
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
                    transport.startWriting()  # the rest, or the loss of the connection, in the reactor's own way

    WebSocketProtocol.sendMessage = send_message


def _wait() -> None:
    """In place of asking the reactor for a turn: for each frame that is two system calls and one more round of the loop."""
