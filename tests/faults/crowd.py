"""Very many pages in one thread: they come back by the rule of ``socket.js``, and keep nothing but where they are."""

import asyncio
import json
import random
import resource
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from tests.faults.arena import Arena

# As in socket.js.
HANDSHAKE_SECONDS = 10.0
LONGEST_WAIT_SECONDS = 15.0
BROKEN = (OSError, TimeoutError, EOFError, WebSocketException)


@dataclass
class Member:
    """One page: the events that it was sent, and when its newest socket was first heard."""

    dialog_id: UUID
    cookie: str
    seqs: list[int] = field(default_factory=list)
    arrived: dict[int, float] = field(default_factory=dict)  # monotonic, by event
    sockets: int = 0
    resyncs: int = 0
    heard_at: float = 0.0  # monotonic; a handshake alone says little: the server may have no time for what follows
    failures: int = 0
    refused: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    async def live(self, arena: Arena) -> None:
        while True:
            try:
                async with connect(
                    f"{arena.stack.socket_url}/ws/dialogs/{self.dialog_id}/?after={self.seqs[-1] if self.seqs else 0}",
                    origin=arena.stack.base_url,  # type: ignore[arg-type]  # a NewType of str
                    additional_headers={"Cookie": f"sessionid={self.cookie}"},
                    compression=None,
                    max_size=None,
                    open_timeout=HANDSHAKE_SECONDS,
                    close_timeout=0.1,
                    ping_interval=None,
                    max_queue=None,
                ) as socket:
                    await socket.send('{"type": "ack", "n": 0}')
                    self.failures, event = 0, False
                    async for text in socket:
                        if not event:
                            event, self.heard_at, self.sockets = True, time.monotonic(), self.sockets + 1
                        await self._take(json.loads(text), socket)
            except BROKEN as error:
                if len(self.refused) < 5:
                    self.refused.append(type(error).__name__)
            self.failures += 1
            longest = min(LONGEST_WAIT_SECONDS, 0.5 * 2**self.failures)
            await asyncio.sleep(0.25 + random.random() * longest)

    async def _take(self, frame: dict[str, Any], socket: ClientConnection) -> None:
        if frame["type"] == "ping":
            await socket.send(json.dumps({"type": "ack", "n": frame["n"]}))
        elif frame["type"] == "resync":
            self.resyncs += 1
            self.seqs.clear()
            await socket.close()
        elif "seq" in frame:
            if self.seqs and frame["seq"] != self.seqs[-1] + 1:
                self.problems.append(f"event {frame['seq']} after {self.seqs[-1]}")
            self.seqs.append(frame["seq"])
            self.arrived[frame["seq"]] = time.monotonic()


@contextmanager
def crowd(arena: Arena, members: Sequence[Member], ramp_seconds: float) -> Iterator[None]:
    """Let all of them live while the block runs; they come one after another within so many seconds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    loop = asyncio.new_event_loop()
    lives: list[asyncio.Task[None]] = []

    async def come() -> None:
        for member in members:
            lives.append(loop.create_task(member.live(arena)))
            await asyncio.sleep(ramp_seconds / len(members))

    async def go() -> None:
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(come(), loop)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(go(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
