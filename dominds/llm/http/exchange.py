"""One HTTP exchange with a model server: watched by one clock, cut off at will."""

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

CONNECT_TRIES = 3  # tried again only while nothing was sent; all other retries are the driver's
COMPLAINT_BYTES = 1_000_000  # read of an answer that refuses the request
DRAIN_SECONDS = 0.25  # after the provider's end, for the last bytes that let the connection be used again
TICK_SECONDS = 0.2
PIECE_BYTES = 32_768  # the part of a body that is taken at once
MOST_REST_SECONDS = 0.05  # between two full pieces

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
        self._received = 0  # bytes of the body, unpacked
        self._is_flooded = False  # the newest chunk was as long as one may be: more has come than was read

    @property
    def body(self) -> bytes:
        return self._post.body

    def abort(self) -> None:
        self.cut(StreamAborted(f"The call to {self._endpoint.host} was stopped."))

    def cut(self, reason: ProviderError) -> None:
        """End the exchange with ``reason``. The first reason stays, and an exchange that has ended is left alone."""
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
        """Wait for the headers of a successful answer. Raises the error of the family, or ``StreamAborted``."""
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
            self.raise_if_cut()  # then what became of the connection is no news
            raise self._failure_to_open(error) from None  # the text of the original error may quote headers

    async def _connect(self) -> aiohttp.ClientResponse:
        """Send the request, with a few quick retries where no connection was made."""
        try:
            return await self._send_post()
        except aiohttp.ClientConnectorCertificateError:
            raise  # it will be the same one
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
        result = error_of(complaint, endpoint.host)
        return result.reword(without_key(str(result), endpoint.key))

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
        """Return what has arrived of the body, or an empty text at its regular end. Any other end raises an error."""
        assert self._response is not None
        try:
            if self._is_flooded:
                # What has arrived already is handed out without a turn of the loop, and unpacked on the way: a bomb
                # would keep everybody else's answers waiting. It gets half of the time instead.
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
        """Raise ``AnswerTooLarge`` if the answer goes over a bound. The caller closes the exchange, unread as it is."""
        if amount > bound.most:
            raise AnswerTooLarge(bound.sentence(f"{self._endpoint.host} answered with"))

    def _failure_to_read(self, error: Exception) -> ProviderError:
        reason = readable(getattr(error.__cause__, "message", "") or str(error)).rstrip(".") or type(error).__name__
        # One class stands for a body that ends too early and of a reset connection.
        if isinstance(error, aiohttp.ClientPayloadError) and ConnectionResetError.__name__ not in str(error):
            return MalformedStream(f"{self._endpoint.host} broke off its answer: {reason}.")
        return NetworkFailed(f"The connection to {self._endpoint.host} failed during the answer: {reason}.")

    async def drain(self) -> None:
        """Read the few bytes behind the provider's end, so that the connection can be used again."""
        assert self._response is not None
        if self._response.content.at_eof():
            return
        with contextlib.suppress(ProviderError, TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while await self.chunk():
                    pass

    def close(self) -> None:
        """Give the connection back to its pool if the answer was read to its end, and close it otherwise."""
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
        """Cut the exchange when its time, on the monotonic clock, is up."""
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
    """Return a refused connection's words without the address, which the message already names."""
    return os.strerror(error.errno) if isinstance(error, ConnectionError) and error.errno else str(error)


def _header_bound(error: aiohttp.ClientResponseError) -> Budget | None:
    """Return the bound that an answer's headers exceeded, if the client gave up for this reason."""
    if "Too many headers" in error.message:
        return budgets.HEADERS
    return budgets.HEADER_BYTES if "Got more than" in error.message else None


class Watch:
    """A watch that cuts exchanges whose time is up.

    It lives on their event loop, and checks at fixed intervals as long as there are exchanges: resetting a timer at
    each chunk would cost more than the chunk.
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
    global WATCH  # noqa: PLW0603 - a forked child has not its parent's calls
    WATCH = Watch()


os.register_at_fork(after_in_child=_forget_after_fork)
