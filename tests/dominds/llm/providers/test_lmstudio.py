import json
import time
from typing import Any

import pytest

from dominds.llm.providers import lmstudio
from dominds.llm.providers.lmstudio import LimitUnavailable, LoadedLimit, count_tokens, limit_in, loaded_limit, root_of
from tests.dominds.llm.model_server import ModelServer, plain
from tests.dominds.llm.studio_server import StudioServer


def entry(**fields: Any) -> dict[str, Any]:
    return {
        "id": "qwen3-14b",
        "object": "model",
        "type": "llm",
        "state": "loaded",
        "max_context_length": 131072,
        **fields,
    }


def listing(*entries: dict[str, Any]) -> str:
    return json.dumps({"object": "list", "data": list(entries)})


def test_the_limit_is_what_the_model_was_loaded_with(server: ModelServer) -> None:
    server.will(plain(200, listing(entry(id="other"), entry(loaded_context_length=4096))))
    assert loaded_limit(f"{server.url}/v1", "qwen3-14b") == LoadedLimit(4096)
    assert server.asked[0].path == "/api/v0/models"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (entry(), "reports no context length"),
        (entry(loaded_context_length=None), "reports no context length"),
        (entry(loaded_context_length=0), "reports no context length"),
        (entry(loaded_context_length=True), "reports no context length"),
        (entry(loaded_context_length="4096"), "reports no context length"),
        (entry(state="not-loaded", loaded_context_length=4096), "has not loaded it"),
        (entry(id="another"), "does not know the model"),
    ],
)
def test_without_a_loaded_length_there_is_no_limit(found: dict[str, Any], words: str) -> None:
    limit = limit_in((found,), "qwen3-14b")
    assert isinstance(limit, LimitUnavailable)
    assert words in limit.reason


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (404, "{}", "answered HTTP 404"),
        (200, "<html>", "something other"),
        (200, "[]", "something other"),
        (200, "{}", "something other"),
        (200, '{"data": 5}', "something other"),
    ],
)
def test_another_server_is_named_as_the_reason(server: ModelServer, status: int, body: str, words: str) -> None:
    server.will(plain(status, body))
    limit = loaded_limit(server.url, "qwen3-14b")
    assert isinstance(limit, LimitUnavailable)
    assert words in limit.reason


def test_a_server_that_is_not_there_is_named_as_the_reason() -> None:
    limit = loaded_limit("http://127.0.0.1:9/v1", "qwen3-14b")
    assert isinstance(limit, LimitUnavailable)
    assert "127.0.0.1:9" in limit.reason


def test_the_list_is_read_again_after_two_seconds(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.will(plain(200, listing(entry(state="not-loaded"))), plain(200, listing(entry(loaded_context_length=8192))))
    assert isinstance(loaded_limit(server.url, "qwen3-14b"), LimitUnavailable)
    assert isinstance(loaded_limit(server.url, "qwen3-14b"), LimitUnavailable)
    monkeypatch.setattr(lmstudio, "CACHE_SECONDS", 0.0)
    assert loaded_limit(server.url, "qwen3-14b") == LoadedLimit(8192)
    assert len(server.asked) == 2


def test_counting_fails_fast_where_there_is_no_lm_studio(server: ModelServer) -> None:
    started_at = time.monotonic()
    assert count_tokens("http://127.0.0.1:9/v1", "qwen3-14b", "Hello") is None
    server.will(plain(200, listing(entry(loaded_context_length=4096))), plain(404, "{}"))
    assert count_tokens(server.url, "qwen3-14b", "Hello") is None
    assert time.monotonic() - started_at < 5


def test_the_loaded_model_counts_by_its_own_tokenizer() -> None:
    with StudioServer("qwen3-14b", 4096, tokenize=lambda text: len(text.split())).running() as studio:
        assert count_tokens(studio.url, "qwen3-14b", "three plain words") == 3
        assert count_tokens(studio.url, "another", "three plain words") is None
    assert studio.counted == ["three plain words"]


def test_the_model_api_stands_at_the_servers_root() -> None:
    assert root_of("http://127.0.0.1:1234/v1/") == "http://127.0.0.1:1234"
