"""The default install, as ``dominds up`` starts it: its start, its memory at rest,
what a turn writes to the disk, log lines.

``python -m tests.benchmarks.table`` runs this. SQLite, the embedded Redis, agents that follow scripts.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import psutil

from dominds.local.embedded_redis import free_port
from tests.harness.stack import ROOT, eventually

UNSET = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS", "PORT", "DOMINDS_LOG", "DOMINDS_LOG_LEVEL")
RESTING_SECONDS = 5
SCRIPT = {"usage": "estimate", "steps": [{"text": "An answer of some words. " * 16}]}
LLM = {
    "providers": {
        "bench": {"name": "Bench", "apiType": "scripted", "models": {"m": {"name": "M", "script": "said.yaml"}}}
    }
}
TEAM = {"members": {"bench": {"provider": "bench", "model": "m"}}}
LINES = """
import logging.config, os, sys, time
import django
django.setup()
import structlog
log = structlog.get_logger("bench")
with structlog.contextvars.bound_contextvars(dialog_id="0" * 36, request_id="f" * 32):
    for number in range(200):
        log.info("answered", status=200)
    spent = time.process_time()
    for number in range(2000):
        log.info("answered", status=200, millis=12.5, path="/api/dialogs/x/messages", number=number)
    print("spent", (time.process_time() - spent) / 2000, file=sys.__stdout__)
"""


@dataclass
class Installed:
    """One running ``dominds up`` with its folder."""

    process: "subprocess.Popen[bytes]"
    command: list[str]
    port: int
    folder: Path
    environment: dict[str, str]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def processes(self) -> list[psutil.Process]:
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def resting_mb(self) -> float:
        time.sleep(RESTING_SECONDS)
        held: list[int] = [process.memory_full_info().pss for process in self.processes()]
        return sum(held) / 1e6

    def written_bytes(self) -> int:
        """What all its processes have sent to the disk."""
        result = 0
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                result += process.io_counters().write_bytes
        return result

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)

    def manage(self, *words: str) -> str:
        command = [sys.executable, str(ROOT / "manage.py"), *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True).stdout

    def log_lines(self) -> int:
        return (self.folder / "log").read_bytes().count(b"\n")


@contextmanager
def installed(**settings: str) -> Iterator[Installed]:
    with TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        minds = folder / "minds"
        minds.mkdir()
        for file, content in (("llm", LLM), ("team", TEAM), ("said", SCRIPT)):
            (minds / f"{file}.yaml").write_text(json.dumps(content))
        kept = {key: value for key, value in os.environ.items() if key not in UNSET}
        environment = {**kept, "DJANGO_SETTINGS_MODULE": "dominds.settings", **settings}
        environment |= {
            "DOMINDS_DATA_DIR": str(folder / "data"),
            "DOMINDS_MINDS_DIR": str(minds),
            "DOMINDS_MESSAGES_PER_MINUTE": "0",
        }
        environment |= {"DJANGO_SUPERUSER_USERNAME": "root", "DJANGO_SUPERUSER_PASSWORD": "correct horse battery"}
        command = [sys.executable, str(ROOT / "manage.py"), "up", "--port", str(port)]
        here = Installed(_start(command, environment, folder / "log")[0], command, port, folder, environment)
        try:
            yield here
        finally:
            here.stop()


def start_seconds(here: Installed, rounds: int) -> list[float]:
    """Of starts again, on the database that is there, each until it answers."""
    results = []
    for number in range(rounds):
        here.stop()
        here.process, seconds = _start(here.command, here.environment, here.folder / f"log-{number}")
        results.append(seconds)
    return results


def _start(command: list[str], environment: dict[str, str], log: Path) -> tuple["subprocess.Popen[bytes]", float]:
    at = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    eventually(lambda: b"Dominds is at" in log.read_bytes() or process.poll() is not None, 60, every=0.01)
    assert process.poll() is None, log.read_text()
    return process, time.perf_counter() - at


class Talk:
    """A dialog with the agent that follows a script, by the API."""

    def __init__(self, here: Installed) -> None:
        key = here.manage("apikey", "root").strip()
        self.client = httpx2.Client(
            base_url=here.base_url, headers={"Authorization": f"Bearer {key}"}, timeout=30, trust_env=False
        )
        self.address = f"/api/dialogs/{self._json('POST', '/api/dialogs', {'agent': 'bench'})['id']}"

    def exchange(self, text: str) -> None:
        self._json("POST", f"{self.address}/messages", {"text": text})
        eventually(lambda: self._json("GET", self.address)["state"] == "idle", every=0.02)

    def _json(self, method: str, path: str, body: object = None) -> Any:
        answer = self.client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()


def turn_costs(here: Installed, turns: int) -> tuple[float, float]:
    """Bytes written to the disk, and log lines, an exchange."""
    talk = Talk(here)
    for number in range(5):
        talk.exchange(f"Warm up {number}.")
    written, lines = here.written_bytes(), here.log_lines()
    for number in range(turns):
        talk.exchange(f"Message {number}. " * 6)
    return (here.written_bytes() - written) / turns, (here.log_lines() - lines) / turns


def line_millis(here: Installed) -> float:
    """Processor milliseconds of one log line, written to nowhere by the product's own settings."""
    done = subprocess.run(
        [sys.executable, "-c", LINES],
        cwd=ROOT,
        env=here.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return float(next(line for line in done.stdout.splitlines() if line.startswith("spent")).split()[1]) * 1000
