"""The page that describes the API needs nobody else's server, and nothing that our content policy forbids."""

from typing import Any

from tests.harness.stack import Stack


def test_the_docs_show_every_call_without_a_violation(stack: Stack, page: Any) -> None:
    messages: list[str] = []
    foreign: list[str] = []
    page.on("console", lambda message: messages.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if stack.base_url in request.url else foreign.append(request.url))
    page.goto(f"{stack.base_url}/api/docs")
    page.get_by_text("/api/dialogs/{dialog_id}/messages", exact=False).first.wait_for()
    assert [text for text in messages if "Content Security Policy" in text] == []
    assert [url for url in foreign if not url.startswith("data:")] == []
