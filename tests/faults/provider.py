"""A model server for the fault tests: OpenAI's chat completions, in a process of its own, played by the messages.

A user message says how its answer goes by ``play({...})`` somewhere in its text, or else the instructions do; see
``Play``. Every request is a line in a JSONL file before it is answered, and another one when it has ended. Every answer
starts with a sentinel of its own.

Run as ``python -m tests.faults.provider LOG_FILE``; it prints its port.
"""

import asyncio
import json
import re
import secrets
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PLAY = re.compile(r"play\((\{.*?\})\)", re.S)
DIALOG = re.compile(r"dlg-[0-9a-f]{8}")
GOOD_USAGE = {"prompt_tokens": 1_000, "completion_tokens": 10, "total_tokens": 1_010}


@dataclass(frozen=True)
class Play:
    """How one answer goes. ``fails`` says how often the ``then`` happens before the answer is regular."""

    words: int = 10
    chars: int = 0  # each word is at least so long
    every: float = 0.0  # seconds between words
    first: float = 0.0  # seconds before the first byte
    usage: Any = field(default_factory=lambda: GOOD_USAGE)  # "absent": the chunk is not sent
    then: str = "end"  # end, rst, fin, no_done, no_end, error_event, stall, status, cut_call, overflow
    fails: int = 1_000_000
    status: int = 500
    body: str = '{"error": {"message": "broken"}}'
    retry_after: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)  # of tools, until there is a result
    forced: str = "clear"  # what a forced attempt answers: clear, text, two, blank, broken, error
    forced_usage: int = 120_000
    chunk_bytes: int = 0  # send in pieces of this many bytes


class Provider:
    def __init__(self, log_file: Path) -> None:
        self._log = log_file.open("ab", buffering=0)
        self._plays: Counter[str] = Counter()

    def note(self, **entry: Any) -> None:
        self._log.write(json.dumps({"at": time.time(), **entry}).encode() + b"\n")

    async def serve(self) -> None:
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await _read(reader):
                await self._answer(request, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left, which many tests want
        finally:
            writer.close()

    async def _answer(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        text = "\n".join(str(m["content"]) for m in request["messages"] if m["role"] == "user")
        instructions = "\n".join(str(m["content"]) for m in request["messages"] if m["role"] == "system")
        marks, plays = DIALOG.findall(text), PLAY.findall(text) or PLAY.findall(instructions)
        play = Play(**json.loads(plays[-1])) if plays else Play()
        forced = "clear_mind" in json.dumps(request.get("tool_choice"))
        sentinel = f"snt-{secrets.token_hex(4)}"
        key = f"{marks[-1:]}{len(plays)}{plays[-1:]}"
        self._plays[key] += 1
        fails = self._plays[key] <= play.fails
        self.note(asked=sentinel, dialog=marks[-1] if marks else "", forced=forced, messages=len(request["messages"]))
        ended = "left"
        try:
            if forced:
                await _send(writer, _forced(play, sentinel), play)
            elif play.then in ("status", "overflow") and fails:
                await self._refuse(writer, play)
            else:
                await _send(writer, _reply(play, sentinel, request, play.then if fails else "end"), play)
            ended = "told"
        finally:
            self.note(ended=sentinel, how=ended)

    async def _refuse(self, writer: asyncio.StreamWriter, play: Play) -> None:
        status, body = play.status, play.body
        if play.then == "overflow":
            status = 400
            error = {"code": "context_length_exceeded", "message": "maximum context length is 128000 tokens"}
            body = json.dumps({"error": {"type": "invalid_request_error", **error}})
        kind = "application/json" if body.startswith("{") else "text/html"
        head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body.encode())}\r\n"
        if play.retry_after:
            head += f"retry-after: {play.retry_after}\r\n"
        writer.write(f"{head}\r\n{body}".encode())
        await writer.drain()


async def _read(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    except asyncio.IncompleteReadError:
        return None
    length = int(re.search(r"content-length: (\d+)", head)[1])  # type: ignore[index]
    request: dict[str, Any] = json.loads(await reader.readexactly(length))
    return request


Piece = bytes | float | str  # to send, to wait, or how to break off


async def _send(writer: asyncio.StreamWriter, pieces: AsyncIterator[Piece], play: Play) -> None:
    await asyncio.sleep(play.first)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    async for piece in pieces:
        if isinstance(piece, float):
            await asyncio.sleep(piece)
        elif piece == "rst":
            sock: socket.socket = writer.get_extra_info("socket")
            await writer.drain()
            await asyncio.sleep(0.05)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            raise ConnectionResetError
        elif piece == "fin":
            await writer.drain()
            writer.close()
            raise ConnectionResetError
        else:
            assert isinstance(piece, bytes)
            size = play.chunk_bytes or len(piece)
            for start in range(0, len(piece), size):
                part = piece[start : start + size]
                writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def _event(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return _event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _call(name: str, arguments: str, index: int = 0) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": f"c{index}", "type": "function", "function": function}


async def _reply(play: Play, sentinel: str, request: dict[str, Any], then: str) -> AsyncIterator[Piece]:
    has_result = request["messages"][-1]["role"] == "tool" or any(m["role"] == "tool" for m in request["messages"])
    if play.calls and not has_result:
        calls = [_call(one["name"], json.dumps(one["arguments"]), index) for index, one in enumerate(play.calls)]
        yield _chunk({"tool_calls": calls})
        yield _chunk({}, "tool_calls")
    elif then == "cut_call":
        yield _chunk({"tool_calls": [_call("add_reminder", '{"content": "' + sentinel)]})
        yield "fin"
        return
    else:
        for number in range(play.words):
            yield _chunk({"content": f"{sentinel} " if number == 0 else f"w{number}".ljust(play.chars, "x") + " "})
            yield float(play.every)
            if number == play.words // 2 and then in ("rst", "fin"):
                yield then
                return
            if number == play.words // 2 and then == "stall":
                yield 3600.0
            if number == play.words // 2 and then == "error_event":
                yield _event({"error": {"message": "overloaded", "type": "overloaded_error", "code": 529}})
                return
        if then == "no_end":
            return
        yield _chunk({"content": "end"})
        yield _chunk({}, "stop")
    if play.usage != "absent":
        yield _event({"choices": [], "usage": play.usage})
    if then != "no_done":
        yield b"data: [DONE]\n\n"


async def _forced(play: Play, sentinel: str) -> AsyncIterator[Piece]:
    package = json.dumps({"reminder_content": f"Goal: go on {sentinel}"})
    calls = {
        "clear": [_call("clear_mind", package)],
        "two": [_call("clear_mind", package), _call("clear_mind", package, 1)],
        "blank": [_call("clear_mind", '{"reminder_content": "  "}')],
        "broken": [_call("clear_mind", package[:-3])],
        "text": [],
    }[play.forced]
    yield _chunk({"content": f"{sentinel} I would rather talk."})
    yield float(play.every)
    if calls:
        yield _chunk({"tool_calls": calls})
    yield _chunk({}, "tool_calls" if calls else "stop")
    yield _event({"choices": [], "usage": {"prompt_tokens": play.forced_usage, "completion_tokens": 5}})
    yield b"data: [DONE]\n\n"


if __name__ == "__main__":
    asyncio.run(Provider(Path(sys.argv[1])).serve())
