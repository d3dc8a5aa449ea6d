"""One HTTP exchange with a model server: watched by one clock, cut off at will."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import httpcore2
import httpx2

from dominds.llm.provider import (
    MalformedStream,
    NetworkFailed,
    ProviderError,
    ProviderTimeout,
    StreamAborted,
)

Made = TypeVar("Made", bound=httpcore2.NetworkStream)

DRAIN_SECONDS = 0.25  # after the provider's end, for the last bytes that let the connection be used again
TICK_SECONDS = 0.2
GATHER_SECONDS_PER_CALL = 0.0003
MIN_GATHER_SECONDS = 0.01
LONGEST_GATHER_SECONDS = 0.08


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a model call may stay silent or last, in seconds.

    ``first_byte`` runs from the sending to the first byte of the answer's body, because servers exist that send
    headers at once and then read the prompt for a minute. ``idle`` is the pause between bytes; keep-alive comments
    count as bytes, but not beyond ``comments``, the pause between events.
    """

    connect: float = 10.0
    first_byte: float = 120.0
    idle: float = 60.0
    comments: float = 300.0
    total: float = 1800.0


DEFAULT_TIMEOUTS = Timeouts()


class Exchange:
    """Runs ``open_response`` and hands out the body's chunks. ``abort`` works from any thread at any time.

    A blocked ``recv`` is woken by shutting down its socket; closing would not wake it. The socket is known from the
    moment it connects, so a server that is still silent over its headers hears of the abort as well.
    """

    def __init__(self, open_response: Callable[[], httpx2.Response], provider: str, timeouts: Timeouts) -> None:
        self._open_response = open_response
        self._provider = provider
        self._timeouts = timeouts
        self._lock = threading.Lock()
        self._connecting: Future[Any] | None = None
        self._socket: socket.socket | None = None
        self._cut: ProviderError | None = None
        self._is_over = False
        self._response: httpx2.Response | None = None
        self._started_at = self._last_byte_at = self._last_event_at = time.monotonic()
        self._got_bytes = False
        self._drain_until: float | None = None

    def abort(self) -> None:
        self.cut(StreamAborted(f"The call to {self._provider} was stopped."))

    def cut(self, reason: ProviderError) -> None:
        """End the exchange with ``reason``, unless it is over already. The first reason stays."""
        with self._lock:
            if self._is_over or self._cut is not None:
                return
            self._cut = reason
            _shut_down(self._socket)
            if self._connecting is not None:
                self._connecting.cancel()

    @property
    def is_cut(self) -> bool:
        return self._cut is not None

    def raise_if_cut(self) -> None:
        if self._cut is not None:
            raise self._cut

    def note_socket(self, found: socket.socket) -> None:
        """Remember which socket this exchange talks over; called by the opening thread."""
        with self._lock:
            if self._is_over or self._cut is not None:
                _shut_down(found)
            else:
                self._socket = found

    def note_event(self) -> None:
        """An event that was no comment arrived."""
        self._last_event_at = self._last_byte_at

    def open(self) -> httpx2.Response:
        """Wait for the headers of a successful answer. Raises the error of the family, or ``StreamAborted``."""
        self._started_at = self._last_byte_at = self._last_event_at = time.monotonic()
        self.raise_if_cut()
        WATCH.add(self)
        _opening.exchange = self
        try:
            self._response = self._open_response()
        except ProviderError:
            self.raise_if_cut()  # then what became of its socket is no news
            raise
        finally:
            _opening.exchange = None
        self.raise_if_cut()
        return self._response

    def connected(self, connect: Callable[[], Made]) -> Made:
        """What ``connect`` makes, in a thread of its own: a name look-up and a connection under way cannot be ended, but
        left. Raises what it raises, or at once when the exchange is cut."""
        made: Future[Made] = Future()
        with self._lock:
            self._connecting = made
            if self._cut is not None:
                raise self._cut
        threading.Thread(target=_fulfil, args=(made, connect), name="model-connect", daemon=True).start()
        return made.result()

    def chunks(self) -> Iterator[bytes]:
        """The body as it arrives. Ends at its regular end only; everything else raises."""
        assert self._response is not None
        try:
            for chunk in _body_of(self._response):
                self.raise_if_cut()
                self._last_byte_at = time.monotonic()
                self._got_bytes = True
                yield chunk
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            self.raise_if_cut()
            raise self._broken(error) from error
        self.raise_if_cut()

    def _broken(self, error: Exception) -> ProviderError:
        if isinstance(error, httpx2.TimeoutException):
            return ProviderTimeout(f"{self._provider} sent nothing for {self._timeouts.idle:g} s.")
        if isinstance(error, httpx2.RemoteProtocolError):
            return MalformedStream(f"{self._provider} broke off its answer: {error}.")
        return NetworkFailed(
            f"The connection to {self._provider} failed during the answer: {error or type(error).__name__}."
        )

    def drain(self, chunks: Iterator[bytes]) -> None:
        """Read the few bytes behind the provider's end, so that the connection can be used again."""
        self._drain_until = time.monotonic() + DRAIN_SECONDS
        with contextlib.suppress(ProviderError):
            for _ in chunks:
                pass

    def close(self) -> None:
        """Forget the socket before the connection goes back to its pool, where another call may take it."""
        WATCH.remove(self)
        with self._lock:
            self._is_over = True
            self._socket = None
            response, self._response = self._response, None
        if response is not None:
            response.close()

    def expires(self) -> tuple[float, str]:
        """When, on the monotonic clock, the clock will cut this exchange, and the words for it."""
        limits = self._timeouts
        if self._drain_until is not None:
            return self._drain_until, "did not close its answer"
        total = (self._started_at + limits.total, f"took more than {limits.total:g} s to answer")
        if not self._got_bytes:
            return min(total, (self._started_at + limits.first_byte, f"sent nothing for {limits.first_byte:g} s"))
        idle = (self._last_byte_at + limits.idle, f"stopped sending for {limits.idle:g} s in the middle of its answer")
        silent = (self._last_event_at + limits.comments, f"sent only keep-alive comments for {limits.comments:g} s")
        return min(total, idle, silent)

    def expire_if_due(self, now: float) -> None:
        """Cut the exchange when its time is up."""
        deadline, words = self.expires()
        if now >= deadline:
            self.cut(ProviderTimeout(f"{self._provider} {words}."))


