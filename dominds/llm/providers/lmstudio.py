"""LM Studio: chat completions, and its own API for loaded models, their windows, images, and exact token counts."""

import asyncio
import time
from typing import Any
from uuid import uuid4

import aiohttp

from dominds.llm.http import event_loop
from dominds.llm.models.model import Forcing, Form, LimitUnavailable, LoadedLimit, ProviderKind
from dominds.llm.providers import openai_chat
from dominds.llm.providers.server_window import (
    ANSWER_SECONDS,
    entries_in,
    list_entries,
    read,
    root_of,
    tokens_in,
    truth_in,
)

NAME = "LM Studio"
# The server is out of reach, or answers something unexpected. Then estimates have to do.
UNCOUNTED = (aiohttp.ClientError, OSError, TypeError, ValueError, KeyError, AttributeError)
UNREACHABLE_SECONDS = 30.0  # the pause after a failed count, so that counting does not slow down the conversation again


def loaded_limit(base_url: str, model: str, key: str = "") -> LoadedLimit | LimitUnavailable:
    """Return the window with which the model was loaded, not the longest that it could have.

    Version 0.4 states it at ``/api/v1/models``, and older versions at ``/api/v0/models``.
    """
    root = root_of(base_url)
    newer = read(f"{root}/api/v1/models", key, NAME)
    if not newer.is_reached:
        return LimitUnavailable(newer.failure)
    entries = entries_in(newer.document, "models")
    if entries is not None:
        return limit_in_v1(entries, model)
    older = list_entries(f"{root}/api/v0/models", key, NAME, "data")
    return LimitUnavailable(older) if isinstance(older, str) else limit_in_v0(older, model)


def limit_in_v1(entries: tuple[dict[str, Any], ...], model: str) -> LoadedLimit | LimitUnavailable:
    """Read one model's window. Several instances of a model may be loaded, each under its own name."""
    for entry in entries:
        instances = entries_in(entry, "loaded_instances") or ()
        for instance in instances:
            if instance.get("id") == model:
                return _limit(model, _context_length(instance))
        if entry.get("key") == model and instances:
            lengths = [length for each in instances if (length := tokens_in(_context_length(each)))]
            return _limit(model, min(lengths, default=None))
        if entry.get("key") == model:
            return _not_loaded(model)
    return _unknown(model, [str(entry.get("key")) for entry in entries])


def _context_length(instance: dict[str, Any]) -> Any:
    config = instance.get("config")
    return config.get("context_length") if isinstance(config, dict) else None


def limit_in_v0(entries: tuple[dict[str, Any], ...], model: str) -> LoadedLimit | LimitUnavailable:
    entry = next((entry for entry in entries if entry.get("id") == model), None)
    if entry is None:
        return _unknown(model, [str(entry.get("id")) for entry in entries])
    if entry.get("state", "loaded") != "loaded":
        return _not_loaded(model)
    return _limit(model, entry.get("loaded_context_length"))


def _limit(model: str, value: Any) -> LoadedLimit | LimitUnavailable:
    tokens = tokens_in(value)
    if tokens is not None:
        return LoadedLimit(tokens, "loaded_context_length")
    return LimitUnavailable(
        f"LM Studio reports no context length for '{model}' (loaded_context_length is {value!r}). "
        "Load the model again or update LM Studio, or choose another model."
    )


def _not_loaded(model: str) -> LimitUnavailable:
    return LimitUnavailable(f"LM Studio lists '{model}' but has not loaded it. Load the model there, then try again.")


def _unknown(model: str, listed: list[str]) -> LimitUnavailable:
    known = ", ".join(sorted(listed)[:10]) or "none"
    return LimitUnavailable(f"LM Studio does not know the model '{model}' (it lists: {known}). Download or rename it.")


def sees(base_url: str, model: str, key: str = "") -> bool | None:
    """Check whether the model takes images, by ``capabilities.vision`` of the newer API or the older one's ``vlm``."""
    root = root_of(base_url)
    newer = entries_in(read(f"{root}/api/v1/models", key, NAME).document, "models")
    if newer is None:
        older = entries_in(read(f"{root}/api/v0/models", key, NAME).document, "data") or ()
        return next((entry.get("type") == "vlm" for entry in older if entry.get("id") == model), None)
    for entry in newer:
        names = {entry.get("key"), *(instance.get("id") for instance in entries_in(entry, "loaded_instances") or ())}
        capabilities = entry.get("capabilities")
        if model in names and isinstance(capabilities, dict):
            return truth_in(capabilities.get("vision"))
    return None


_unreachable_until: dict[str, float] = {}


def count_tokens(base_url: str, model: str, text: str, key: str = "") -> int | None:
    """Return the tokens of ``text`` as the loaded model counts them; None if it is not loaded or cannot be asked.

    The HTTP API is asked first, since it fails fast. Only the web socket of LM Studio's SDK counts tokens.
    """
    root = root_of(base_url)
    if time.monotonic() < _unreachable_until.get(root, 0.0) or not root.startswith("http://"):
        return None
    if isinstance(loaded_limit(base_url, model, key), LimitUnavailable):
        return None
    try:
        return event_loop.LOOP.run(_count(f"ws://{root.removeprefix('http://')}/llm", model, text))
    except UNCOUNTED:
        _unreachable_until[root] = time.monotonic() + UNREACHABLE_SECONDS
        return None


async def _count(url: str, model: str, text: str) -> int | None:
    """Count on the socket. Counting would load a model that is not loaded, so that is ruled out first."""
    client = str(uuid4())
    async with asyncio.timeout(ANSWER_SECONDS), event_loop.LOOP.session().ws_connect(url) as socket:
        await socket.send_json({"authVersion": 1, "clientIdentifier": client, "clientPasskey": client})
        await socket.receive_json()
        await socket.send_json({"type": "rpcCall", "endpoint": "listLoaded", "callId": 1})
        if not any(loaded["identifier"] == model for loaded in await _result(socket, 1)):
            return None
        about = {"specifier": {"type": "query", "query": {"identifier": model}}, "inputString": text}
        await socket.send_json({"type": "rpcCall", "endpoint": "countTokens", "callId": 2, "parameter": about})
        return int((await _result(socket, 2))["tokenCount"])


async def _result(socket: aiohttp.ClientWebSocketResponse, call: int) -> Any:
    """Return a call's result. Raises ``KeyError`` for a refusal, and ``TypeError`` if the server hangs up."""
    while (answer := await socket.receive_json()).get("callId") != call:  # it also sends warnings
        pass
    return answer["result"]


LMSTUDIO = ProviderKind(
    "lmstudio",
    openai_chat.connect,
    form=Form(anchored=True),
    label="LM Studio",
    is_local=True,
    takes_several_system=True,
    embeds=True,
    needs_limit=True,
    overruns=True,
    loaded_window=loaded_limit,
    sees=sees,
    count_tokens=count_tokens,
    forcing=Forcing.REQUIRED,  # the object form is refused: "Invalid tool_choice type: 'object'"
)
