"""What the official SDKs say of a request: its headers, authentication and version among them.

The call itself is not theirs: their typed layers take 149 ms on a long request, and their clients read each answer in a
thread or through layers that cost as much as the reading.
"""

import os
import threading
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.exchange import Exchange, Post

NO_KEY = "none"  # given to an SDK that insists on one, and never sent
_making = threading.Lock()  # a client costs 30 ms: a hundred first calls at once must not make a hundred
STREAMED = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}


def openai_exchange(endpoint: Endpoint, path: str, body: bytes, *, is_openai: bool = False) -> Exchange:
    """A streaming POST as the OpenAI SDK would send it."""
    with _making:
        headers = _openai_headers(endpoint, is_openai)
    return Exchange(endpoint, Post(_under(endpoint.base_url, path), headers, body))


def anthropic_exchange(endpoint: Endpoint, path: str, body: bytes, *, is_anthropic: bool = False) -> Exchange:
    """The same as the Anthropic SDK would."""
    base_url = endpoint.base_url.rstrip("/").removesuffix("/v1")
    with _making:
        headers = _anthropic_headers(endpoint, is_anthropic)
    return Exchange(endpoint, Post(_under(base_url, path), headers, body))


def _under(base_url: str, path: str) -> str:
    parts = urlsplit(base_url)
    return parts._replace(path=parts.path.rstrip("/") + path).geturl()


@cache
def _openai_headers(endpoint: Endpoint, is_openai: bool) -> Mapping[str, str]:
    import openai

    headers = _headers(openai.OpenAI(api_key=endpoint.key or NO_KEY, base_url=endpoint.base_url), endpoint)
    if not is_openai:  # it would send the operator's OpenAI organization to any server
        headers = {name: value for name, value in headers.items() if not name.startswith("OpenAI-")}
    return headers


@cache
def _anthropic_headers(endpoint: Endpoint, is_anthropic: bool) -> Mapping[str, str]:
    import anthropic

    # The key is given in any case: without one the SDK would look for the operator's own in the environment.
    headers = _headers(anthropic.Anthropic(api_key=endpoint.key or NO_KEY, base_url=endpoint.base_url), endpoint)
    if endpoint.key and not is_anthropic:
        headers["X-Api-Key"] = endpoint.key  # compatible servers differ in the key's header: they get both
    return headers


def _headers(client: Any, endpoint: Endpoint) -> dict[str, str]:
    said = {**client.default_headers, **client.auth_headers, **STREAMED}
    client.close()
    if not endpoint.key:
        del said["Authorization"]
    return {name: value for name, value in said.items() if isinstance(value, str)}


def _free_after_fork() -> None:
    global _making  # noqa: PLW0603 - the parent may have held it while it forked
    _making = threading.Lock()


os.register_at_fork(after_in_child=_free_after_fork)
