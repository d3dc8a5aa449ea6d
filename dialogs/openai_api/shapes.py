"""OpenAI's objects. Each also carries ``metadata.dialog_id``, by which a client may go on with the dialog."""

import time
from dataclasses import dataclass, field
from typing import Any

from dialogs.models import Agent
from dialogs.openai_api.conversations import Run
from dialogs.openai_api.history import Call
from dialogs.openai_api.relay import Ended


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as it is told to one client."""

    run: Run
    labels: dict[str, Any] = field(default_factory=dict)
    created: int = field(default_factory=lambda: int(time.time()))

    def _object(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.run.dialog_id.hex}-{self.run.seq}",
            "object": kind,
            "created": self.created,
            "model": self.run.agent_id,
            "metadata": {**self.labels, "dialog_id": str(self.run.dialog_id)},
        }

    def chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._object("chat.completion.chunk"), "choices": [choice]}

    def usage_chunk(self, ended: Ended) -> dict[str, Any]:
        return {**self._object("chat.completion.chunk"), "choices": [], "usage": ended.usage}

    def whole(self, text: str, reasoning: str, ended: Ended) -> dict[str, Any]:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": text or None if ended.calls else text,
            "refusal": None,
        }
        if reasoning:
            message["reasoning_content"] = reasoning
        if ended.calls:
            message["tool_calls"] = [call_json(call) for call in ended.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": ended.finish_reason}
        return {**self._object("chat.completion"), "choices": [choice], "usage": ended.usage, "dominds": ended.health}


def call_json(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def model_json(agent: Agent, overview: dict[str, Any]) -> dict[str, Any]:
    """An agent as a model, in both protocols; one that cannot answer now says why."""
    return {
        "id": agent.pk,
        "object": "model",
        "type": "model",
        "display_name": overview["name"],
        "created": 0,
        "created_at": "1970-01-01T00:00:00Z",
        "owned_by": "dominds",
        "name": overview["name"],
        "context_length": overview["model_context_limit"],
        "usable": overview["usable"],
        "reason": overview["reason"],
    }
