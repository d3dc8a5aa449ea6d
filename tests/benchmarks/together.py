"""What people feel at once: exchanges, open pages, many messages together, and calls of ``/v1``, beside the raw floor.

``python -m tests.benchmarks.table`` runs this. Processor time is that of the web process, the workers, PostgreSQL and
Redis; the client and the model server are left out. Commits are timed by PostgreSQL (``track_commit_timestamp``).
"""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any
from uuid import UUID

import httpx2
import orjson
import psutil
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.benchmarks.frameworks.floor import Floor
from tests.benchmarks.overhead import Product, in_process
from tests.benchmarks.rig import Rig
from tests.benchmarks.seeding import USER_CHARS, dialog_at, text_of
from tests.harness.stack import ROOT

WAIT_SECONDS = 60
DIALOGS_PER_PERSON = 10  # a person may have 20 sockets


def cpu_of(*pids: int) -> float:
    """Seconds of processor time of these process trees, with those that have ended."""
    spent = 0.0
    for pid in pids:
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                spent += times.user + times.system + (times.children_user + times.children_system)
    return spent


def product_pids(rig: Rig) -> tuple[int, ...]:
    assert rig.postgres.process is not None
    assert rig.stack.redis.process is not None
    parts = (rig.stack.web.process, *(part.process for part in rig.stack.workers))
    return (*(part.pid for part in parts), rig.postgres.process.pid, rig.stack.redis.process.pid)


def cpu_millis(pids: Sequence[int], times: int, work: Callable[[int], object]) -> float:
    """Milliseconds of processor time of these processes for each of so many repetitions."""
    before = cpu_of(*pids)
    for number in range(times):
        work(number)
    return (cpu_of(*pids) - before) * 1000 / times


# -- pages -------------------------------------------------------------------------------------------------------------


@dataclass
class Page:
    """One open page: its socket, read at once and acknowledged. Moments are seconds of the epoch."""

    dialog_id: UUID
    cookie: str
    after: int = 0
    answers: dict[int, float] = field(default_factory=dict)  # when an assistant's turn came, by its seq
    came: list[tuple[float, int]] = field(default_factory=list)  # when a frame came, and its bytes
    seq: int = 0

    async def listen(self, rig: Rig, ready: asyncio.Semaphore) -> None:
        url = f"{rig.stack.socket_url}/ws/dialogs/{self.dialog_id}/?after={self.after}"
        origin: Any = rig.stack.base_url
        cookies = {"Cookie": f"sessionid={self.cookie}"}
        with suppress(OSError, WebSocketException):
            async with connect(url, additional_headers=cookies, origin=origin, compression=None) as socket:
                await socket.send('{"type":"ack","n":0}')  # as a page does
                ready.release()
                async for text in socket:
                    now, frame = time.time(), orjson.loads(text)
                    self.came.append((now, len(text)))
                    self.seq = frame.get("seq", self.seq)
                    if frame["type"] == "ping":
                        await socket.send(orjson.dumps({"type": "ack", "n": frame["n"]}).decode())
                    elif frame["type"] == "turn" and frame["data"].get("role") == "assistant":
                        self.answers.setdefault(frame["data"]["seq"], now)


