"""An OpenAI-compatible server on asyncio streams, cheap enough to share a machine with what it measures.

Four models: ``quick`` answers at once; ``prose`` as well, a different text each time; ``counted`` as well, and reports
the prompt that its chat template makes of the request (``counted-otherwise`` by a vocabulary that the product does not
suppose); ``steady`` sends ``--rate`` tokens a second. A steady token is the microsecond of CLOCK_MONOTONIC at which it
was sent, in hexadecimal, so that whoever receives it on this machine can tell its age. ``GET /sent`` answers what each
conversation was sent, keyed by its newest user message; ``GET /asked`` how many messages and bytes each request had
since it was last asked for.
"""

import argparse
import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle

import orjson

from tests.benchmarks.seeding import text_of

TICKS = 10  # the steady streams are served in so many groups, one after another
ANSWER_WORD = "answer "
PIECE_CHARS = 25
PROSE_TEXTS = 997  # more than any request holds, or a database would keep two equal answers as one and a reference


@dataclass(eq=False)
class Steady:
    """One answer under way."""

    writer: asyncio.StreamWriter
    left: int
    sent: list[str]
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def send_token(self) -> None:
        text = f"{time.monotonic_ns() // 1000:x} "
        self.sent.append(text)
        self.writer.write(chunked(delta(text)))
        self.left -= 1
        if self.left == 0 or self.writer.is_closing():
            self.done.set()


def delta(text: str) -> bytes:
    return b"data: " + orjson.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}) + b"\n\n"


def ending(prompt_tokens: int, completion_tokens: int) -> bytes:
    total = prompt_tokens + completion_tokens
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens, "total_tokens": total}
    stop = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    message = orjson.dumps({"choices": [], "usage": usage})
    return b"data: " + orjson.dumps(stop) + b"\n\ndata: " + message + b"\n\ndata: [DONE]\n\n"


def chunked(part: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(part), part)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def whole(text: str) -> bytes:
    """An answer but for its ending."""
    pieces = (text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS))
    return HEAD + b"".join(chunked(delta(piece)) for piece in pieces)


def plain(message: object) -> bytes:
    body = orjson.dumps(message)
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


class ModelServer:
    def __init__(self, rate: float, tokens: int, answer_chars: int) -> None:
        self.tokens = tokens
        self.tick_seconds = 1 / rate / TICKS
        self.groups: list[set[Steady]] = [set() for _ in range(TICKS)]
        self.sent: dict[str, list[str]] = {}
        self.asked: dict[
            str, list[tuple[int, int]]
        ] = {}  # by model: messages and bytes of each request since the last look
        words = (ANSWER_WORD * (answer_chars // len(ANSWER_WORD) + 1))[:answer_chars]
        self.quick_answer = whole(words)
        self.quick_pieces = -(-answer_chars // PIECE_CHARS)
        self.prose = cycle([whole(text_of(answer_chars, number)) for number in range(PROSE_TEXTS)])

    async def serve(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=2048)
        print(server.sockets[0].getsockname()[1], flush=True)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve_forever())
            tasks.create_task(self._tick())

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(_content_length(head))
                if head.startswith(b"GET /sent"):
                    writer.write(plain({key: "".join(parts) for key, parts in self.sent.items()}))
                elif head.startswith(b"GET /asked"):
                    writer.write(plain(self.asked))
                    self.asked = {}
                else:
                    await self._answer(body, writer)
                await writer.drain()
        writer.close()

    async def _answer(self, body: bytes, writer: asyncio.StreamWriter) -> None:
        asked = orjson.loads(body)
        self.asked.setdefault(asked["model"], []).append((len(asked["messages"]), len(body)))
        prompt_tokens = len(body) // 4
        if asked["model"].startswith("counted"):
            from tests.doubles.chat_templates import count_prompt  # loads vocabularies: only where they are asked for

            # The product does not know these models' names and counts by a vocabulary of OpenAI's.
            prompt_tokens = count_prompt("llama-2-7b-chat" if "otherwise" in asked["model"] else "gpt-4", asked)
        if asked["model"] != "steady":
            text = next(self.prose) if asked["model"].startswith("prose") else self.quick_answer
            writer.write(text + chunked(ending(prompt_tokens, self.quick_pieces)) + b"0\r\n\r\n")
            return
        parts = self.sent[str(asked["messages"][-1]["content"])] = []
        writer.write(HEAD)
        steady = Steady(writer, self.tokens, parts)
        steady.send_token()  # at once: what passes before the socket has it is not the provider's time
        group = min(self.groups, key=len)
        group.add(steady)
        await steady.done.wait()
        group.discard(steady)
        writer.write(chunked(ending(prompt_tokens, self.tokens)) + b"0\r\n\r\n")

    async def _tick(self) -> None:
        due, number = time.monotonic(), 0
        while True:
            for steady in tuple(self.groups[number % TICKS]):
                if steady.left > 0:
                    steady.send_token()
            number += 1
            due += self.tick_seconds
            await asyncio.sleep(max(0.0, due - time.monotonic()))


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=25.0, help="tokens a second of the model 'steady'")
    parser.add_argument("--tokens", type=int, default=250, help="of one answer of the model 'steady'")
    parser.add_argument("--answer-chars", type=int, default=400, help="of one answer of the model 'quick'")
    asked = parser.parse_args()
    asyncio.run(ModelServer(asked.rate, asked.tokens, asked.answer_chars).serve())


if __name__ == "__main__":
    main()
