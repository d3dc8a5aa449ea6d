"""One HTTP exchange with a model server, with time-outs, bounds, and a way to cut it off from another thread."""

import asyncio
import contextlib
import io
import os
import threading
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import aiohttp
import stamina

from dominds import budgets
from dominds.budgets import Budget
from dominds.llm.complaints import complaint_of_response, readable
from dominds.llm.errors import error_of
from dominds.llm.http import event_loop
from dominds.llm.http.endpoint import Endpoint, without_key
from dominds.llm.provider import (
    AnswerTooLarge,
    MalformedStream,
    NetworkFailed,
    ProviderError,
    ProviderTimeout,
    RequestRefused,
    StreamAborted,
    Unreachable,
)
from dominds.unreachable import plain_reason

Awaited = TypeVar("Awaited")

CONNECT_TRIES = 3  # retries here are only for connections; all other retries are the driver's
COMPLAINT_BYTES = 1_000_000  # the part that is read of an answer that refuses the request
DRAIN_SECONDS = 0.25  # the wait for the last bytes after the provider's end, so that the connection can be used again
TICK_SECONDS = 0.2  # between two checks for time-outs
PIECE_BYTES = 32_768  # the most of a body that is read at once
MOST_REST_SECONDS = 0.05  # the longest pause after a full piece

BROKEN = (aiohttp.ClientError, OSError)  # errors of the HTTP client


