"""Pages as a browser keeps them, without the browser: they acknowledge, come back when they are cut
off, and can stop reading."""

import json
import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Queue
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import connection
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from dominds.budgets import TURN_CHARS
from tests.faults.arena import Arena, Talk
from tests.harness.browser import session_key
from tests.harness.live import close_pool

READ_SECONDS = 0.5
PAGES_PER_PERSON = 15  # twenty sockets are allowed
BROKEN = (OSError, TimeoutError, EOFError, WebSocketException)


class Page:
    """One page on one dialog, in a thread. What it shows is what it was sent: turns, and the draft under way."""

    def __init__(self, arena: Arena, talk: Talk, cookie: str) -> None:
        self.talk = talk
        self._arena, self._cookie = arena, cookie
        self.turns: dict[int, str] = {}
        self.seqs: list[int] = []  # since the page was made, or since it was told to start over
        self.draft = ""
        self.draft_generation = 0
        self.connections = self.resyncs = self.bytes = 0
        self.problems: list[str] = []
        self.says: Queue[str] = Queue()
        self.closed_with: list[int] = []
        self.acknowledges = True
        self.may_read = threading.Event()
        self.may_read.set()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        delay = 0.2
        while not self._ending.is_set():
            try:
                with self._connect() as connection:
                    self.connections, delay = self.connections + 1, 0.2
                    connection.send('{"type": "ack", "n": 0}')  # as socket.js does
                    self._read(connection)
            except ConnectionClosed as closing:
                self.closed_with.append(closing.rcvd.code if closing.rcvd else 1006)
            except BROKEN:
                self._ending.wait(random.uniform(0, delay))
                delay = min(delay * 2, 4)
            except Exception as error:  # noqa: BLE001  the test looks at them
                self.problems.append(repr(error))
                return

    def _connect(self) -> ClientConnection:
        base = self._arena.stack.base_url
        narrow = socket.create_connection(("127.0.0.1", self._arena.stack.port), timeout=10)
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 262_144)  # so that one who does not read is felt
        return connect(
            f"{self._arena.stack.socket_url}/ws/dialogs/{self.talk.id}/?after={self.seqs[-1] if self.seqs else 0}",
            sock=narrow,
            origin=Origin(base),
            additional_headers={"Cookie": f"sessionid={self._cookie}"},
            compression=None,
            max_size=None,
            open_timeout=10,
            close_timeout=0.2,
            ping_interval=None,
        )

    def _read(self, connection: ClientConnection) -> None:
        while not self._ending.is_set():
            if not self.may_read.wait(READ_SECONDS):
                continue
            while not self.says.empty():
                connection.send(self.says.get())
            with suppress(TimeoutError):
                text = connection.recv(READ_SECONDS)
                self.bytes += len(text)
                self._take(json.loads(text), connection)

    def _take(self, frame: dict[str, Any], connection: ClientConnection) -> None:
        if "seq" in frame and frame["type"] != "resync":
            if self.seqs and frame["seq"] != self.seqs[-1] + 1:
                self.problems.append(f"event {frame['seq']} after {self.seqs[-1]}")
            self.seqs.append(frame["seq"])
        match frame["type"]:
            case "ping" if self.acknowledges:
                connection.send(json.dumps({"type": "ack", "n": frame["n"]}))
            case "resync":
                self.resyncs += 1
                self.turns, self.seqs, self.draft = {}, [], ""
                connection.close()
            case "turn":
                self.turns[frame["data"]["seq"]] = frame["data"]["text"]
            case "generation" if frame["data"]["outcome"] != "running" and frame["data"]["id"] == self.draft_generation:
                self.draft = (
                    ""  # as live_text.js does: one that was over before may be told of beside the next one's draft
                )
            case "draft":
                self._draft(frame)

    def _draft(self, frame: dict[str, Any]) -> None:
        if frame.get("reset") or frame["generation"] != self.draft_generation:
            self.draft, self.draft_generation = "", frame["generation"]
        if frame["pos"] <= len(self.draft):
            self.draft += frame["text"][len(self.draft) - frame["pos"] :]
        else:
            self.problems.append(f"a draft goes on at {frame['pos']}, known are {len(self.draft)} characters")

    def wrong(self) -> list[str]:
        """What differs from the rows."""
        results = list(self.problems)
        row = self.talk.row
        shown = {seq: text[: TURN_CHARS.most] for seq, text in row.turns.values_list("seq", "text")}
        if shown != self.turns:
            results.append(f"shows {len(self.turns)} turns, there are {len(shown)}, or their texts differ")
        if self.seqs != list(range(1, row.last_event_seq + 1)):
            results.append(f"was sent {len(self.seqs)} events of {row.last_event_seq}")
        if self.draft:
            results.append(f"still shows a draft of {len(self.draft)} characters")
        return results

    def close(self) -> None:
        self._ending.set()
        self.may_read.set()
        self._thread.join(20)


@contextmanager
def pages_on(arena: Arena, talks: Sequence[Talk]) -> Iterator[list[Page]]:
    """One page for each entry, of people who may have so many."""
    cookies: list[str] = []
    for number in range(0, len(talks), PAGES_PER_PERSON):
        person = User.objects.create(username=f"reader-{uuid4().hex[:8]}", is_superuser=True)
        cookies += [session_key(person)] * len(talks[number : number + PAGES_PER_PERSON])
    connection.close()  # the database may be broken while they are open
    close_pool(connection)
    pages = [Page(arena, talk, cookie) for talk, cookie in zip(talks, cookies, strict=True)]
    try:
        yield pages
    finally:
        for page in pages:
            page.close()


def all_right(pages: Sequence[Page], seconds: float) -> float:
    """Wait until every page shows what the rows say; return how long that took."""
    started = time.monotonic()
    wrong: list[str] = []
    while time.monotonic() - started < seconds:
        wrong = [f"page {number}: {problem}" for number, page in enumerate(pages) for problem in page.wrong()]
        if not wrong:
            return time.monotonic() - started
        time.sleep(0.3)
    raise AssertionError(f"pages are wrong after {seconds} s: {wrong[:20]}")
