"""The window that a local server runs a model with, and whether it sees, as each of them says it."""

import json
import time
from typing import Any

import pytest

from dominds.llm.models.model import LimitUnavailable, LoadedLimit
from dominds.llm.providers import llamacpp, ollama, vllm
from dominds.llm.providers.kinds import KINDS
from dominds.llm.providers.listed_window import limit_in, listed_window
from dominds.llm.providers.listing import recognise_kind
from tests.dominds.llm.model_server import ModelServer, plain, stream_of
from tests.doubles.chat import ChatDouble
from tests.doubles.gateways import LiteLLMDouble, OpenRouterDouble
from tests.doubles.local_servers import LlamaCppDouble, LMStudioDouble, OllamaDouble, SGLangDouble, VLLMDouble
from tests.doubles.messages import MessagesDouble

RUNNING = {"name": "qwen3:latest", "model": "qwen3:latest", "size_vram": 5, "context_length": 4096}
SHOWN = {
    "parameters": 'stop "<|im_end|>"\nnum_ctx                        16384\n',
    "model_info": {"q.context_length": 40960},
}


def answers(*documents: Any) -> list[Any]:
    return [plain(200, json.dumps(document)) for document in documents]


@pytest.mark.parametrize(
    ("model", "documents", "limit"),
    [
        ("qwen3", [{"models": [RUNNING]}], LoadedLimit(4096, "context_length, /api/ps")),
        ("qwen3:latest", [{"models": [RUNNING]}], LoadedLimit(4096, "context_length, /api/ps")),
        ("qwen3:8b", [{"models": [RUNNING]}, SHOWN], LoadedLimit(16384, "num_ctx, /api/show")),
        ("qwen3", [{"models": []}, SHOWN], LoadedLimit(16384, "num_ctx, /api/show")),
    ],
)
def test_ollama_runs_a_model_or_its_file_sets_the_window(
    server: ModelServer, model: str, documents: list[Any], limit: LoadedLimit
) -> None:
    server.will(*answers(*documents))
    assert ollama.loaded_limit(f"{server.url}/v1", model) == limit
    assert [asked.path for asked in server.asked] == ["/api/ps", "/api/show"][: len(documents)]
    assert server.asked[-1].body == ({"model": model} if len(documents) == 2 else None)


@pytest.mark.parametrize("shown", [{}, {"parameters": "stop x"}, {"error": "model not found"}, []])
def test_ollamas_longest_possible_window_is_not_what_holds(server: ModelServer, shown: Any) -> None:
    server.will(*answers({"models": [{**RUNNING, "context_length": None}]}, shown))
    limit = ollama.loaded_limit(f"{server.url}/v1", "qwen3")
    assert isinstance(limit, LimitUnavailable)
    assert "sets no num_ctx" in limit.reason


@pytest.mark.parametrize(
    ("props", "tokens"),
    [
        ({"default_generation_settings": {"n_ctx": 4096}, "n_ctx": 16384, "total_slots": 4}, 4096),
        ({"n_ctx": 8192}, 8192),
        ({"default_generation_settings": {"n_ctx": 0}}, None),
        ({}, None),
        ([], None),
    ],
)
def test_llamacpp_reports_the_window_of_a_slot(server: ModelServer, props: Any, tokens: int | None) -> None:
    server.will(*answers(props))
    limit = llamacpp.loaded_limit(f"{server.url}/v1", "any")
    assert server.asked[0].path == "/props"
    assert limit == LoadedLimit(tokens, "n_ctx") if tokens else isinstance(limit, LimitUnavailable)


@pytest.mark.parametrize(
    ("props", "sees"),
    [({"modalities": {"vision": True, "audio": False}}, True), ({"modalities": {"vision": False}}, False), ({}, None)],
)
def test_llamacpp_says_whether_it_has_a_projector(server: ModelServer, props: Any, sees: bool | None) -> None:
    server.will(*answers(props))
    assert llamacpp.sees(f"{server.url}/v1", "any") is sees


@pytest.mark.parametrize(
    ("shown", "sees"),
    [({"capabilities": ["completion", "vision"]}, True), ({"capabilities": ["completion"]}, False), (SHOWN, None)],
)
def test_ollama_names_what_a_model_can(server: ModelServer, shown: Any, sees: bool | None) -> None:
    server.will(*answers(shown))
    assert ollama.sees(f"{server.url}/v1", "qwen3") is sees
    assert (server.asked[0].path, server.asked[0].body) == ("/api/show", {"model": "qwen3"})


def test_vllm_lists_the_window_with_the_model(server: ModelServer) -> None:
    server.will(*answers({"object": "list", "data": [{"id": "a", "max_model_len": 32768}, {"id": "b"}]}))
    assert vllm.loaded_limit(f"{server.url}/v1", "a", "a-key") == LoadedLimit(32768, "max_model_len")
    assert (server.asked[0].path, server.asked[0].headers["authorization"]) == ("/v1/models", "Bearer a-key")
    for model, words in (("b", "names no window"), ("c", "it lists: a, b")):
        limit = vllm.loaded_limit(f"{server.url}/v1", model, "a-key")
        assert isinstance(limit, LimitUnavailable)
        assert words in limit.reason


ASKING = [kind for kind in KINDS.values() if kind.loaded_window]


@pytest.mark.parametrize("kind", ASKING, ids=lambda kind: kind.name)
def test_a_server_that_is_not_there_is_named_as_the_reason(kind: Any) -> None:
    limit = kind.loaded_window("http://127.0.0.1:9/v1", "m", "a-secret-key")
    assert isinstance(limit, LimitUnavailable)
    assert "127.0.0.1:9" in limit.reason