def _fulfil(made: "Future[Made]", connect: Callable[[], Made]) -> None:
    try:
        found = connect()
    except Exception as error:  # noqa: BLE001 - it is raised again in the thread that waits for it
        if made.set_running_or_notify_cancel():
            made.set_exception(error)
        return
    if made.set_running_or_notify_cancel():
        made.set_result(found)
    else:
        found.close()


def _body_of(response: httpx2.Response) -> Iterator[bytes]:
    """Raw chunks. We ask for an unencoded body; ``iter_bytes`` serves the rare proxy that encodes it all the same."""
    # The watch ends silence from here on; a socket without its own timeout saves a system call per chunk.
    response.request.extensions.get("timeout", {})["read"] = None
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return response.iter_bytes()
    assert isinstance(response.stream, httpx2.SyncByteStream)
    return iter(response.stream)


def _shut_down(found: socket.socket | None) -> None:
    """Wake whoever reads from the socket. The plain method, because a TLS socket's own would drop its state first."""
    if found is not None:
        with contextlib.suppress(OSError):
            socket.socket.shutdown(found, socket.SHUT_RDWR)


class Watch:
    """The one thread of a process that cuts exchanges whose time is up: threads cannot be killed, sockets can.

    It looks at fixed intervals from the first call on: to be woken for each call would cost the calls more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._exchanges: set[Exchange] = set()
        self._thread: threading.Thread | None = None

    def add(self, exchange: Exchange) -> None:
        with self._lock:
            self._exchanges.add(exchange)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="model-call-watch", daemon=True)
                self._thread.start()

    def remove(self, exchange: Exchange) -> None:
        with self._lock:
            self._exchanges.discard(exchange)

    def __len__(self) -> int:
        return len(self._exchanges)

    def _run(self) -> None:
        while True:
            time.sleep(TICK_SECONDS)
            with self._lock:
                exchanges = tuple(self._exchanges)
            now = time.monotonic()
            for exchange in exchanges:
                exchange.expire_if_due(now)


WATCH = Watch()
_opening = threading.local()


def gather_seconds() -> float:
    """How long a reader lets tokens gather. A thread costs the same for each wake-up; with few calls it wakes for all."""
    seconds = GATHER_SECONDS_PER_CALL * len(WATCH)
    return min(LONGEST_GATHER_SECONDS, seconds) if seconds > MIN_GATHER_SECONDS else 0.0


def exchange_being_opened() -> Exchange | None:
    """The exchange that the current thread opens, if it is an opening thread."""
    return getattr(_opening, "exchange", None)


def _forget_after_fork() -> None:
    global WATCH  # noqa: PLW0603 - a forked child has neither the parent's thread nor its calls
    WATCH = Watch()


os.register_at_fork(after_in_child=_forget_after_fork)
