"""The least that anything must do that keeps a conversation in PostgreSQL:
one read, one call, two INSERTs in one commit."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import httpx2
import orjson
import psycopg

from tests.benchmarks.frameworks import adapter
from tests.benchmarks.frameworks.adapter import INSTRUCTIONS, Servers, history

INSERT = "INSERT INTO floor (dialog, seq, role, text) VALUES (%s, %s, %s, %s)"


class Floor:
    """``model_url`` ends in ``/v1``."""

    def __init__(self, conninfo: str, model_url: str, model: str = "quick") -> None:
        self.connection = psycopg.connect(conninfo)
        self.http = httpx2.Client(trust_env=False)
        self.url, self.model = f"{model_url}/chat/completions", model
        self.connection.execute(
            "CREATE TABLE floor (id bigserial PRIMARY KEY, dialog uuid NOT NULL, seq int NOT NULL, role text NOT NULL, "
            "text text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), UNIQUE (dialog, seq))"
        )
        self.connection.commit()

    def dialog_at(self, depth: int, dialog: UUID | None = None) -> UUID:
        dialog = dialog or uuid4()
        rows = []
        for n, (asked, answered) in enumerate(history(depth), start=1):
            rows += [(dialog, 2 * n - 1, "user", asked), (dialog, 2 * n, "assistant", answered)]
        with self.connection.cursor() as cursor:
            cursor.executemany(INSERT, rows)
        self.connection.commit()
        return dialog

    def exchange(self, dialog: UUID, text: str, window: int | None, tools: list[Any]) -> str:
        result = self.connection.execute(
            "SELECT seq, role, text FROM floor WHERE dialog = %s ORDER BY seq DESC LIMIT %s", (dialog, window)
        ).fetchall()[::-1]
        last = result[-1][0] if result else 0
        messages = [{"role": "system", "content": INSTRUCTIONS}]
        messages += [{"role": role, "content": text} for _, role, text in result]
        messages.append({"role": "user", "content": text})
        body = {"model": self.model, "messages": messages, "stream": True, "stream_options": {"include_usage": True}}
        if tools:
            body["tools"] = tools
        parts = []
        with self.http.stream("POST", self.url, content=orjson.dumps(body)) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: {") and (choices := orjson.loads(line[6:])["choices"]):
                    parts.append(choices[0]["delta"].get("content", ""))
        self.connection.execute(INSERT, (dialog, last + 1, "user", text))
        self.connection.execute(INSERT, (dialog, last + 2, "assistant", "".join(parts)))
        self.connection.commit()
        return "".join(parts)

    def size(self, *tables: str) -> int:
        # CHECKPOINT is not needed: sizes count pages, written or not.
        result = self.connection.execute(
            "SELECT sum(pg_total_relation_size(name::regclass))::bigint FROM unnest(%s::text[]) AS name",
            (list(tables),),
        ).fetchone()
        self.connection.commit()
        return int(result[0]) if result else 0


class OfTheFloor:
    def __init__(self, floor: Floor) -> None:
        self.floor = floor

    async def store(self, dialog: str, exchanges: list[tuple[str, str]]) -> None:
        self.floor.dialog_at(len(exchanges), UUID(dialog))

    async def answer(self, dialog: str, text: str, window: int | None) -> str:
        return self.floor.exchange(UUID(dialog), text, window, [])


@asynccontextmanager
async def opened(servers: Servers) -> AsyncIterator[OfTheFloor]:
    yield OfTheFloor(Floor(servers.conninfo, servers.model_url, adapter.MODEL))


def main() -> None:
    adapter.main(opened, ["psycopg", "httpx2"], __doc__)


if __name__ == "__main__":
    main()
