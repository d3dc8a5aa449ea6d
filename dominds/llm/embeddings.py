"""Embeddings of a provider that speaks OpenAI's wire format, passed on unchanged."""

from collections.abc import Mapping
from typing import Any

from dominds.llm.connect import key_of
from dominds.llm.http import event_loop
from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.exchange import Exchange
from dominds.llm.http.headers import openai_exchange
from dominds.llm.json_text import NotJson, dump, parse
from dominds.llm.models.model import ModelInfo
from dominds.llm.provider import MalformedStream
from dominds.llm.providers.openai_responses import OPENAI


def embed(model: ModelInfo, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provider's answer to ``body``, for kinds of providers that embed. Raises ``ProviderError``."""
    endpoint = Endpoint(model.base_url, key_of(model))
    sent = dump({**body, "model": model.model_id})
    exchange = openai_exchange(endpoint, "/embeddings", sent, is_openai=model.kind is OPENAI)
    try:
        answer = parse(event_loop.LOOP.run(_whole(exchange)))
    except NotJson:
        answer = None
    if not isinstance(answer, dict):
        raise MalformedStream(f"{endpoint.host} sent something other than embeddings.")
    return answer


async def _whole(exchange: Exchange) -> bytes:
    try:
        await exchange.open()
        pieces = []
        while chunk := await exchange.chunk():
            pieces.append(chunk)
        return b"".join(pieces)
    finally:
        exchange.close()