@pytest.mark.parametrize("kind", ASKING, ids=lambda kind: kind.name)
@pytest.mark.parametrize("body", ["<html>", "5", "null", '"text"', "[]", '{"models": 5, "data": 5}'])
def test_another_server_is_no_window(server: ModelServer, kind: Any, body: str) -> None:
    server.will(plain(200, body))
    assert isinstance(kind.loaded_window(f"{server.url}/v1", "m", ""), LimitUnavailable)


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.sees], ids=lambda kind: kind.name)
@pytest.mark.parametrize("body", ["<html>", "5", "[]", '{"models": [5], "capabilities": 5, "modalities": 5}'])
def test_another_server_says_nothing_of_sight(server: ModelServer, kind: Any, body: str) -> None:
    server.will(*[plain(200, body)] * 2)
    assert kind.sees(f"{server.url}/v1", "m", "") is None


@pytest.mark.parametrize("kind", ASKING, ids=lambda kind: kind.name)
def test_a_list_without_end_is_read_to_its_bound(server: ModelServer, kind: Any) -> None:
    server.will(stream_of(*[b" " * 1_000_000] * 6))
    limit = kind.loaded_window(f"{server.url}/v1", "m", "")
    assert isinstance(limit, LimitUnavailable)
    assert "more than 4,000,000 bytes, unpacked. DOMINDS_LISTING_BYTES sets this limit." in limit.reason


def test_a_slow_list_is_waited_for_like_a_silent_one(server: ModelServer) -> None:
    server.will(stream_of(*[b" "] * 100, pause_seconds=0.2))
    asked_at = time.monotonic()
    limit = vllm.loaded_limit(f"{server.url}/v1", "m")
    assert time.monotonic() - asked_at < 10  # 20 s of bytes were to come
    assert isinstance(limit, LimitUnavailable)
    assert "was not whole within 3 seconds" in limit.reason


@pytest.mark.parametrize(
    ("double", "base", "limit"),
    [
        (OpenRouterDouble(window=16_384), "/api/v1", LoadedLimit(16_384, "context_length")),
        (LiteLLMDouble(window=12_000), "/v1", LoadedLimit(12_000, "max_input_tokens")),
        (VLLMDouble(window=8_192), "/v1", LoadedLimit(8_192, "max_model_len")),
        (SGLangDouble(window=8_192), "/v1", LoadedLimit(8_192, "max_model_len")),
    ],
    ids=["openrouter", "litellm", "vllm", "sglang"],
)
def test_a_servers_list_names_the_window_whatever_its_kind(double: ChatDouble, base: str, limit: LoadedLimit) -> None:
    with double:
        assert listed_window(f"{double.url}{base}", double.model, "a-key") == limit
        unknown = listed_window(f"{double.url}{base}", "another", "a-key")
    assert isinstance(unknown, LimitUnavailable) and double.model in unknown.reason


@pytest.mark.parametrize("kind", ["anthropic", "anthropic-compatible"])
def test_anthropics_list_names_the_window(kind: str) -> None:
    with MessagesDouble(window=150_000) as double:
        ask = KINDS[kind].loaded_window
        assert ask is not None
        assert ask(double.url, double.model, "a-key") == LoadedLimit(150_000, "max_input_tokens")
        assert isinstance(ask(double.url, "another", "a-key"), LimitUnavailable)


@pytest.mark.parametrize(
    ("entry", "tokens"),
    [
        ({"meta": {"n_ctx_train": 131_072, "n_ctx": 4_096}}, 4_096),
        ({"meta": {"n_ctx_train": 131_072}}, None),  # what it was trained for is not what holds
        ({"n_ctx": 2_048}, 2_048),
        ({"context_window": 131_072, "owned_by": "Meta"}, 131_072),
        ({"context_length": "many", "top_provider": None, "max_model_len": True}, None),
    ],
)
def test_an_entry_says_its_window_in_one_of_many_words(entry: dict[str, Any], tokens: int | None) -> None:
    limit = limit_in(({"id": "m", **entry},), "m")
    assert limit.tokens == tokens if isinstance(limit, LoadedLimit) else tokens is None


def test_a_vendors_list_is_read_once_in_a_while() -> None:
    with OpenRouterDouble() as double:
        for _ in range(3):
            listed_window(f"{double.url}/api/v1", double.model, "a-key")
        assert len(double.requests) == 1


@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_router_of_llamacpp_tells_the_window_of_the_model(is_loaded: bool) -> None:
    with LlamaCppDouble(window=6_000, is_router=True, is_loaded=is_loaded) as double:
        limit = llamacpp.loaded_limit(f"{double.url}/v1", double.model)
        asked = [request.path for request in double.requests]
    assert asked == ["/props", f"/props?model={double.model}&autoload=false"], "nothing is loaded for a question"
    assert limit == LoadedLimit(6_000, "n_ctx") if is_loaded else isinstance(limit, LimitUnavailable)


@pytest.mark.parametrize(
    ("kind", "double"),
    [
        ("lmstudio", LMStudioDouble()),
        ("llamacpp", LlamaCppDouble()),
        ("llamacpp", LlamaCppDouble(is_router=True)),
        ("ollama", OllamaDouble()),
        ("vllm", VLLMDouble()),
        ("vllm", SGLangDouble()),
        ("", LiteLLMDouble()),
        ("", OpenRouterDouble()),
    ],
    ids=["lmstudio", "llamacpp", "router", "ollama", "vllm", "sglang", "litellm", "openrouter"],
)
def test_a_server_is_known_by_what_only_it_answers(kind: str, double: ChatDouble) -> None:
    with double:
        assert recognise_kind(f"{double.url}/v1", "a-key", timeout_seconds=5, allow_private=False) == kind
