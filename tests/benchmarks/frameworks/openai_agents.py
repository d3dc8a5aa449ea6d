"""The OpenAI Agents SDK with the session that its documentation names for production, ``SQLAlchemySession``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.benchmarks.frameworks import adapter
from tests.benchmarks.frameworks.adapter import INSTRUCTIONS, MODEL, Servers


class OfOpenAIAgents:
    def __init__(self, agent: Any, engine: Any) -> None:
        self.agent, self.engine = agent, engine

    def _session(self, dialog: str) -> Any:
        from agents.extensions.memory import SQLAlchemySession

        return SQLAlchemySession(dialog, engine=self.engine)

    async def store(self, dialog: str, exchanges: list[tuple[str, str]]) -> None:
        items = []
        for asked, answered in exchanges:
            content = [{"type": "output_text", "text": answered, "annotations": []}]
            answer = {"type": "message", "role": "assistant", "status": "completed", "content": content}
            items += [{"role": "user", "content": asked}, {"id": "__fake_id__", **answer}]
        await self._session(dialog).add_items(items)

    async def answer(self, dialog: str, text: str, window: int | None) -> str:
        from agents import RunConfig, Runner, SessionSettings

        config = RunConfig(session_settings=SessionSettings(limit=window))
        result = Runner.run_streamed(self.agent, text, session=self._session(dialog), run_config=config)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)


@asynccontextmanager
async def opened(servers: Servers) -> AsyncIterator[OfOpenAIAgents]:
    from agents import Agent, OpenAIChatCompletionsModel, set_tracing_disabled
    from agents.extensions.memory import SQLAlchemySession
    from openai import AsyncOpenAI
    from sqlalchemy.ext.asyncio import create_async_engine

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=servers.model_url, api_key="none")
    agent = Agent("Bench", instructions=INSTRUCTIONS, model=OpenAIChatCompletionsModel(MODEL, client))
    engine = create_async_engine(servers.asyncpg_url)
    await SQLAlchemySession("first", engine=engine, create_tables=True).get_items()
    yield OfOpenAIAgents(agent, engine)
    await engine.dispose()


def main() -> None:
    adapter.main(opened, ["openai-agents", "openai", "sqlalchemy", "asyncpg"], __doc__)


if __name__ == "__main__":
    main()
