"""LangGraph: an agent of LangChain's ``create_agent`` with LangGraph's checkpointer for PostgreSQL.

Its own way to a window is a hook before the model that takes older messages out of the state; earlier checkpoints keep
them. Checkpoints are written at the default durability, "async": beside the next step, all of them before the run ends.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.benchmarks.frameworks import adapter
from tests.benchmarks.frameworks.adapter import INSTRUCTIONS, MODEL, Servers


class OfLangGraph:
    def __init__(self, whole: Any, trimmed: Any) -> None:
        self.whole, self.trimmed = whole, trimmed

    async def store(self, dialog: str, exchanges: list[tuple[str, str]]) -> None:
        from langchain_core.messages import AIMessage, HumanMessage

        messages = [message for asked, answered in exchanges for message in (HumanMessage(asked), AIMessage(answered))]
        await self.whole.aupdate_state(_config(dialog, None), {"messages": messages}, as_node="model")

    async def answer(self, dialog: str, text: str, window: int | None) -> str:
        graph = self.whole if window is None else self.trimmed
        asked = {"messages": [{"role": "user", "content": text}]}
        parts = []
        async for part, _ in graph.astream(asked, _config(dialog, window), stream_mode="messages"):
            if part.type == "AIMessageChunk":
                parts.append(part.text)
        return "".join(parts)


def _config(dialog: str, window: int | None) -> dict[str, Any]:
    return {"configurable": {"thread_id": dialog, "window": window}}


def _trim() -> Any:
    from langchain.agents.middleware import before_model
    from langchain_core.messages import RemoveMessage
    from langgraph.config import get_config
    from langgraph.graph.message import REMOVE_ALL_MESSAGES

    @before_model
    def trim(state: Any, runtime: Any) -> dict[str, Any] | None:
        keep = get_config()["configurable"]["window"] + 1  # and the message just asked
        if len(state["messages"]) <= keep:
            return None
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *state["messages"][-keep:]]}

    return trim


@asynccontextmanager
async def opened(servers: Servers) -> AsyncIterator[OfLangGraph]:
    os.environ["LANGSMITH_TRACING"] = "false"
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    model = ChatOpenAI(model=MODEL, base_url=servers.model_url, api_key="none", streaming=True, stream_usage=True)
    async with AsyncPostgresSaver.from_conn_string(servers.conninfo) as checkpointer:
        await checkpointer.setup()
        whole, trimmed = (
            create_agent(model, tools=[], system_prompt=INSTRUCTIONS, middleware=middleware, checkpointer=checkpointer)
            for middleware in ([], [_trim()])
        )
        yield OfLangGraph(whole, trimmed)


def main() -> None:
    adapter.main(opened, ["langgraph", "langchain", "langchain-openai", "langgraph-checkpoint-postgres"], __doc__)


if __name__ == "__main__":
    main()
