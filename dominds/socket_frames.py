"""Daphne's limit on socket messages, for what comes in alone."""

import sys
from typing import Any


def lift_limit_on_what_we_send() -> None:
    """Let long turns reach their pages, while a browser may send no more than ``--websocket-max-message-size``.

    Autobahn holds both directions to that one number, and Daphne sets it always: an answer beyond it raised
    ``PayloadExceededError``, and its page got nothing any more. Does nothing under another server.
    """
    if "daphne.server" not in sys.modules:
        return
    from daphne.ws_protocol import WebSocketProtocol

    limited = WebSocketProtocol.sendMessage

    def send_message(self: Any, *arguments: Any, **options: Any) -> None:
        limit, self.maxMessagePayloadSize = self.maxMessagePayloadSize, 0
        try:
            limited(self, *arguments, **options)
        finally:
            self.maxMessagePayloadSize = limit

    WebSocketProtocol.sendMessage = send_message
