"""pydantic-ai, kept as its example of a chat application does: a row for each run with the JSON of its new messages.

It brings no durable store for PostgreSQL; rows and window are the application's,
so this is the cheapest that it can be.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.benchmarks.frameworks import adapter
from tests.benchmarks.frameworks.adapter import INSTRUCTIONS, MODEL, Servers


class OfPydanticAI:
    def __init__(self, agent: Any, connection: Any) -> None:
        self.agent, self.connection = agent, connection

    async def store(self, dialog: str, exchanges: list[tuple[str, str]]) -> None:
        from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart, UserPromptPart

        for asked, answered in exchanges:
            request = ModelRequest(parts=[UserPromptPart(asked)], instructions=INSTRUCTIONS)
            new = [request, ModelResponse(parts=[TextPart(answered)], model_name=MODEL)]
            await self._insert(dialog, ModelMessagesTypeAdapter.dump_json(new))
        await self.connection.commit()

    async def _insert(self, dialog: str, new_messages: bytes) -> None:
        insert = "INSERT INTO messages (dialog, message_list) VALUES (%s, %s)"
        await self.connection.execute(insert, (dialog, new_messages.decode()))

    async def answer(self, dialog: str, text: str, window: int | None) -> str:
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        runs = None if window is None else window // 2
        select = "SELECT message_list FROM messages WHERE dialog = %s ORDER BY id DESC LIMIT %s"
        rows = await (await self.connection.execute(select, (dialog, runs))).fetchall()
        results = [message for row in reversed(rows) for message in ModelMessagesTypeAdapter.validate_json(row[0])]
        answer = ""
        async with self.agent.run_stream(text, message_history=results) as result:
            async for part in result.stream_text(debounce_by=None):
                answer = part
        await self._insert(dialog, result.new_messages_json())
        await self.connection.commit()
        return answer


@asynccontextmanager
async def opened(servers: Servers) -> AsyncIterator[OfPydanticAI]:
    import psycopg
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=servers.model_url, api_key="none"))
    async with await psycopg.AsyncConnection.connect(servers.conninfo) as connection:
        await connection.execute(
            "CREATE TABLE messages (id bigserial PRIMARY KEY, dialog uuid NOT NULL, message_list text NOT NULL)"
        )
        await connection.execute("CREATE INDEX ON messages (dialog, id)")
        await connection.commit()
        yield OfPydanticAI(Agent(model, instructions=INSTRUCTIONS), connection)


def main() -> None:
    adapter.main(opened, ["pydantic-ai-slim", "openai", "psycopg"], __doc__)


if __name__ == "__main__":
    main()