class Pages:
    """The pages that are open, on a loop and thread of their own."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    @contextmanager
    def opened(self, pages: Sequence[Page]) -> Iterator[None]:
        async def start() -> list["asyncio.Task[None]"]:
            ready = asyncio.Semaphore(0)
            tasks = [asyncio.create_task(page.listen(self._rig, ready)) for page in pages]
            for _ in pages:
                await ready.acquire()
            return tasks

        async def stop(tasks: list["asyncio.Task[None]"]) -> None:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        tasks = self._run(start())
        time.sleep(0.5 + 0.02 * len(pages))
        try:
            yield
        finally:
            self._run(stop(tasks))

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_SECONDS)


def page_costs(rig: Rig, product: Product, pages: Pages, cookie: str, exchanges: int) -> tuple[float, float]:
    """Processor milliseconds of the web process an exchange for the first page of a dialog,
    and for each of four more."""
    agent, owner = rig.agent("quick"), rig.people(1)[0]
    results = []
    for number in (0, 1, 5):
        dialog = dialog_at(20, agent, owner)
        with pages.opened([Page(dialog.pk, cookie, dialog.last_event_seq) for _ in range(number)]):
            product.exchange(dialog.pk, "Warm up.")
            web = (rig.stack.web.pid,)

            def exchange(round_: int, dialog_id: UUID = dialog.pk) -> None:
                product.exchange(dialog_id, text_of(USER_CHARS, round_))
                time.sleep(0.1)  # what the pages are sent is of this exchange

            results.append(cpu_millis(web, exchanges, exchange))
    none, one, five = results
    return one - none, (five - one) / 4


def end_to_page(rig: Rig, product: Product, pages: Pages, cookie: str, exchanges: int) -> list[float]:
    """Milliseconds from the commit of an answer that was streamed to its turn at the page's socket."""
    dialog = dialog_at(20, rig.agent("steady"), rig.people(1)[0])
    page = Page(dialog.pk, cookie, dialog.last_event_seq)
    with pages.opened([page]):
        for number in range(exchanges):
            product.exchange(dialog.pk, text_of(USER_CHARS, number))
            time.sleep(0.2)
    committed = dict(
        product.rows.execute(
            "SELECT seq, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 FROM dialogs_turn "
            "WHERE dialog_id = %s AND seq > %s AND role = 'assistant'",
            (dialog.pk, dialog.last_turn_seq),
        ).fetchall()
    )
    return [(page.answers[seq] - at) * 1000 for seq, at in committed.items() if seq in page.answers]


def read_long(rig: Rig, pages: Pages, cookie: str) -> tuple[float, float]:
    """MB/s at which a page reads what it missed of a long dialog, and the longest time in which
    nothing came, in seconds."""
    dialog = dialog_at(1_000, rig.agent("quick"), rig.people(1)[0])
    page = Page(dialog.pk, cookie)
    with pages.opened([page]):
        deadline = time.monotonic() + WAIT_SECONDS
        while page.seq < dialog.last_event_seq and time.monotonic() < deadline:
            time.sleep(0.05)
    moments = [at for at, _ in page.came]
    stalls = [later - earlier for earlier, later in pairwise(moments)]
    return sum(size for _, size in page.came) / 1e6 / (moments[-1] - moments[0]), max(stalls)


# -- many at once ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Together:
    millis: float  # median, from the POST to idle
    per_second: float  # turns, from the first POST to the last idle


