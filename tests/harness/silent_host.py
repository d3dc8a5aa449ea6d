"""A host that swallows SYN: who connects to it is neither accepted nor refused."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def silent_port() -> Iterator[int]:
    """A port of 127.0.0.1 whose queue of connections is full: Linux drops every further SYN."""
    with ExitStack() as opened:
        busy = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):  # more than the queue takes; nobody accepts, so they stay
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(busy.getsockname())
        yield busy.getsockname()[1]
