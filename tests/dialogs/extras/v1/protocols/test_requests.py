"""What holds for requests of every protocol below ``/v1``: origins, sizes, compression, HEAD."""

import gzip

import httpx2
import pytest

from tests.harness.stack import Stack

PATHS = (
    "models",
    "models/nobody",
    "chat/completions",
    "messages",
    "messages/count_tokens",
    "responses",
    "responses/x",
    "embeddings",
    "nothing",
)


@pytest.mark.parametrize("path", PATHS)
def test_pages_of_other_origins_may_call(stack: Stack, path: str) -> None:
    """As Open WebUI's direct connections and NextChat do: the browser asks first,
    and shows errors only where it may."""
    address, origin = f"{stack.base_url}/v1/{path}", {"Origin": "https://chat.example.org"}
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, content-type"}
    before = httpx2.options(address, headers={**origin, **asked})
    assert (before.status_code, before.headers["access-control-allow-origin"]) == (204, "*")
    assert before.headers["access-control-allow-headers"] == "authorization, content-type"
    assert {"POST", "GET"} & set(before.headers["access-control-allow-methods"].split(", "))
    call = httpx2.post(address, headers=origin, json={})
    assert call.status_code in (401, 404, 405) and call.headers["access-control-allow-origin"] == "*"
    assert "set-cookie" not in call.headers and "access-control-allow-credentials" not in call.headers
    assert ("allow" in call.headers) == (call.status_code == 405)
    assert "access-control-allow-origin" not in httpx2.post(address, json={}).headers


def test_a_compressed_body_is_refused_by_name(stack: Stack, key: str) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Encoding": "gzip"}
    answer = httpx2.post(f"{stack.base_url}/v1/messages", headers=headers, content=gzip.compress(b"{}"))
    assert (answer.status_code, answer.json()["type"]) == (415, "error")
    assert "compressed ('gzip')" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("path", "kind"), [("messages", "request_too_large"), ("responses", "invalid_request_error")])
def test_a_body_too_large_is_refused_in_the_protocols_shape(stack: Stack, path: str, kind: str) -> None:
    answer = httpx2.post(f"{stack.base_url}/v1/{path}", content=b" " * (32 * 1024 * 1024 + 1))
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["code"]) == (413, kind, "request_too_large")


def test_who_looks_before_asking_gets_the_head_alone(stack: Stack, key: str) -> None:
    answer = httpx2.head(f"{stack.base_url}/v1/models", headers={"Authorization": f"Bearer {key}"})
    assert (answer.status_code, answer.content) == (200, b"")
