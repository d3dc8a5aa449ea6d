"""The providers that were connected on the page, as entries of the catalog, and the tool servers that were added there.

A process reads them once, and again after another process has changed them, which a mark in Redis tells. The mark is
read when a worker claims a dialog and when a page lists models, not at each read of the catalog.
"""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import orjson
import redis
import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction

from dialogs.models import ConnectedProvider, ToolServer
from dialogs.store.wakeups import client
from dominds import outbound_http, sealing
from dominds.llm.catalog.catalog import NONE, Connected, ModelInfo
from dominds.llm.models.learned import restore, traits_of
from dominds.redaction import remember

log = structlog.get_logger(__name__)

MARK = "dominds:connected"  # the key of a value that every change replaces
LEARNED = "dominds:learned"  # traits that refusals taught, by provider and model
LEARNED_SECONDS = 30 * 24 * 3600  # after the last lesson: by then a model may accept what it refused


@dataclass(frozen=True, slots=True)
class AddedServer:
    """An MCP server that was added on the page. ``fault`` says why its key cannot be read, or is empty."""

    server_id: str
    url: str
    enabled: bool
    key: str = field(default="", repr=False)
    fault: str = ""


@dataclass(frozen=True, slots=True)
class _Read:
    entries: Connected
    servers: tuple[AddedServer, ...]
    mark: bytes | None


_known: _Read | None = None


def connected() -> Connected:
    """Return entries by provider id, the same object until they change."""
    if _known is not None:
        return _known.entries
    # Redis is not asked in a transaction, for which others may wait. Without its mark, ``follow`` reads again.
    return _read(None if connection.in_atomic_block else _mark())


def tool_servers() -> tuple[AddedServer, ...]:
    """Return the servers, the same tuple until they change."""
    connected()
    return _known.servers if _known is not None else ()


def follow() -> None:
    """Read providers and servers again if somebody has changed them. Without Redis they stay as they were read."""
    mark = _mark()
    if _known is not None and mark != _known.mark:
        _read(mark)


def forget() -> None:
    """Have this process read providers and servers again when it next needs them."""
    global _known  # noqa: PLW0603 - one catalog in a process
    _known = None


def save(row: ConnectedProvider | ToolServer, key: str = "") -> None:
    """Store a provider or server. Without a key the stored one stays."""
    if key:
        row.sealed_key = sealing.seal(key)
    row.save()
    _tell()


def remove(kind: type[ConnectedProvider | ToolServer], pk: str) -> bool:
    """Remove a provider or server, and return whether there was one."""
    removed, _ = kind._default_manager.filter(pk=pk).delete()
    _tell()
    return bool(removed)


def share_learned(model: ModelInfo) -> None:
    """Share the traits learned from the model's refusals with all processes, those that start later included."""

    def share() -> None:
        try:
            client().hset(LEARNED, orjson.dumps((model.provider_id, model.model_id)), orjson.dumps(traits_of(model)))
            client().expire(LEARNED, LEARNED_SECONDS)
        except redis.RedisError as error:
            log.warning("learned_traits_not_shared", error=str(error))

    transaction.on_commit(share)
    _tell()


def _take_over_learned() -> None:
    try:
        for key, traits in client().hgetall(LEARNED).items():
            provider_id, model_id = orjson.loads(key)
            restore(provider_id, model_id, orjson.loads(traits))
    except (redis.RedisError, ValueError, TypeError, AttributeError) as error:
        log.warning("learned_traits_not_read", error=str(error))


def _tell() -> None:
    def tell() -> None:
        forget()
        try:
            client().set(MARK, uuid4().hex)
        except redis.RedisError as error:
            log.warning("change_of_providers_not_announced", error=str(error))

    transaction.on_commit(tell)


def _mark() -> bytes | None:
    try:
        result = client().get(MARK)
    except redis.RedisError:
        return _known.mark if _known is not None else None
    return result if isinstance(result, bytes) else None


def _read(mark: bytes | None) -> Connected:
    """Read both tables. ``mark`` was read before them, so that a change in between is noticed next time.

    Before the first migration there are no entries.
    """
    global _known  # noqa: PLW0603 - one catalog in a process
    try:
        rows, servers = list(ConnectedProvider.objects.all()), list(ToolServer.objects.all())
    except DatabaseError:
        return NONE
    if not connection.in_atomic_block:
        _take_over_learned()
    entries = MappingProxyType({row.provider_id: _entry(row) for row in rows}) if rows else NONE
    _known = _Read(entries, tuple(map(_server, servers)), mark)
    return _known.entries


def _entry(row: ConnectedProvider) -> dict[str, Any]:
    """Return a row in the words of ``llm.yaml``, except for the key."""
    # Servers that the operator named in the environment may have private addresses.
    named = {urlsplit(address).netloc for _, address in settings.LOCAL_SERVERS}
    if urlsplit(row.base_url).netloc not in named:
        outbound_http.guard(row.base_url, allow_private=settings.PRIVATE_WEBHOOKS)
    entry: dict[str, Any] = {"name": row.name, "apiType": row.kind, "baseUrl": row.base_url}
    windows = row.stated_windows
    entry["models"] = {
        model: {"context_length": windows[model]} if model in windows else {} for model in row.model_ids.splitlines()
    }
    if row.sealed_key:
        entry |= {"apiKeyEnvVar": "", **_key_of(row)}
    return entry


def _key_of(row: ConnectedProvider) -> dict[str, str]:
    try:
        return {"apiKey": sealing.unseal(row.sealed_key)}
    except sealing.Unreadable:
        return {
            "keyFault": f"The key of {row.name} cannot be read: SECRET_KEY is another one than when it was typed. Type "
            f"it again on the page Connect a model, or name the earlier SECRET_KEY in SECRET_KEY_FALLBACKS."
        }


def _server(row: ToolServer) -> AddedServer:
    if not row.sealed_key:
        return AddedServer(row.server_id, row.url, row.enabled)
    try:
        key = sealing.unseal(row.sealed_key)
    except sealing.Unreadable:
        fault = "its key cannot be read: SECRET_KEY is another one than when it was typed. Remove it, and add it again"
        return AddedServer(row.server_id, row.url, row.enabled, fault=fault)
    remember(key)
    return AddedServer(row.server_id, row.url, row.enabled, key)