def all_at_once(rig: Rig, product: Product, pages: Pages, dialogs: int, *, watched: bool) -> Together:
    """Each of so many dialogs gets a message at the same time; ``watched`` opens a page of each."""
    from dialogs.accounts.api_keys import create_key
    from tests.harness.browser import session_key

    agent, owners = rig.agent("quick"), rig.people((dialogs - 1) // DIALOGS_PER_PERSON + 1)
    keys = [(session_key(owner), create_key(owner, name="bench")) for owner in owners]
    made = [dialog_at(2, agent, owners[number // DIALOGS_PER_PERSON]) for number in range(dialogs)]
    open_pages = [
        Page(dialog.pk, keys[number // DIALOGS_PER_PERSON][0], dialog.last_event_seq)
        for number, dialog in enumerate(made if watched else [])
    ]
    with pages.opened(open_pages):
        lines = "".join(
            f"{dialog.pk} {keys[number // DIALOGS_PER_PERSON][1]} {text_of(USER_CHARS, number)}\n"
            for number, dialog in enumerate(made)
        )
        offset = time.time() - time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.saying", "--port", str(rig.stack.port), "--seconds", "0"],
            cwd=ROOT,
            input=lines,
            capture_output=True,
            text=True,
            check=True,
        )
        sent = {line.split()[0]: int(line.split()[1]) / 1e6 + offset for line in done.stdout.splitlines()}
        ids, deadline = [dialog.pk for dialog in made], time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            result = product.rows.execute(
                "SELECT id::text, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 FROM dialogs_dialog "
                "WHERE id = ANY(%s) AND state = 'idle' AND last_turn_seq = 6",
                (ids,),
            ).fetchall()
            if len(result) == dialogs:
                break
            time.sleep(0.1)
    assert len(result) == dialogs, f"{dialogs - len(result)} dialogs are not idle after {WAIT_SECONDS} s"
    took = [(at - sent[dialog_id]) * 1000 for dialog_id, at in result]
    return Together(median(took), dialogs / (max(at for _, at in result) - min(sent.values())))


# -- programs ----------------------------------------------------------------------------------------------------------


def v1_calls(rig: Rig, key: str, calls: int) -> tuple[float, float]:
    """Milliseconds of a call, and processor milliseconds, of one conversation that is resent whole."""
    agent = rig.agent("quick")
    client = httpx2.Client(
        base_url=rig.stack.base_url, headers={"Authorization": f"Bearer {key}"}, timeout=30, trust_env=False
    )
    messages: list[dict[str, str]] = []
    took: list[float] = []

    def call(number: int) -> None:
        messages.append({"role": "user", "content": text_of(USER_CHARS, number)})
        at = time.perf_counter()
        answer = client.post("/v1/chat/completions", json={"model": agent.pk, "messages": messages})
        took.append((time.perf_counter() - at) * 1000)
        messages.append({"role": "assistant", "content": answer.json()["choices"][0]["message"]["content"]})

    for number in range(3):
        call(1_000 + number)
    took.clear()
    spent = cpu_millis(product_pids(rig), calls, call)
    return median(took), spent


# -- one exchange ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Both:
    """What an exchange costs the product and the floor."""

    product: float
    floor: float

    @property
    def ratio(self) -> float:
        return self.product / self.floor


def exchange_costs(rig: Rig, floor: Floor, product: Product, depth: int, rounds: int) -> tuple[Both, Both]:
    """Wall milliseconds from the POST to idle, in turns, and processor milliseconds."""
    agent, owner = rig.agent("quick"), rig.people(1)[0]
    dialog, raw = dialog_at(depth, agent, owner), floor.dialog_at(depth)
    floor.connection.execute("ANALYZE")
    floor.connection.commit()
    of_product, of_floor = [], []
    for number in range(rounds + 2):  # two to warm up
        total, _ = product.exchange(dialog.pk, text_of(USER_CHARS, number))
        of_product.append(total * 1000)
        at = time.perf_counter()
        floor.exchange(raw, text_of(USER_CHARS, number), None, [])
        of_floor.append((time.perf_counter() - at) * 1000)
    spent = cpu_millis(
        product_pids(rig), rounds, lambda number: product.exchange(dialog.pk, text_of(USER_CHARS, number))
    )
    own = time.process_time()
    there = cpu_millis(
        (floor.connection.info.backend_pid,),
        rounds,
        lambda number: floor.exchange(raw, text_of(USER_CHARS, number), None, []),
    )
    floor_spent = there + (time.process_time() - own) * 1000 / rounds
    return Both(median(of_product[2:]), median(of_floor[2:])), Both(spent, floor_spent)


def storage(rig: Rig, floor: Floor, exchanges: int) -> Both:
    """Bytes of all tables that an exchange adds."""
    dialog, raw = dialog_at(0, rig.agent("quick"), rig.people(1)[0]), floor.dialog_at(0)
    before, raw_before = all_tables(floor), floor.size("floor")
    for number in range(exchanges):
        in_process(dialog.pk, text_of(USER_CHARS, number))
        floor.exchange(raw, text_of(USER_CHARS, number), 1, [])
    return Both((all_tables(floor) - before) / exchanges, (floor.size("floor") - raw_before) / exchanges)


def all_tables(floor: Floor) -> int:
    result = floor.connection.execute(
        "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = 'r' AND relname <> 'floor' "
        "AND relnamespace = 'public'::regnamespace"
    ).fetchone()
    floor.connection.commit()
    return int(result[0]) if result else 0


# -- a rewrite ---------------------------------------------------------------------------------------------------------


def rewrite_millis(rig: Rig, policy: str, verb: str, units: int, rounds: int) -> tuple[float, float]:
    """Milliseconds of a rewrite before anything is stored, without a model: of texts that this process has not read
    yet, and the median where it has counted them before, as the worker that drove the dialog did."""
    from dialogs.models import Dialog
    from dialogs.runtime.materials import materials_of
    from dialogs.runtime.rewrite_job import preview

    agent, owner = rig.agent("counted-small", policy), rig.people(1)[0]
    results = []
    dialog = dialog_at(units // 2, agent, owner)
    for _ in range(rounds + 1):
        row = Dialog.objects.whole().get(pk=dialog.pk)
        at = time.perf_counter()
        preview(row, materials_of(row), verb)
        results.append((time.perf_counter() - at) * 1000)
    return results[0], median(results[1:])
