"""LM Studio's own API beside its OpenAI wire: which models are loaded, with how long a window, and exact counts."""

import logging
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx2

from dominds.llm.errors import readable
from dominds.llm.http.endpoint import is_loopback, without_key
from dominds.llm.json_text import NotJson, parsed

ANSWER_SECONDS = 3.0
CACHE_SECONDS = 2.0  # a model may be loaded anew with another window at any moment
UNREACHABLE_SECONDS = 30.0  # after a failed count, so that counting never slows a conversation twice


@dataclass(frozen=True, slots=True)
class LoadedLimit:
    """The window that a model was loaded with, in tokens."""

    tokens: int


@dataclass(frozen=True, slots=True)
class LimitUnavailable:
    """Why the server reports no window, and what a person can do about it."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Listing:
    """What ``/api/v0/models`` answered at ``read_at`` (monotonic seconds): its entries, or why there are none."""

    read_at: float
    entries: tuple[dict[str, Any], ...] = ()
    failure: str = ""


_listings: dict[tuple[str, str], _Listing] = {}
_reading = threading.Lock()


def loaded_limit(base_url: str, model: str, *, key: str = "") -> LoadedLimit | LimitUnavailable:
    """Ask for the model's ``loaded_context_length``; ``max_context_length`` is not what holds (R16)."""
    listing = _listing(root_of(base_url), key)
    if listing.failure:
        return LimitUnavailable(listing.failure)
    return limit_in(listing.entries, model)


def limit_in(entries: tuple[dict[str, Any], ...], model: str) -> LoadedLimit | LimitUnavailable:
    """Read one model's window out of the server's list."""
    entry = next((entry for entry in entries if entry.get("id") == model), None)
    if entry is None:
        known = ", ".join(sorted(str(entry.get("id")) for entry in entries)[:10]) or "none"
        return LimitUnavailable(
            f"LM Studio does not know the model '{model}' (it lists: {known}). Download or rename it."
        )
    if entry.get("state", "loaded") != "loaded":
        return LimitUnavailable(
            f"LM Studio lists '{model}' but has not loaded it. Load the model there, then try again."
        )
    tokens = entry.get("loaded_context_length")
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens <= 0:
        return LimitUnavailable(
            f"LM Studio reports no context length for '{model}' (loaded_context_length is {tokens!r}). "
            "Load the model again or update LM Studio, or choose another model."
        )
    return LoadedLimit(tokens)


def root_of(base_url: str) -> str:
    """The server's root: the model API does not stand below ``/v1``."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}"


def _listing(root: str, key: str) -> _Listing:
    with _reading:
        known = _listings.get((root, key))
        if known is not None and time.monotonic() - known.read_at < CACHE_SECONDS:
            return known
    found = _read_listing(root, key)
    with _reading:
        _listings[root, key] = found
    return found


def _read_listing(root: str, key: str) -> _Listing:
    url = f"{root}/api/v0/models"
    try:
        response = _http(is_loopback(root)).get(url, headers={"Authorization": f"Bearer {key}"} if key else {})
        response.raise_for_status()
        entries = parsed(response.content)["data"]
        return _Listing(time.monotonic(), tuple(entry for entry in entries if isinstance(entry, dict)))
    except httpx2.HTTPStatusError as error:
        failure = f"{url} answered HTTP {error.response.status_code}. Is this LM Studio, version 0.3.6 or newer?"
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        said = without_key(readable(str(error)), key) or type(error).__name__
        failure = f"No answer from LM Studio at {url}: {said}. Start its server, or correct baseUrl."
    except (NotJson, KeyError, TypeError):
        failure = f"{url} answered something other than LM Studio's list of models. Correct baseUrl."
    return _Listing(time.monotonic(), failure=failure)


@cache
def _http(is_local: bool) -> httpx2.Client:
    return httpx2.Client(timeout=ANSWER_SECONDS, trust_env=not is_local)


_unreachable_until: dict[str, float] = {}


def count_tokens(base_url: str, model: str, text: str, *, key: str = "") -> int | None:
    """Tokens of ``text`` by the loaded model itself, or None: not loaded, not reachable, or not LM Studio.

    Asks the model API first, which fails fast and, unlike the SDK, never loads a model.
    """
    root = root_of(base_url)
    if time.monotonic() < _unreachable_until.get(root, 0.0) or not root.startswith("http://"):
        return None
    if isinstance(loaded_limit(base_url, model, key=key), LimitUnavailable):
        return None
    try:
        with _sdk_client(urlsplit(root).netloc) as client:
            handle = next((handle for handle in client.llm.list_loaded() if handle.identifier == model), None)
            return None if handle is None else int(handle.count_tokens(text))
    except Exception:  # noqa: BLE001 - the SDK raises a dozen families; an exact count is only an improvement
        _unreachable_until[root] = time.monotonic() + UNREACHABLE_SECONDS
        return None


def _sdk_client(host: str) -> Any:
    """Opened for one count, which a dialog needs once: nothing is left that could be half-open later."""
    import lmstudio

    for name in ("AsyncWebsocketThread", "SyncLMStudioWebsocket"):  # they tell of every thread and socket
        logging.getLogger(name).setLevel(logging.WARNING)
    lmstudio.set_sync_api_timeout(ANSWER_SECONDS)
    return lmstudio.Client(host)
