"""OpenAI's Agents SDK: one session and its tool, through Responses or chat completions;
with ``output_type`` where FORM is set."""

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
from common import FORM, place, report, run
from openai import AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)


class Done(BaseModel):
    task: int
    outcome: str


@function_tool(name_override="run")
def shell(command: str) -> str:
    """Run a command."""
    return run(command)


async def main() -> None:
    client = AsyncOpenAI(base_url=f"{place['BASE_URL']}/v1", api_key=place["KEY"])
    kind = OpenAIResponsesModel if os.environ.get("WIRE") == "responses" else OpenAIChatCompletionsModel
    agent = Agent(name="Worker", tools=[shell], model=kind(place["MODEL"], client), output_type=Done if FORM else None)
    session = SQLiteSession("one")
    answers = [(await Runner.run(agent, text, session=session)).final_output for text in sys.argv[1:]]
    report([answer.model_dump_json() if FORM else answer for answer in answers])


asyncio.run(main())
