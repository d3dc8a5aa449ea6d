"""The event loop on which a process reads all answers of models. One thread for each would wake up at every token."""

import asyncio
import atexit
import os
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import aiohttp
import aiohttp.abc

from dominds import budgets, outbound_http, waits

Answer = TypeVar("Answer")

MAX_CONNECTIONS = 2000
KEEPALIVE_SECONDS = 30.0
NAME_LOOKUPS = 32  # DNS look-ups at once, so that one that hangs holds up no others
CLOSING_SECONDS = 1.0


class _Resolver(aiohttp.ThreadedResolver):
    """A resolver that applies the rules for typed addresses to names that somebody typed into a page."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[aiohttp.abc.ResolveResult]:
        found = await super().resolve(host, port, family)
        try:
            outbound_http.check_found(host, [entry["host"] for entry in found])
        except outbound_http.Refused as refused:
            raise OSError(str(refused).rstrip(".")) from refused
        return found


class EventLoop:
    """An event loop in a thread of its own, which starts with the first call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: aiohttp.ClientSession | None = None

    def run(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        """Run the coroutine and wait for its result or error. The caller must hold no database connection."""
        try:
            waits.begin(f"a server ({getattr(coroutine, '__qualname__', coroutine)})")
        except BaseException:
            coroutine.close()
            raise
        return asyncio.run_coroutine_threadsafe(coroutine, self._start()).result()

    def call(self, function: Callable[[], object]) -> None:
        """Schedule a call of the function on the loop."""
        self._start().call_soon_threadsafe(function)

    def session(self) -> aiohttp.ClientSession:
        """Return the pool of connections, which all calls share. Call this only on the loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=MAX_CONNECTIONS, keepalive_timeout=KEEPALIVE_SECONDS, resolver=_Resolver()
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                max_line_size=budgets.HEADER_BYTES.most,
                max_field_size=budgets.HEADER_BYTES.most,
                max_headers=budgets.HEADERS.most,
            )
        return self._session

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop.set_default_executor(ThreadPoolExecutor(NAME_LOOKUPS, thread_name_prefix="names"))
                threading.Thread(target=self._loop.run_forever, name="model-calls", daemon=True).start()
                atexit.register(self._close)
            return self._loop

    def _close(self) -> None:
        """Close the connections before the process ends."""
        if self._loop is not None and self._session is not None:
            closing = asyncio.run_coroutine_threadsafe(self._session.close(), self._loop)
            with suppress(TimeoutError):
                closing.result(CLOSING_SECONDS)


def trust(url: str) -> ssl.SSLContext | bool:
    """Return the certificates to trust at this address."""
    return _default_context() if url.startswith("https:") else True


@cache
def _default_context() -> ssl.SSLContext:
    import httpx2  # loading it takes a tenth of a second

    return httpx2.create_ssl_context()


LOOP = EventLoop()


def _forget_after_fork() -> None:
    global LOOP  # noqa: PLW0603 - a forked child has neither the parent's thread nor its connections
    LOOP = EventLoop()


os.register_at_fork(after_in_child=_forget_after_fork)
