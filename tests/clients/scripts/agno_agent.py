"""agno's agent with its history."""

import sys

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat
from common import place, report, run

model = OpenAIChat(id=place["MODEL"], base_url=f"{place['BASE_URL']}/v1", api_key=place["KEY"])
agent = Agent(
    model=model,
    tools=[run],
    db=InMemoryDb(),
    session_id="one",
    add_history_to_context=True,
    num_history_runs=20,
    telemetry=False,
)
report([str(agent.run(text).content) for text in sys.argv[1:]])
