"""The models that a server lists, and its kind, for a person who connects it by an address."""

import http.client
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dominds import budgets
from dominds.llm.complaints import complaint_of_response, readable
from dominds.llm.errors import error_of
from dominds.llm.http.endpoint import Endpoint, without_key
from dominds.llm.json_text import NotJson, parse
from dominds.llm.models.model import ProviderKind
from dominds.llm.providers.server_window import entries_in, key_headers, root_of
from dominds.outbound_http import Refused, get
from dominds.typed_address import with_scheme
from dominds.unreachable import plain_reason

MOST_MODELS, MOST_ID_CHARS = 500, 120


@dataclass(frozen=True, slots=True)
class Listing:
    """Ids of models, or the reason why there are none, with the server's own words if it gave any."""

    models: tuple[str, ...] = ()
    failure: str = ""


def base_of(kind: ProviderKind, address: str) -> str:
    """Return the base URL of a typed address. Without a folder ``/v1`` is added, except for Anthropic's API."""
    address = with_scheme(address).rstrip("/")
    if _is_anthropic(kind):
        return address.removesuffix("/v1")
    return address if urlsplit(address).path else f"{address}/v1"


def list_models(
    kind: ProviderKind, base_url: str, key: str = "", *, timeout_seconds: float, allow_private: bool
) -> Listing:
    """Ask the server for its models. A refused address or a silent server raises nothing, but is a ``failure``."""
    host = Endpoint(base_url).host
    try:
        status, body = get(
            f"{base_url}/v1/models" if _is_anthropic(kind) else f"{base_url}/models",
            key_headers(key, is_anthropic=_is_anthropic(kind)),
            timeout_seconds=timeout_seconds,
            most_bytes=budgets.LISTING_BYTES.most,
            allow_private=allow_private,
        )
    except Refused as refused:
        return Listing(failure=str(refused))
    except TimeoutError:
        return Listing(failure=f"{host} did not answer within {timeout_seconds:g} s.")
    except (OSError, http.client.HTTPException) as error:
        reason = plain_reason(readable(getattr(error, "strerror", "") or str(error))) or type(error).__name__
        return Listing(failure=f"No connection to {host}: {without_key(reason, key)}.")
    if status != http.client.OK:
        return Listing(failure=without_key(str(error_of(complaint_of_response(status, {}, body), host)), key))
    return _read(body, host)


def _read(body: bytes, host: str) -> Listing:
    try:
        entries = entries_in(parse(body), "data")
    except NotJson:
        entries = None
    if entries is None:
        return Listing(failure=f"{host} answered, but not with a list of models. Check the address and the kind.")
    named = (str(entry.get("id", "")).removeprefix("models/") for entry in entries)  # Google's prefix
    chats = (name for name in named if 0 < len(name) <= MOST_ID_CHARS and name.isprintable() and "embed" not in name)
    models = tuple(dict.fromkeys(chats))[:MOST_MODELS]
    return Listing(models) if models else Listing(failure=f"{host} answered, but lists no model that chats.")


# How each kind of server is recognised: a path, and a check of the document there that no other kind passes.
SIGNS: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("lmstudio", "/api/v1/models", lambda body: _holds(body, "models", "loaded_instances")),
    ("lmstudio", "/api/v0/models", lambda body: _holds(body, "data", "max_context_length")),
    ("llamacpp", "/props", lambda body: "default_generation_settings" in body or body.get("role") == "router"),
    ("ollama", "/api/tags", lambda body: _holds(body, "models", "digest")),
    ("vllm", "/v1/models", lambda body: _holds(body, "data", "max_model_len")),
)


def recognise_kind(base_url: str, key: str = "", *, timeout_seconds: float, allow_private: bool) -> str:
    """Return the kind of server at an address, recognised by its own API, or an empty text."""
    for kind, path, is_it in SIGNS:
        try:
            status, body = get(
                f"{root_of(base_url)}{path}",
                key_headers(key),
                timeout_seconds=timeout_seconds,
                most_bytes=budgets.LISTING_BYTES.most,
                allow_private=allow_private,
            )
            document = parse(body) if status == http.client.OK else None
        except (Refused, OSError, http.client.HTTPException):
            return ""  # ``list_models`` tells the person why
        except NotJson:
            continue
        if isinstance(document, dict) and is_it(document):
            return kind
    return ""


def _holds(document: dict[str, Any], name: str, field: str) -> bool:
    return any(field in entry for entry in entries_in(document, name) or ())


def _is_anthropic(kind: ProviderKind) -> bool:
    return kind.name.startswith("anthropic")
