"""LangChain's agent with a memory, by chat completions, Responses or Messages, whose middleware sums up what is old;
WIRE may say that answers are "streamed"."""

import sys
from typing import Any

from common import place, report
from common import run as silent_run
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

wire, *ways = place["WIRE"].split("-")
common: dict[str, Any] = {"model": place["MODEL"], "api_key": place["KEY"], "max_retries": 0}
common["streaming"] = "streamed" in ways
if wire == "messages":
    model: Any = ChatAnthropic(base_url=place["BASE_URL"], max_tokens=1000, **common)
else:
    model = ChatOpenAI(base_url=f"{place['BASE_URL']}/v1", use_responses_api=wire == "responses", **common)


def run(command: str) -> str:
    """Run a command of the shell."""
    return silent_run(command) + "And so on. " * 200


sums_up = SummarizationMiddleware(model, trigger=("tokens", 8_000), keep=("messages", 6))
agent: Any = create_agent(model, [run], middleware=[sums_up], checkpointer=InMemorySaver())
one = {"configurable": {"thread_id": "one"}}
report([agent.invoke({"messages": [("user", text)]}, one)["messages"][-1].text for text in sys.argv[1:]])
