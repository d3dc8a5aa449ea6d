"""People at work on the embedded default (SQLite): they log in, write, read, rename.

``python -m tests.benchmarks.people [--people 50] [--seconds 60]``: latencies by kind of request, answers that were no
success, and how often the database was said to be locked. Run it on an idle machine.
"""

import argparse
import asyncio
import random
import re
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import httpx2

from tests.benchmarks import rig
from tests.harness.stack import Stack, running

PASSWORD = "correct horse battery"
THINKING_SECONDS = (1.0, 4.0)  # between two things that a person does
SCRIPT = {
    "usage": "estimate",
    "steps": [{"text": "An answer of some words. " * 8, "chunk_delay_ms": 20}],
}
MINDS = {
    "providers": {
        "bench": {"name": "Bench", "apiType": "scripted", "models": {"m": {"name": "M", "script": "answers.yaml"}}},
    }
}


@dataclass
class Measured:
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failed: Counter[str] = field(default_factory=Counter)

    async def call(self, kind: str, work: "asyncio.Future[httpx2.Response] | object") -> "httpx2.Response | None":
        began = time.perf_counter()
        try:
            answer: httpx2.Response = await work  # type: ignore[misc]
        except httpx2.HTTPError as error:
            self.failed[f"{kind} {type(error).__name__}"] += 1
            return None
        finally:
            self.seconds[kind].append(time.perf_counter() - began)
        if answer.status_code >= 400:
            self.failed[f"{kind} {answer.status_code}"] += 1
            return None
        return answer


def message() -> dict[str, str]:
    return {"text": "What do you say to this? " * 4, "client_message_id": uuid4().hex}


class Person:
    """One browser: a session, a dialog, and something to do every few seconds."""

    def __init__(self, stack: Stack, name: str, measured: Measured) -> None:
        self.client = httpx2.AsyncClient(base_url=stack.base_url, timeout=60, trust_env=False)
        self.name, self.measured = name, measured

    async def post(self, kind: str, address: str, **fields: str) -> "httpx2.Response | None":
        headers = {"X-CSRFToken": self.client.cookies.get("csrftoken") or "", "Referer": str(self.client.base_url)}
        return await self.measured.call(kind, self.client.post(address, data=fields, headers=headers))

    async def work(self, until: float) -> None:
        async with self.client:
            await asyncio.sleep(random.random() * 5)
            await self.client.get("/login/")
            if await self.post("login", "/login/", username=self.name, password=PASSWORD) is None:
                return
            made = await self.post("create", "/d/new/", agent="bench", **message())
            match = re.search(r"/d/[0-9a-f-]{36}/", made.headers.get("location", "")) if made else None
            if match is None:
                return
            while time.monotonic() < until:
                await self.act(match[0])
                await asyncio.sleep(random.uniform(*THINKING_SECONDS))

    async def act(self, address: str) -> None:
        match random.choices(("post", "page", "list", "rename"), (5, 3, 2, 1))[0]:
            case "post":
                await self.post("post", f"{address}messages/", **message())
            case "page":
                await self.measured.call("page", self.client.get(address))
            case "list":
                await self.measured.call("list", self.client.get("/dialogs/"))
            case "rename":
                await self.post("rename", f"{address}rename/", title=f"Title {random.random()}")


async def day(stack: Stack, people: int, seconds: float) -> Measured:
    measured, until = Measured(), time.monotonic() + seconds
    await asyncio.gather(*(Person(stack, f"person-{index}", measured).work(until) for index in range(people)))
    return measured


def make_people(stack: Stack, number: int) -> None:
    """By one command: each alone would take a second to start."""
    lines = (
        "from django.contrib.auth.models import User; from django.contrib.auth.hashers import make_password; "
        f"hashed = make_password({PASSWORD!r}); "
        "User.objects.create(username='boss', is_superuser=True); "
        f"User.objects.bulk_create(User(username=f'person-{{i}}', password=hashed) for i in range({number}))"
    )
    stack.manage("shell", "-c", lines)


def at(share: float, values: list[float]) -> str:
    return f"{sorted(values)[min(len(values) - 1, int(share * len(values)))] * 1000:,.0f}"


def run(people: int, seconds: float) -> tuple[Measured, int]:
    """What was measured, and how often the database was said to be locked."""
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'people.sqlite3'}"
        settings = dict(rig.NO_LIMITS)
        with running(Stack(url, concurrency=64, settings=settings)) as stack:
            stack.write_minds(
                llm=MINDS, answers=SCRIPT, team={"members": {"bench": {"provider": "bench", "model": "m"}}}
            )
            make_people(stack, people)
            measured = asyncio.run(day(stack, people, seconds))
            locked = sum(part.log_file.read_text(errors="replace").count("database is locked") for part in stack.parts)
    return measured, locked


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--people", type=int, default=50)
    options.add_argument("--seconds", type=float, default=60)
    chosen = options.parse_args()
    measured, locked = run(chosen.people, chosen.seconds)
    rows = [
        [kind, str(len(values)), at(0.5, values), at(0.99, values), at(1, values)]
        for kind, values in sorted(measured.seconds.items())
    ]
    rig.report(
        f"{chosen.people} people for {chosen.seconds:.0f} s on SQLite ({rig.load()})\n\n"
        + rig.table(("request", "number", "p50 ms", "p99 ms", "max ms"), rows)
        + f'\n\nNo success: {dict(measured.failed) or "none"}. "database is locked" in the logs: {locked}.'
    )


if __name__ == "__main__":
    main()
