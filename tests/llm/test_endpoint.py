"""The way to a model server: through the environment's proxy, or directly."""

import pytest

from dominds.llm.endpoint import Endpoint
from dominds.llm.openai_chat import OpenAIChat
from tests.llm.asking import ask
from tests.llm.model_server import ModelServer, data, stream_of

END = data({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}, b"[DONE]")


def test_a_call_goes_through_the_proxy_of_the_environment(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    server.will(stream_of(END))
    assert ask(OpenAIChat(Endpoint("http://models.invalid/v1", "sk-canary-01"))).text == "Hi"
    assert server.asked[0].path == "http://models.invalid/v1/chat/completions"
    assert server.asked[0].headers["authorization"] == "Bearer sk-canary-01"


def test_servers_of_this_machine_are_asked_directly(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.will(stream_of(END))
    assert ask(OpenAIChat(Endpoint(f"{server.url}/v1"))).text == "Hi"


@pytest.mark.parametrize(
    ("variable", "url", "proxy"),
    [
        ("https_proxy", "https://by-scheme.invalid/v1", "http://a-proxy:3128"),
        ("https_proxy", "http://other-scheme.invalid/v1", None),
        ("all_proxy", "https://any-scheme.invalid/v1", "http://a-proxy:3128"),
    ],
)
def test_the_proxy_is_named_by_scheme_or_for_all(
    monkeypatch: pytest.MonkeyPatch, variable: str, url: str, proxy: str | None
) -> None:
    monkeypatch.setenv(variable, "http://a-proxy:3128")
    assert Endpoint(url).proxy() == proxy


def test_no_proxy_stands_between_us_and_a_server_that_is_excepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://a-proxy:3128")
    monkeypatch.setenv("no_proxy", "near.invalid,10.0.0.7:8080")
    assert Endpoint("http://near.invalid/v1").proxy() is None
    assert Endpoint("http://10.0.0.7:8080/v1").proxy() is None
    assert Endpoint("http://far.invalid/v1").proxy() == "http://a-proxy:3128"
