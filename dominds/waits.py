"""Waiting for servers outside without holding resources that other threads need.

Code announces a wait by ``begin``. Functions that were registered by ``before_each`` then release what the calling
thread holds, or complain. ``dominds.db.hand_back`` registers one for database connections. This module does not import
Django.
"""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

KEEPALIVE_IDLE, KEEPALIVE_EVERY, KEEPALIVE_TRIES = 4, 2, 2  # seconds, seconds, times: a dead peer is noticed after 8 s
UNANSWERED_MILLISECONDS = 8_000  # for which sent data may stay unacknowledged

_hand_back: list[Callable[[str], None]] = []


def before_each(hand_back: Callable[[str], None]) -> None:
    """Register a function that is called before each wait, on the waiting thread, with the name of the server."""
    if hand_back not in _hand_back:
        _hand_back.append(hand_back)


def begin(what: str) -> None:
    """Announce that this thread will now wait for ``what``, a server outside."""
    for hand_back in _hand_back:
        hand_back(what)


class Deadline:
    """A deadline that shuts one connection down when its time is up, so that its reader finds the end of the stream.

    It works even while bytes arrive slowly, and for a socket that is wrapped for TLS later.
    """

    def __init__(self, seconds: float, connected: socket.socket) -> None:
        self.has_passed = False
        self._socket = socket.socket(fileno=os.dup(connected.fileno()))  # a copy, since TLS takes over the original
        self._timer = threading.Timer(max(0.0, seconds), self._cut)
        self._timer.daemon = True
        self._timer.start()

    def _cut(self) -> None:
        self.has_passed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        self._timer.cancel()
        self._timer.join()  # it may be cutting
        self._socket.close()


@contextmanager
def within(seconds: float, connected: socket.socket) -> Iterator[None]:
    """Cut the connection once the block has taken so long, and raise ``TimeoutError``, whatever the block has read."""
    deadline = Deadline(seconds, connected)
    try:
        yield
    except Exception as error:
        if deadline.has_passed:
            raise TimeoutError("timed out") from error
        raise
    finally:
        deadline.end()
    if deadline.has_passed:
        raise TimeoutError("timed out")


def keepalive_options() -> dict[int, int]:
    """Return the socket options by which TCP notices within 10 seconds that a peer, or a firewall's entry, is gone."""
    wanted = {
        "TCP_KEEPIDLE": KEEPALIVE_IDLE,
        "TCP_KEEPINTVL": KEEPALIVE_EVERY,
        "TCP_KEEPCNT": KEEPALIVE_TRIES,
        "TCP_USER_TIMEOUT": UNANSWERED_MILLISECONDS,
    }
    return {getattr(socket, name): value for name, value in wanted.items() if hasattr(socket, name)}
