"""LangGraph's agent with a memory: each turn sends the whole conversation."""

import sys

from common import place, report, run
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent

model = ChatOpenAI(model=place["MODEL"], base_url=f"{place['BASE_URL']}/v1", api_key=place["KEY"])
agent = create_react_agent(model, [run], checkpointer=InMemorySaver())
one = {"configurable": {"thread_id": "one"}}
report([agent.invoke({"messages": [("user", text)]}, one)["messages"][-1].content for text in sys.argv[1:]])
