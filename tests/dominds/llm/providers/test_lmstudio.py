import json
import time
from typing import Any
from urllib.parse import urlsplit

import lmstudio
import pytest

from dominds.llm.models.model import LimitUnavailable, LoadedLimit
from dominds.llm.providers import server_window
from dominds.llm.providers.lmstudio import count_tokens, limit_in_v0, loaded_limit, sees
from dominds.llm.providers.server_window import root_of
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


OLDER = plain(200, '{"error": "Unexpected endpoint or method. (GET /api/v1/models)"}')  # it says so with HTTP 200


def newer(key: str, *windows: int, **fields: Any) -> dict[str, Any]:
    """A model of ``/api/v1/models`` with its loaded instances."""
    names = [key, *(f"{key}:{number}" for number in range(2, 9))]
    instances = [
        {"id": name, "config": {"context_length": window}} for name, window in zip(names, windows, strict=False)
    ]
    return {"type": "llm", "key": key, "max_context_length": 131072, "loaded_instances": instances, **fields}


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("qwen3-14b", LoadedLimit(8192, "loaded_context_length")),
        ("qwen3-14b:2", LoadedLimit(4096, "loaded_context_length")),
        (
            "idle",
            LimitUnavailable("LM Studio lists 'idle' but has not loaded it. Load the model there, then try again."),
        ),
        (
            "gone",
            LimitUnavailable(
                "LM Studio does not know the model 'gone' (it lists: idle, qwen3-14b). Download or rename it."
            ),
        ),
    ],
)
def test_the_newer_api_names_the_window_of_each_instance(server: ModelServer, model: str, limit: object) -> None:
    server.will(plain(200, json.dumps({"models": [newer("idle"), newer("qwen3-14b", 8192, 4096)]})))
    assert loaded_limit(f"{server.url}/v1", model) == limit
    assert [asked.path for asked in server.asked] == ["/api/v1/models"]


@pytest.mark.parametrize("first", [OLDER, plain(404, "{}")])
def test_an_older_server_is_asked_by_its_older_api(server: ModelServer, first: Any) -> None:
    server.will(first, plain(200, listing(entry(id="other"), entry(loaded_context_length=4096))))
    assert loaded_limit(f"{server.url}/v1", "qwen3-14b") == LoadedLimit(4096, "loaded_context_length")
    assert [asked.path for asked in server.asked] == ["/api/v1/models", "/api/v0/models"]


@pytest.mark.parametrize(
    ("value", "words"),
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
def test_without_a_loaded_length_there_is_no_limit(value: dict[str, Any], words: str) -> None:
    limit = limit_in_v0((value,), "qwen3-14b")
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
    idle, loaded = ({"models": [model]} for model in (newer("qwen3-14b"), newer("qwen3-14b", 8192)))
    server.will(plain(200, json.dumps(idle)), plain(200, json.dumps(loaded)))
    assert isinstance(loaded_limit(server.url, "qwen3-14b"), LimitUnavailable)
    assert isinstance(loaded_limit(server.url, "qwen3-14b"), LimitUnavailable)
    monkeypatch.setattr(server_window, "CACHE_SECONDS", 0.0)
    assert loaded_limit(server.url, "qwen3-14b") == LoadedLimit(8192, "loaded_context_length")
    assert len(server.asked) == 2


def test_counting_fails_fast_where_there_is_no_lm_studio(server: ModelServer) -> None:
    started_at = time.monotonic()
    assert count_tokens("http://127.0.0.1:9/v1", "qwen3-14b", "Hello") is None
    server.will(OLDER, plain(200, listing(entry(loaded_context_length=4096))), plain(404, "{}"))
    assert count_tokens(server.url, "qwen3-14b", "Hello") is None
    assert time.monotonic() - started_at < 5


def test_the_loaded_model_counts_by_its_own_tokenizer() -> None:
    with StudioServer("qwen3-14b", 4096, tokenize=lambda text: len(text.split())).running() as studio:
        assert count_tokens(studio.url, "qwen3-14b", "three plain words") == 3
        assert count_tokens(studio.url, "another", "three plain words") is None
    assert studio.counted == ["three plain words"]


def test_a_count_sends_what_the_sdk_of_lm_studio_sends() -> None:
    def sent(studio: StudioServer) -> list[dict[str, Any]]:
        made_up = dict.fromkeys(("clientIdentifier", "clientPasskey"), "made up for each connection")
        first, *calls = studio.received
        return [first | made_up, *calls]

    ours, theirs = (StudioServer("qwen3-14b", 4096, tokenize=len) for _ in range(2))
    with ours.running(), theirs.running():
        assert count_tokens(ours.url, "qwen3-14b", "Hello") == 5
        with lmstudio.Client(urlsplit(theirs.url).netloc) as sdk:
            model = next(loaded for loaded in sdk.llm.list_loaded() if loaded.identifier == "qwen3-14b")
            assert model.count_tokens("Hello") == 5
    assert sent(ours) == sent(theirs)


@pytest.mark.parametrize("refusal", [{"error": {"title": "No tokenizer"}}, {"result": None}, {"result": {}}, None])
def test_without_a_count_the_server_is_left_alone_for_a_while(refusal: dict[str, Any] | None) -> None:
    studio = StudioServer("qwen3-14b", 4096, tokenize=len, refusal=refusal, refuses=True)
    with studio.running():
        assert count_tokens(studio.url, "qwen3-14b", "Hello") is None
        assert [call["endpoint"] for call in studio.received[1:]] == ["listLoaded", "countTokens"]
        assert count_tokens(studio.url, "qwen3-14b", "Hello") is None
    assert len(studio.received) == 3


def test_the_model_api_stands_at_the_servers_root() -> None:
    assert root_of("http://127.0.0.1:1234/v1/") == "http://127.0.0.1:1234"


@pytest.mark.parametrize(
    ("model", "seen"), [("gemma-3-4b", True), ("qwen3-14b", False), ("older", None), ("gone", None)]
)
def test_the_newer_api_says_which_models_see(server: ModelServer, model: str, seen: bool | None) -> None:
    listed = [
        newer("gemma-3-4b", 4096, capabilities={"vision": True, "trained_for_tool_use": False}),
        newer("qwen3-14b", 4096, capabilities={"vision": False}),
        newer("older", 4096),
    ]
    server.will(plain(200, json.dumps({"models": listed})))
    assert sees(f"{server.url}/v1", model) is seen


@pytest.mark.parametrize(("model", "seen"), [("gemma", True), ("qwen3-14b", False), ("gone", None)])
def test_the_older_api_calls_those_that_see_vlm(server: ModelServer, model: str, seen: bool | None) -> None:
    server.will(OLDER, plain(200, listing(entry(), entry(id="gemma", type="vlm"))))
    assert sees(f"{server.url}/v1", model) is seen
