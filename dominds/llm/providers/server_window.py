"""Reader of servers' own APIs, with short time-outs and a cache of answers."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from dominds import budgets, outbound_http
from dominds.llm.complaints import readable
from dominds.llm.http import event_loop
from dominds.llm.http.endpoint import Endpoint, without_key
from dominds.llm.http.exchange import PIECE_BYTES, reason_of
from dominds.llm.json_text import NotJson, dump, parse

ANSWER_SECONDS = 3.0
ADDRESS = "its address (under Models, or in the server's configuration)"
CACHE_SECONDS = 2.0  # a model may be reloaded with another window at any moment
FAILURE_SECONDS = 60.0  # the longest time for which a failure is cached
ANTHROPIC_VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The document at a URL, or the reason why it cannot be used. ``read_at`` is in monotonic seconds."""

    read_at: float
    document: Any = None
    failure: str = ""
    is_reached: bool = True


_answers: dict[tuple[str, str, bytes], ServerAnswer] = {}
_lock = threading.Lock()
_any_age = ContextVar("any_age", default=False)


@contextmanager
def of_any_age() -> Iterator[None]:
    """Accept cached answers of any age within the block, so that only servers without an answer are asked."""
    before = _any_age.set(True)
    try:
        yield
    finally:
        _any_age.reset(before)


def key_headers(key: str, *, is_anthropic: bool = False) -> dict[str, str]:
    """Return the headers of a request for a list of models."""
    if is_anthropic:
        return {"x-api-key": key, "anthropic-version": ANTHROPIC_VERSION}
    return {"Authorization": f"Bearer {key}"} if key else {}


def read(
    url: str,
    key: str,
    server: str,
    ask: dict[str, Any] | None = None,
    seconds: float | None = None,
    *,
    is_anthropic: bool = False,
) -> ServerAnswer:
    """Return the JSON at ``url``, read by GET, or by POST with ``ask``.

    ``server`` is the name by which people know the software. An answer is cached for ``seconds``, by default for
    ``CACHE_SECONDS``.
    """
    about = (url, key, dump(ask) if ask else b"")
    with _lock:
        known = _answers.get(about)
        if known is not None and (_any_age.get() or time.monotonic() - known.read_at < _lifetime(known, seconds)):
            return known
    answer = _read(url, key, server, about[2], key_headers(key, is_anthropic=is_anthropic))
    with _lock:
        _answers[about] = answer
    return answer


def _lifetime(known: ServerAnswer, seconds: float | None) -> float:
    """Return the seconds for which an answer is cached."""
    if seconds is None:
        return CACHE_SECONDS
    return min(seconds, FAILURE_SECONDS) if known.failure else seconds


def forget() -> None:
    """Empty the cache of answers."""
    with _lock:
        _answers.clear()


def _read(url: str, key: str, server: str, ask: bytes, headers: dict[str, str]) -> ServerAnswer:
    is_reached = True
    try:
        outbound_http.check_typed(url)
        status, body = event_loop.LOOP.run(_ask(url, headers, ask, server))
        if 200 <= status < 300:
            return ServerAnswer(time.monotonic(), parse(body))
        failure = f"{url} answered HTTP {status}. Is this {server}, in a current version?"
    except (budgets.OverBudget, outbound_http.Refused) as error:
        failure = str(error)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        if isinstance(error, NotJson):
            failure = strange(url, server)
        else:
            reason = without_key(readable(_why(error)), key) or type(error).__name__
            failure = f"No answer from {server} at {url}: {reason}. Start its server, or correct {ADDRESS}."
            is_reached = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    return ServerAnswer(time.monotonic(), failure=failure, is_reached=is_reached)


async def _ask(url: str, headers: dict[str, str], ask: bytes, server: str) -> tuple[int, bytes]:
    """Return the status and the body. The time-out holds for the whole answer, however slowly its bytes arrive."""
    body = bytearray()
    async with event_loop.LOOP.session().request(
        "POST" if ask else "GET",
        url,
        headers=headers,
        data=ask or None,
        allow_redirects=False,
        proxy=Endpoint(url).proxy(),
        ssl=event_loop.trust(url),
        timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
    ) as answer:
        while piece := await answer.content.read(PIECE_BYTES):
            body += piece
            budgets.LISTING_BYTES.check(len(body), f"{server} answered with")
    return answer.status, bytes(body)


def _why(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return reason_of(error.os_error)
    return (
        f"its answer was not whole within {ANSWER_SECONDS:g} seconds" if isinstance(error, TimeoutError) else str(error)
    )


def strange(url: str, server: str) -> str:
    return f"{url} answered something other than {server}'s list of models. Correct {ADDRESS}."


def root_of(base_url: str) -> str:
    """Return the server's root, where its own API stands next to ``/v1``."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}"


def entries_in(document: Any, name: str) -> tuple[dict[str, Any], ...] | None:
    """Return the objects of a list inside an object, or None if there is no such list."""
    entries = document.get(name) if isinstance(document, dict) else None
    return tuple(entry for entry in entries if isinstance(entry, dict)) if isinstance(entries, list) else None


def list_entries(
    url: str, key: str, server: str, name: str, seconds: float | None = None, *, is_anthropic: bool = False
) -> tuple[dict[str, Any], ...] | str:
    """Return the entries of the list ``name`` at ``url``, or the reason why there are none."""
    answer = read(url, key, server, seconds=seconds, is_anthropic=is_anthropic)
    entries = entries_in(answer.document, name)
    return answer.failure or (strange(url, server) if entries is None else entries)


def tokens_in(value: Any) -> int | None:
    """Return a valid number of tokens, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def truth_in(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
