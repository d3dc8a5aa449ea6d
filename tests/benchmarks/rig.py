"""What the benchmarks with processes share: a durable PostgreSQL, a model server, a stack, and Django in this process.

Import nothing of Django before ``rig()`` has been entered: settings read the addresses of these servers.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tests.harness.postgres import PostgresServer
from tests.harness.redis_server import RedisServer
from tests.harness.stack import ROOT, Stack, running

HUGE = 100_000_000  # tokens: no level, policy or limit interferes
SMALL = 8_000  # tokens, the window of "prose-small", "counted-small" and "counted-otherwise"
NO_LIMITS = {
    "SECRET_KEY": "only-for-benchmarks-" + "0123456789abcdef" * 3,
    "DOMINDS_MESSAGES_PER_MINUTE": "0",
    "DOMINDS_RUNNING_DIALOGS": "0",
    "DOMINDS_LOG_LEVEL": "WARNING",
}


@dataclass
class Rig:
    stack: Stack
    postgres: PostgresServer
    model_process: "subprocess.Popen[str]"
    model_url: str
    own_redis: RedisServer  # of this process: what it wakes must not reach the stack's workers

    def agent(self, model: str, policy: str = "none") -> Any:
        from dialogs.models import Agent

        return Agent.objects.get_or_create(
            id=f"bench-{model}-{policy}",
            defaults={
                "name": "Bench",
                "provider": "bench",
                "model": model,
                "instructions": "Be brief.",
                "context_policy": policy,
            },
        )[0]

    def people(self, number: int) -> list[Any]:
        from django.contrib.auth.models import User

        return [User.objects.get_or_create(username=f"bench-{index}")[0] for index in range(number)]


@contextmanager
def rig(
    *, workers: int = 1, concurrency: int = 16, tokens: int = 250, answer_chars: int = 400, **settings: str
) -> Iterator[Rig]:
    """Start everything; end it whatever happens. This process sees the stack's database, but has a Redis of its own."""
    with ExitStack() as opened:
        postgres = PostgresServer(durable=True, options=("track_commit_timestamp=on",)).start()
        opened.callback(postgres.remove)
        own_redis = RedisServer().start()
        opened.callback(own_redis.remove)
        model, model_url = opened.enter_context(
            model_server("--tokens", str(tokens), "--answer-chars", str(answer_chars))
        )
        stack = Stack(postgres.create_database("bench"), concurrency, {**NO_LIMITS, **settings})
        stack.minds_dir.mkdir(parents=True)
        (stack.minds_dir / "llm.yaml").write_text(_llm_yaml(model_url))
        opened.enter_context(running(stack, workers))
        os.environ.update(stack.environment, REDIS_URL=own_redis.url)
        import django

        django.setup()
        yield Rig(stack, postgres, model, model_url, own_redis)


@contextmanager
def model_server(*options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Start the provider; give its process and address."""
    command = [sys.executable, "-m", "tests.benchmarks.model_server", *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def _llm_yaml(model_url: str) -> str:
    windows = {"quick": HUGE, "prose-whole": HUGE, "steady": HUGE, "counted": HUGE}
    windows |= {"prose-small": SMALL, "counted-small": SMALL, "counted-otherwise": SMALL}
    models = "".join(
        f"      {name}: {{name: {name}, context_length: {tokens}, optimal_max_tokens: {HUGE}}}\n"
        for name, tokens in windows.items()
    )
    return (
        "providers:\n  bench:\n    name: Bench\n    apiType: openai-compatible\n"
        f"    baseUrl: {model_url}/v1\n    models:\n{models}"
    )


def load() -> str:
    """How busy the machine was, for the report."""
    one, five, _ = os.getloadavg()
    return f"{os.cpu_count()} cores, load {one:.1f} (1 min), {five:.1f} (5 min)"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def progress() -> Progress:
    """On standard error: standard output is the report's."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))


def report(text: str, to: Path | None = None) -> None:
    """Print a part of the report, and add it to the file that ``make bench`` collects."""
    print(text + "\n", flush=True)
    target = to or Path(os.environ.get("BENCH_REPORT", ROOT / "var" / "bench.md"))
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("a") as file:
        file.write(text + "\n\n")
