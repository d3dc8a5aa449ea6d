"""The tool loop of Anthropic's client, which asks for a thread first."""

from typing import Any

import httpx2
import orjson
import pytest
from anthropic import Anthropic, beta_tool

from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.messages.answer import error_body
from dialogs.extras.v1.messages.request import chat_request_of

pytestmark = pytest.mark.unit


@beta_tool
def sound_depth(port: str) -> str:
    """Tell how deep a harbour is."""
    return f"{port}: 15 metres"


def test_it_goes_on_without_a_thread_where_that_is_refused() -> None:
    bodies: list[dict[str, Any]] = []
    refused: list[str] = []

    def answer(request: Any) -> Any:
        body = orjson.loads(request.content)
        try:
            chat_request_of(body)
        except ApiError as error:
            refused.append(error.code)
            return httpx2.Response(error.status, json=error_body(error))
        bodies.append(body)
        used = {"type": "tool_use", "id": "call_1_0", "name": "sound_depth", "input": {"port": "Genua"}}
        content = [used] if len(bodies) == 1 else [{"type": "text", "text": "It is fifteen metres deep."}]
        message = {"id": f"msg_{len(bodies)}", "type": "message", "role": "assistant", "model": "a", "content": content}
        ends = {"stop_reason": "tool_use" if len(bodies) == 1 else "end_turn", "stop_sequence": None}
        return httpx2.Response(200, json={**message, **ends, "usage": {"input_tokens": 1, "output_tokens": 1}})

    client = Anthropic(api_key="k", http_client=httpx2.Client(transport=httpx2.MockTransport(answer)), max_retries=0)
    asked: Any = [{"role": "user", "content": "How deep is Genua?"}]
    last = client.beta.messages.tool_runner(model="a", max_tokens=99, tools=[sound_depth], messages=asked).until_done()
    assert last.content[0].type == "text"
    assert [len(body["messages"]) for body in bodies] == [1, 3], "the whole conversation each time"
    assert refused == ["thread_unsupported_request"], "it asks for a thread once"
