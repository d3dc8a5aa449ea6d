"""One checkout's side of a pair: it does what it is asked for, a line each, and answers with what that took.

``pairs`` starts this file in each checkout, also in one that has no such file. It may therefore use only what all of
them have: ``rig()``, ``dialog_at()`` and ``in_process()`` of the checkout's own benchmarks, and addresses.
"""

import gc
import gzip
import http.client
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from random import Random
from typing import Any

import psutil

from tests.benchmarks import rig
from tests.benchmarks.overhead import in_process
from tests.benchmarks.seeding import dialog_at

USER_CHARS = 100
REWRITTEN_DEPTH = 60  # exchanges of 125 tokens, nearly the window of the model "counted-small"
AFTERWARDS_SECONDS = 0.05  # a worker may go on after the answer


def text_of(number: int) -> str:
    rng = Random(number)
    return f"{number} {' '.join(str(rng.randrange(10_000)) for _ in range(USER_CHARS))}"[:USER_CHARS]


def cpu_ms(pid: int) -> float:
    """Return the processor time of a process, to the nanosecond and with threads that have ended."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e6  # clock_getcpuclockid(3), which Python does not offer


class Side:
    def __init__(self, running: rig.Rig) -> None:
        self.rig, self.number = running, 0
        self.wire = http.client.HTTPConnection("127.0.0.1", running.stack.port, timeout=60)
        self.talk: list[dict[str, str]] = []

    # -- what is done --------------------------------------------------------------------------------------------------
    def work(self, name: str, argument: str) -> Callable[[], dict[str, float]]:
        """Prepare one piece of work, and return it."""
        self.number += 1
        match name:
            case "turn":
                return self._message(self.dialog(int(argument)).pk)
            case "rewrite":
                agent = self.rig.agent("counted-small", argument)
                agent.prepare_rewrites = False  # a second later, while something else is measured
                agent.save()
                return self._message(dialog_at(REWRITTEN_DEPTH, agent, self.rig.people(1)[0]).pk)
            case "page":
                address = f"/d/{self.dialog(int(argument)).pk}/" if argument != "home" else "/"
                return lambda: self._ask("GET", address, "", {"Cookie": f"sessionid={self.session()}"})[0]
            case _:
                return self._v1

    def _message(self, dialog_id: Any) -> Callable[[], dict[str, float]]:
        def send() -> dict[str, float]:
            in_process(dialog_id, text_of(self.number))
            return {}

        return send

    def _v1(self) -> dict[str, float]:
        self.talk.append({"role": "user", "content": text_of(self.number)})
        body = json.dumps({"model": self.rig.agent("quick").pk, "messages": self.talk})
        headers = {"Authorization": f"Bearer {self.key()}", "Content-Type": "application/json"}
        answer, text = self._ask("POST", "/v1/chat/completions", body, headers)
        self.talk.append(json.loads(text)["choices"][0]["message"])
        return answer

    def _ask(self, method: str, address: str, body: str, headers: dict[str, str]) -> tuple[dict[str, float], bytes]:
        self.wire.request(method, address, body, {**headers, "Accept-Encoding": "gzip"})
        answer = self.wire.getresponse()
        sent = answer.read()
        assert answer.status == 200, (answer.status, sent[:500])
        text = gzip.decompress(sent) if answer.headers.get("Content-Encoding") == "gzip" else sent
        time.sleep(AFTERWARDS_SECONDS)
        return {"bytes": len(text), "bytes sent": len(sent)}, text

    @cache  # noqa: B019  one side lives as long as its process
    def dialog(self, depth: int) -> Any:
        return dialog_at(depth, self.rig.agent("quick"), self.rig.people(1)[0])

    @cache  # noqa: B019
    def session(self) -> str:
        from tests.harness.browser import session_key

        return session_key(self.rig.people(1)[0])

    @cache  # noqa: B019
    def key(self) -> str:
        return str(self.rig.stack.manage("apikey", self.rig.people(1)[0].username).strip())

    # -- what that takes -----------------------------------------------------------------------------------------------
    def timed(self, name: str, argument: str) -> dict[str, float]:
        """Return milliseconds of CPU of Python and of PostgreSQL, and bytes of an answer."""
        work = self.work(name, argument)
        in_here = name in ("turn", "rewrite")
        stack = self.rig.stack
        pids = [] if in_here else [part.pid for part in (stack.web, *stack.workers)]
        assert self.rig.postgres.process is not None
        backends = [child.pid for child in psutil.Process(self.rig.postgres.process.pid).children()]
        gc.collect()
        began, own = self._cpu(pids), time.process_time_ns()
        began_there = self._cpu(backends)
        answer = work()
        own = time.process_time_ns() - own
        python = own / 1e6 if in_here else sum(self._cpu(pids).values()) - sum(began.values())
        there = self._cpu(backends)
        return {
            **answer,
            "python": python,
            "database": sum(there[pid] - began_there[pid] for pid in there if pid in began_there),
        }

    def _cpu(self, pids: list[int]) -> dict[int, float]:
        return {pid: cpu_ms(pid) for pid in pids if psutil.pid_exists(pid)}

    def counted(self, name: str, argument: str) -> dict[str, float]:
        """Return statements, bytes of the write-ahead log, and calls of Python in this process."""
        work, calls = self.work(name, argument), 0

        def profile(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event == "call"

        with self._statements() as statements:
            sys.setprofile(profile)
            try:
                work()
            finally:
                sys.setprofile(None)
        return {**statements, "calls": calls}

    @contextmanager
    def _statements(self) -> Iterator[dict[str, float]]:
        run, counted = self.rig.postgres.execute, dict[str, float]()
        run("ALTER SYSTEM SET log_statement = 'all'")
        run("SELECT pg_reload_conf()")
        time.sleep(0.2)  # the signal goes to each process of the server
        before = len(self.rig.postgres.log)
        ((start,),) = run("SELECT pg_current_wal_insert_lsn() - '0/0'")
        yield counted
        ((end,),) = run("SELECT pg_current_wal_insert_lsn() - '0/0'")
        log = self.rig.postgres.log[before:].splitlines()
        run("ALTER SYSTEM RESET log_statement")
        run("SELECT pg_reload_conf()")
        texts = [line for line in log if "statement: " in line or "execute " in line]
        texts = [line for line in texts if "pg_current_wal_insert_lsn" not in line]
        counted |= {"statements": len(texts), "written": int(end - start)}  # type: ignore[operator]


@contextmanager
def prepared(stack: Any, _workers: int = 1) -> Iterator[Any]:
    """Prepare the database alone: a turn and a rewrite happen in this process, and a stack takes long to start."""
    stack.minds_dir.mkdir(parents=True, exist_ok=True)
    stack.redis.start()
    stack.manage("prepare")
    yield stack
    stack.redis.remove()


def serve() -> None:
    if "in-here" in sys.argv:
        vars(rig)["running"] = prepared
    # Workers sweep by default, and did not in all checkouts: a sweeper is a process of its own, which nobody measures.
    with rig.rig(DOMINDS_SWEEPS="0") as running:
        side = Side(running)
        print("=", json.dumps({}), flush=True)
        for line in sys.stdin:
            how, name, argument = line.split()
            answer = side.timed(name, argument) if how == "timed" else side.counted(name, argument)
            print("=", json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
