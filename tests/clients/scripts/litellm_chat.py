"""LiteLLM's completion, streamed, with a loop of tools of its user's."""

import json
import sys

import litellm
from common import place, report, run

litellm.telemetry = False
PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS = [{"type": "function", "function": {"name": "run", "description": "Run a command.", "parameters": PARAMETERS}}]
history, answers = [], []
for text in sys.argv[1:]:
    history.append({"role": "user", "content": text})
    while True:
        chunks = litellm.completion(
            f"openai/{place['MODEL']}",
            history,
            tools=TOOLS,
            api_base=f"{place['BASE_URL']}/v1",
            api_key=place["KEY"],
            stream=True,
            stream_options={"include_usage": True},
        )
        message = litellm.stream_chunk_builder(list(chunks)).choices[0].message
        history.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            result = run(json.loads(call.function.arguments)["command"])
            history.append({"role": "tool", "tool_call_id": call.id, "content": result})
    answers.append(message.content)
report(answers)
