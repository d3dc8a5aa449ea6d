"""Our headers are those of the vendors' own libraries, as far as a server looks at them."""

from typing import Any

import anthropic
import openai
import pytest

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.http.headers import anthropic_headers, openai_headers

ENDPOINT = Endpoint("https://api.example/v1", "a-key")


def judged(headers: Any) -> dict[str, str]:
    """Names are case-insensitive. What is left out says who asks, or asks for a whole answer in place of a stream."""
    names = ("authorization", "x-api-key", "content-type", "anthropic-version", "openai-organization", "openai-project")
    lower = {name.lower(): value for name, value in headers.items() if isinstance(value, str)}
    return {name: lower[name] for name in names if name in lower}


@pytest.mark.parametrize("account", [{}, {"OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-1"}])
def test_openais(account: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in account.items():
        monkeypatch.setenv(name, value)
    with openai.OpenAI(api_key=ENDPOINT.key, base_url=ENDPOINT.base_url) as client:
        theirs = judged({**client.default_headers, **client.auth_headers})
    assert judged(openai_headers(ENDPOINT, is_openai=True)) == theirs
    assert {"authorization": "Bearer a-key", "content-type": "application/json"}.items() <= theirs.items()


def test_anthropics() -> None:
    with anthropic.Anthropic(api_key=ENDPOINT.key, base_url=ENDPOINT.base_url) as client:
        theirs = judged({**client.default_headers, **client.auth_headers})
    assert judged(anthropic_headers(ENDPOINT, is_anthropic=True)) == theirs
    assert theirs["anthropic-version"]


def test_betas_are_named_in_one_header() -> None:
    assert anthropic_headers(ENDPOINT, is_anthropic=True, betas=("a", "b"))["anthropic-beta"] == "a,b"
    assert "anthropic-beta" not in anthropic_headers(ENDPOINT, is_anthropic=True)