@dataclass(frozen=True, slots=True)
class Post:
    """A request with a JSON ``body``. ``has_files`` says that its newest message contains images or files."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    has_files: bool = False


class Exchange:
    """One exchange on the event loop of model calls: it sends a ``Post`` and hands out the body of the answer.

    ``abort`` may be called from any thread at any time, and also reaches a server that has not sent its headers yet.
    """

    def __init__(self, endpoint: Endpoint, post: Post) -> None:
        self._endpoint = endpoint
        self._post = post
        self._lock = threading.Lock()
        self._task: asyncio.Task[object] | None = None
        self._cut: ProviderError | None = None
        self._response: aiohttp.ClientResponse | None = None
        self._started_at = self._last_byte_at = self._last_event_at = time.monotonic()
        self._got_bytes = False
        self._received = 0  # bytes of the decompressed body
        self._is_flooded = False  # the newest chunk was full, so more has arrived than was read

    @property
    def body(self) -> bytes:
        return self._post.body

    def abort(self) -> None:
        self.cut(StreamAborted(f"The call to {self._endpoint.host} was stopped."))

    def cut(self, reason: ProviderError) -> None:
        """End the exchange with ``reason``, unless it has ended or was cut before."""
        with self._lock:
            if self._cut is not None:
                return
            self._cut = reason
            task = self._task
        if task is not None:
            event_loop.LOOP.call(task.cancel)  # does nothing to a task that is done

    def raise_if_cut(self) -> None:
        if self._cut is not None:
            raise self._cut

    def note_event(self) -> None:
        """Note that an event other than a comment arrived."""
        self._last_event_at = self._last_byte_at

    async def open(self) -> None:
        """Wait for the headers of a successful answer. Raises ``ProviderError``."""
        self._started_at = self._last_byte_at = self._last_event_at = time.monotonic()
        with self._lock:
            self.raise_if_cut()
            self._task = asyncio.current_task()
        WATCH.add(self)
        try:
            self._response = await self._unless_cut(self._connect())
            if not 200 <= self._response.status < 300:
                raise await self._unless_cut(self._refusal(self._response))
        except BROKEN as error:
            self.raise_if_cut()  # the cut is the cause of the broken connection
            raise self._failure_to_open(error) from None  # the original error may quote headers with the key

    async def _connect(self) -> aiohttp.ClientResponse:
        """Send the request. If no connection can be made, a few quick retries follow."""
        try:
            return await self._send_post()
        except aiohttp.ClientConnectorCertificateError:
            raise  # a retry would get the same certificate
        except aiohttp.ClientConnectorError:
            pass
        async for attempt in stamina.retry_context(
            on=aiohttp.ClientConnectorError,
            attempts=CONNECT_TRIES - 1,
            timeout=self._endpoint.timeouts.connect,
            wait_initial=0.1,
            wait_max=1.0,
        ):
            with attempt:
                return await self._send_post()
        raise AssertionError("stamina either returns or raises")

    async def _send_post(self) -> aiohttp.ClientResponse:
        """Post without following redirects, which would carry the key elsewhere."""
        return await event_loop.LOOP.session().post(
            self._post.url,
            data=io.BytesIO(self._post.body),  # sent in pieces: other answers are read between them
            headers=self._post.headers,
            allow_redirects=False,
            proxy=self._endpoint.proxy(),
            ssl=event_loop.trust(self._post.url),
            timeout=aiohttp.ClientTimeout(total=None, connect=self._endpoint.timeouts.connect),
        )

    async def _refusal(self, response: aiohttp.ClientResponse) -> ProviderError:
        body = b""
        while len(body) < COMPLAINT_BYTES and (chunk := await response.content.readany()):
            body += chunk
        endpoint = self._endpoint
        complaint = complaint_of_response(response.status, response.headers, body, has_files=self._post.has_files)
        error = error_of(complaint, endpoint.host)
        return error.reword(without_key(str(error), endpoint.key))

    def _failure_to_open(self, error: Exception) -> ProviderError:
        endpoint = self._endpoint
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return Unreachable(f"{endpoint.host} did not accept a connection within {endpoint.timeouts.connect:g} s.")
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            why = getattr(error.certificate_error, "verify_message", "") or readable(str(error.certificate_error))
            return RequestRefused(
                f"The certificate of {endpoint.host} is not trusted: {why}. Check its address (under Models, or "
                "in the server's configuration), or name the file of its authority in SSL_CERT_FILE and start again."
            )
        if isinstance(error, aiohttp.ClientConnectorError):
            reason = plain_reason(readable(reason_of(error.os_error)))
            return NetworkFailed(
                f"No connection to {endpoint.host}: {reason}. Check that the server runs, and its address (under "
                "Models, or in the server's configuration)."
            )
        if isinstance(error, aiohttp.ClientResponseError) and (bound := _header_bound(error)):
            return AnswerTooLarge(bound.sentence(f"{endpoint.host} answered with"))
        reason = plain_reason(without_key(readable(str(error)), endpoint.key)) or type(error).__name__
        return NetworkFailed(f"The connection to {endpoint.host} failed: {reason}.")

    async def chunk(self) -> bytes:
        """Return the bytes of the body that have arrived, or none at its regular end. Raises ``ProviderError``."""
        assert self._response is not None
        try:
            if self._is_flooded:
                # Bytes that have arrived are decompressed and returned without a turn of the event loop, so that a
                # compression bomb would hold up all other answers. The pause leaves them half of the time.
                await self._unless_cut(asyncio.sleep(min(MOST_REST_SECONDS, time.monotonic() - self._last_byte_at)))
            chunk = await self._unless_cut(self._response.content.read(PIECE_BYTES))
        except BROKEN as error:
            self.raise_if_cut()
            raise self._failure_to_read(error) from error
        self.raise_if_cut()
        if chunk:
            self._last_byte_at = time.monotonic()
            self._got_bytes = True
            self._received += len(chunk)
            self._is_flooded = len(chunk) == PIECE_BYTES
            self.keep_within(budgets.ANSWER_BYTES, self._received)
        return chunk

    def keep_within(self, bound: Budget, amount: int) -> None:
        """Raise ``AnswerTooLarge`` if the answer exceeds a bound."""
        if amount > bound.most:
            raise AnswerTooLarge(bound.sentence(f"{self._endpoint.host} answered with"))

    def _failure_to_read(self, error: Exception) -> ProviderError:
        reason = readable(getattr(error.__cause__, "message", "") or str(error)).rstrip(".") or type(error).__name__
        # The client has one class for a body that ends too early and for a connection that was reset.
        if isinstance(error, aiohttp.ClientPayloadError) and ConnectionResetError.__name__ not in str(error):
            return MalformedStream(f"{self._endpoint.host} broke off its answer: {reason}.")
        return NetworkFailed(f"The connection to {self._endpoint.host} failed during the answer: {reason}.")

    async def drain(self) -> None:
        """Read the few bytes after the provider's end, so that the connection can be used again."""
        assert self._response is not None
        if self._response.content.at_eof():
            return
        with contextlib.suppress(ProviderError, TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while await self.chunk():
                    pass

    def close(self) -> None:
        """Return the connection to its pool if the answer was read to its end, and close it otherwise."""
        WATCH.remove(self)
        if self._response is not None:
            self._response.close()

    async def _unless_cut(self, awaited: Awaitable[Awaited]) -> Awaited:
        try:
            return await awaited
        except asyncio.CancelledError:
            self.raise_if_cut()
            raise

    def expire_if_due(self, now: float) -> None:
        """Cut the exchange if one of its time-outs has passed. ``now`` is in seconds of the monotonic clock."""
        deadline, words = self._expires()
        if now >= deadline:
            self.cut(ProviderTimeout(f"{self._endpoint.host} {words}."))

    def _expires(self) -> tuple[float, str]:
        limits = self._endpoint.timeouts
        total = (self._started_at + limits.total, f"took more than {limits.total:g} s to answer")
        if not self._got_bytes:
            return min(total, (self._started_at + limits.first_byte, f"sent nothing for {limits.first_byte:g} s"))
        idle = (self._last_byte_at + limits.idle, f"stopped sending for {limits.idle:g} s in the middle of its answer")
        silent = (self._last_event_at + limits.comments, f"sent only keep-alive comments for {limits.comments:g} s")
        return min(total, idle, silent)


def reason_of(error: OSError) -> str:
    """Return the words of an error without the address, which our message names already."""
    return os.strerror(error.errno) if isinstance(error, ConnectionError) and error.errno else str(error)


def _header_bound(error: aiohttp.ClientResponseError) -> Budget | None:
    """Return the bound that an answer's headers exceeded, or None if the client gave up for another reason."""
    if "Too many headers" in error.message:
        return budgets.HEADERS
    return budgets.HEADER_BYTES if "Got more than" in error.message else None


class Watch:
    """A watch that cuts exchanges whose time is up.

    It runs on their event loop and checks at fixed intervals while there are exchanges, since resetting a timer at each
    chunk would cost more than the chunk.
    """

    def __init__(self) -> None:
        self._exchanges: set[Exchange] = set()
        self._is_watching = False

    def add(self, exchange: Exchange) -> None:
        self._exchanges.add(exchange)
        if not self._is_watching:
            self._is_watching = True
            self._expire()

    def remove(self, exchange: Exchange) -> None:
        self._exchanges.discard(exchange)

    def _expire(self) -> None:
        now = time.monotonic()
        for exchange in self._exchanges:
            exchange.expire_if_due(now)
        if self._exchanges:
            asyncio.get_running_loop().call_later(TICK_SECONDS, self._expire)
        else:
            self._is_watching = False


WATCH = Watch()


def _forget_after_fork() -> None:
    global WATCH  # noqa: PLW0603 - a forked child does not have its parent's calls
    WATCH = Watch()


os.register_at_fork(after_in_child=_forget_after_fork)
