"""What all adapters share: conversations kept in PostgreSQL, asked for their next answer by lines
of JSON on standard input.

``{"dialog": id, "depth": n}`` stores ``n`` answered messages; ``{"dialog": id, "text": text, "window": n or null}``
asks one more. Needs the standard library only, since each framework has an environment of its own.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Protocol

from tests.benchmarks.seeding import ANSWER_CHARS, USER_CHARS, text_of

MODEL = "prose"
INSTRUCTIONS = "Be brief."


@dataclass(frozen=True)
class Servers:
    socket: str  # folder of PostgreSQL's socket
    database: str
    model_url: str  # as chat completions' base address, with /v1

    @property
    def conninfo(self) -> str:
        """For psycopg."""
        return f"host={self.socket} port=5432 user=dominds dbname={self.database}"

    @property
    def asyncpg_url(self) -> str:
        """For SQLAlchemy's asynchronous engine."""
        return f"postgresql+asyncpg://dominds@/{self.database}?host={self.socket}&port=5432"


class Conversations(Protocol):
    async def store(self, dialog: str, exchanges: list[tuple[str, str]]) -> None:
        """Store messages with their answers, as if they had been asked."""

    async def answer(self, dialog: str, text: str, window: int | None) -> str:
        """Send the newest ``window`` turns (None: all) and the text, stream the answer, store both and return it."""


Opened = Callable[[Servers], AbstractAsyncContextManager[Conversations]]


def history(depth: int) -> list[tuple[str, str]]:
    return [(text_of(USER_CHARS, n), text_of(ANSWER_CHARS, n)) for n in range(1, depth + 1)]


async def _serve(opened: Opened, servers: Servers, packages: list[str]) -> None:
    async with opened(servers) as conversations:
        print(json.dumps({"versions": [f"{name} {version(name)}" for name in packages]}), flush=True)
        while line := input_line():
            print(json.dumps(await _perform(conversations, json.loads(line))), flush=True)


async def _perform(conversations: Conversations, asked: dict[str, Any]) -> dict[str, Any]:
    if "depth" in asked:
        await conversations.store(asked["dialog"], history(asked["depth"]))
        return {}
    started = time.perf_counter()
    answer = await conversations.answer(asked["dialog"], asked["text"], asked["window"])
    return {"ms": (time.perf_counter() - started) * 1000, "answer": answer}


def input_line() -> str:
    try:
        return input()
    except EOFError:
        return ""


def main(opened: Opened, packages: list[str], description: str | None) -> None:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--socket", required=True, help="folder of PostgreSQL's socket")
    parser.add_argument("--database", required=True, help="an empty database")
    parser.add_argument("--model-url", required=True, help="of a server of chat completions, with /v1")
    asked = parser.parse_args()
    asyncio.run(_serve(opened, Servers(asked.socket, asked.database, asked.model_url), packages))
