"""The headers of a model call, as the vendors' own libraries send them: authentication, version and content type.

A test compares them with those libraries. They are no dependency at run time, since importing one takes a second, and
their typed layers take 149 ms on a long request.
"""

import os
from urllib.parse import urlsplit

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.exchange import Exchange, Post

ANTHROPIC_VERSION = "2026-10-21"  # refuses temperature, top_p and top_k for every model
COMPATIBLE_VERSION = "2023-06-01"  # compatible servers imitate this version, and take all three
STREAMED = {
    "Accept": "text/event-stream",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "Dominds",
}
OPENAI_ACCOUNT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}


def openai_exchange(
    endpoint: Endpoint, path: str, body: bytes, *, is_openai: bool = False, has_files: bool = False
) -> Exchange:
    """Build a streaming POST to a server of OpenAI's wire formats."""
    headers = openai_headers(endpoint, is_openai)
    return Exchange(endpoint, Post(_under(endpoint.base_url, path), headers, body, has_files))


def openai_headers(endpoint: Endpoint, is_openai: bool) -> dict[str, str]:
    """Return the headers. The operator's organisation is sent only to OpenAI, and not to compatible servers."""
    account = {name: os.environ[key] for name, key in OPENAI_ACCOUNT.items() if is_openai and os.environ.get(key)}
    return {**STREAMED, **_bearer(endpoint), **account}


def anthropic_exchange(
    endpoint: Endpoint,
    path: str,
    body: bytes,
    *,
    is_anthropic: bool = False,
    betas: tuple[str, ...] = (),
    has_files: bool = False,
) -> Exchange:
    """Build a streaming POST to a server of the Messages API."""
    base_url = endpoint.base_url.rstrip("/").removesuffix("/v1")
    headers = anthropic_headers(endpoint, is_anthropic, betas)
    return Exchange(endpoint, Post(_under(base_url, path), headers, body, has_files))


def anthropic_headers(endpoint: Endpoint, is_anthropic: bool, betas: tuple[str, ...] = ()) -> dict[str, str]:
    version = ANTHROPIC_VERSION if is_anthropic else COMPATIBLE_VERSION
    headers = {**STREAMED, "anthropic-version": version, **_bearer(endpoint)}
    if endpoint.key and not is_anthropic:
        headers["X-Api-Key"] = endpoint.key  # compatible servers read one header or the other, so they get both
    if betas:
        headers["anthropic-beta"] = ",".join(betas)
    return headers


def _bearer(endpoint: Endpoint) -> dict[str, str]:
    return {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}


def _under(base_url: str, path: str) -> str:
    parts = urlsplit(base_url)
    return parts._replace(path=parts.path.rstrip("/") + path).geturl()
