"""The way to a model server: through the environment's proxy or directly, and over TLS only to whom we trust."""

import os
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.provider import RequestRefused
from tests.dominds.llm.asking import ask, chat_at
from tests.dominds.llm.model_server import ModelServer, data, running_server, stream_of

END = data({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}, b"[DONE]")


def test_a_call_goes_through_the_proxy_of_the_environment(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    server.will(stream_of(END))
    assert ask(chat_at(Endpoint("http://models.invalid/v1", "sk-canary-01"))).text == "Hi"
    assert server.asked[0].path == "http://models.invalid/v1/chat/completions"
    assert server.asked[0].headers["authorization"] == "Bearer sk-canary-01"


def test_servers_of_this_machine_are_asked_directly(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.will(stream_of(END))
    assert ask(chat_at(Endpoint(f"{server.url}/v1"))).text == "Hi"


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


ASK = """
import sys
from dominds.llm.http.endpoint import Endpoint
from dominds.llm.provider import ProviderError
from tests.dominds.llm.asking import ask, chat_at
try:
    print(ask(chat_at(Endpoint(sys.argv[1] + "/v1"))).text)
except ProviderError as error:
    print(type(error).__name__, error)
"""


def asked_by_a_new_process(url: str, **environment: str) -> str:
    """What certificates are trusted is read once in a process."""
    command = [sys.executable, "-c", ASK, url]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def test_a_server_is_asked_only_if_its_certificate_is_trusted(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    named = ["-subj", "/CN=models", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *named], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with running_server(tls) as server:
        server.will(stream_of(END))
        assert asked_by_a_new_process(server.url, SSL_CERT_FILE=str(certificate)) == "Hi"
        refused = asked_by_a_new_process(server.url)
        assert refused.startswith("RequestRefused The certificate of 127.0.0.1:")
        assert "is not trusted: self-signed certificate." in refused
        assert "SSL_CERT_FILE" in refused
        assert not RequestRefused.retryable  # it will be the same certificate
    assert len(server.asked) == 1
