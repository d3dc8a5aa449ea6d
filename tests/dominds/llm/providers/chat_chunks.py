"""What a server of OpenAI's chat completions streams, piece by piece."""

from typing import Any

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE, OpenAIChat
from tests.dominds.llm.asking import info
from tests.dominds.llm.model_server import ModelServer

DONE = b"[DONE]"
KEY = "sk-canary-0123456789"
USAGE = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def call(index: int | None, call_id: str | None = None, name: str | None = None, arguments: str = "") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    piece: dict[str, Any] = {"function": function}
    if index is not None:
        piece["index"] = index
    if call_id is not None:
        piece["id"] = call_id
    return delta(tool_calls=[piece])


def chat(server: ModelServer, **options: Any) -> OpenAIChat:
    return OpenAIChat(Endpoint(f"{server.url}/v1", KEY), info(OPENAI_COMPATIBLE, **options))
