"""deepagents' agent with a memory, beside its own tools for plans, files and agents of its own."""

import sys

from common import place, report, run
from deepagents import create_deep_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

model = ChatOpenAI(model=place["MODEL"], base_url=f"{place['BASE_URL']}/v1", api_key=place["KEY"])
agent = create_deep_agent(model=model, tools=[run], checkpointer=InMemorySaver())
one = {"configurable": {"thread_id": "one"}}
report([agent.invoke({"messages": [("user", text)]}, one)["messages"][-1].content for text in sys.argv[1:]])
