"""pydantic-ai: its tool, and the messages of all turns before; with ``NativeOutput`` where FORM is set."""

import sys

from common import FORM, place, report, run
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Done(BaseModel):
    task: int
    outcome: str


provider = OpenAIProvider(base_url=f"{place['BASE_URL']}/v1", api_key=place["KEY"])
output = NativeOutput(Done) if FORM else str
agent = Agent(OpenAIChatModel(place["MODEL"], provider=provider), instructions="Be brief.", output_type=output)
agent.tool_plain(run)
answers, history = [], []
for text in sys.argv[1:]:
    done = agent.run_sync(text, message_history=history)
    answers.append(done.output.model_dump_json() if FORM else done.output)
    history = done.all_messages()
report(answers)
