"""OpenAI's Agents SDK: one session, its tool, and a last answer in a form, through Responses or chat completions."""

import asyncio
import os
import sys

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from told import place, run, tell

set_tracing_disabled(True)


@function_tool(name_override="run")
def shell(command: str) -> str:
    """Run a command."""
    return run(command)


async def main() -> None:
    client = AsyncOpenAI(base_url=f"{place['BASE_URL']}/v1", api_key=place["KEY"])
    kind = OpenAIResponsesModel if os.environ.get("WIRE") == "responses" else OpenAIChatCompletionsModel
    agent = Agent(name="Worker", tools=[shell], model=kind(place["MODEL"], client))
    session = SQLiteSession("one")
    tell([(await Runner.run(agent, text, session=session)).final_output for text in sys.argv[1:]])


asyncio.run(main())
