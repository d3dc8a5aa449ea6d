"""pydantic-ai: its tool, and the messages of all turns before."""

import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from told import place, run, tell

provider = OpenAIProvider(base_url=f"{place['BASE_URL']}/v1", api_key=place["KEY"])
agent = Agent(OpenAIChatModel(place["MODEL"], provider=provider), instructions="Be brief.")
agent.tool_plain(run)
answers, said = [], []
for text in sys.argv[1:]:
    done = agent.run_sync(text, message_history=said)
    answers.append(done.output)
    said = done.all_messages()
tell(answers)
