"""OpenAI's package for Python with a loop of its user's: chat completions streamed,
or Responses that go on by their ids."""

import json
import os
import sys
from typing import Any

from common import place, report, run
from openai import OpenAI

client = OpenAI(base_url=f"{place['BASE_URL']}/v1", api_key=place["KEY"], max_retries=0)
PARAMETERS = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
    "additionalProperties": False,
}
RUN: Any = {"name": "run", "description": "Run a command.", "parameters": PARAMETERS, "strict": True}


def by_chat(text: str, texts: list[Any]) -> str:
    texts.append({"role": "user", "content": text})
    while True:
        asked = {"model": place["MODEL"], "messages": texts, "tools": [{"type": "function", "function": RUN}]}
        with client.chat.completions.stream(**asked) as stream:
            message = stream.get_final_completion().choices[0].message
        texts.append(message)
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            result = run(json.loads(call.function.arguments)["command"])
            texts.append({"role": "tool", "tool_call_id": call.id, "content": result})


def by_responses(text: str, texts: list[Any]) -> str:
    """``texts`` is the newest response alone: the server holds the conversation."""
    new: Any = text
    while True:
        before = texts[-1].id if texts else None
        tools = [{"type": "function", **RUN}]
        done = client.responses.create(model=place["MODEL"], input=new, tools=tools, previous_response_id=before)
        texts[:] = [done]
        calls = [item for item in done.output if item.type == "function_call"]
        if not calls:
            return done.output_text
        results = [(call, run(json.loads(call.arguments)["command"])) for call in calls]
        new = [{"type": "function_call_output", "call_id": call.call_id, "output": text} for call, text in results]


history: list[Any] = []
turn = by_responses if os.environ.get("WIRE") == "responses" else by_chat
report([turn(text, history) for text in sys.argv[1:]])
