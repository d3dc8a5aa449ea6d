"""What a model server may make the process hold: endless streams, bombs, endless headers, calls by the thousand."""

import threading
import time
import zlib
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from dominds import budgets
from dominds.budgets import Budget
from dominds.llm.http.endpoint import Endpoint
from dominds.llm.provider import AnswerTooLarge, ProviderError, StreamAborted
from dominds.llm.providers.anthropic_messages import ANTHROPIC, AnthropicMessages
from dominds.llm.providers.openai_responses import OPENAI, OpenAIResponses
from dominds.llm.retry import delay_before_retry
from dominds.llm.stream import StreamEvent, TextDelta
from tests.dominds.llm.asking import HELLO, ask, chat_at, info
from tests.dominds.llm.model_server import Connection, ModelServer, Play, data, named, stream_of

HI = data({"choices": [{"delta": {"content": "Hi"}}]})
END = data({"choices": [{"delta": {}, "finish_reason": "stop"}]}, b"[DONE]")
MEGABYTE = 1_000_000
MOST_GROWTH = 250 * MEGABYTE  # with 200 MB of a worker at rest, well under the 600 MB that it may have
MOST_AT_ONCE = 400 * MEGABYTE  # the rest of those 600 MB


def endless(piece: bytes) -> Play:
    """Sends for as long as somebody reads, up to half a gigabyte."""

    def play(connection: Connection) -> None:
        connection.start_stream()
        connection.chunk(HI)
        block = piece * max(1, MEGABYTE // len(piece))
        for _ in range(500):
            connection.chunk(block)

    return play


def bomb(encoding: str, piece: bytes, unpacked_bytes: int) -> Play:
    """A small answer that unpacks to a very large one."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31 if encoding == "gzip" else 15)
    block = piece * max(1, MEGABYTE // len(piece))
    packed = packer.compress(HI) + packer.flush(zlib.Z_FULL_FLUSH)
    packed_block = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)  # refers to nothing before it
    packed += packed_block * (unpacked_bytes // len(block)) + packer.flush()

    def play(connection: Connection) -> None:
        connection.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: %s\r\ncontent-length: %d\r\n\r\n"
            % (encoding.encode(), len(packed))
        )
        connection.send(packed)

    return play


class Growth:
    """How far this process' memory grew above where it stood, in bytes; watched by a thread."""

    def __enter__(self) -> "Growth":
        self._process = psutil.Process()
        self._start = self._process.memory_info().rss
        self.most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            self.most = max(self.most, self._process.memory_info().rss - self._start)

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def refused(stream: Any) -> tuple[str, str]:
    """What was said before the answer was cut, and the sentence that it was cut with."""
    texts: list[StreamEvent] = []
    with pytest.raises(AnswerTooLarge) as caught:
        stream.run(texts.append)
    assert delay_before_retry(caught.value, 1, 0.5) is None, "the same request would only do so again"
    return "".join(event.text for event in texts if isinstance(event, TextDelta)), str(caught.value)


@pytest.mark.parametrize(
    ("piece", "bound"),
    [
        (data({"choices": [{"delta": {"content": "Hi " * 300}}]}), budgets.ANSWER_CHARS),
        (b": ping\n\n", budgets.ANSWER_BYTES),
        (b"\n", budgets.ANSWER_BYTES),
        (data({"choices": [{"delta": {"reasoning_content": "Hm " * 300}}]}), budgets.ANSWER_CHARS),
        (b"a", budgets.EVENT_BYTES),
        (b"data: a\n", budgets.EVENT_BYTES),
        (
            data({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "x" * 900}}]}}]}),
            budgets.ARGUMENT_CHARS,
        ),
    ],
)
def test_an_endless_stream_is_cut_at_its_bound(server: ModelServer, piece: bytes, bound: Budget) -> None:
    server.will(endless(piece))
    with Growth() as growth:
        text, sentence = refused(chat_at(Endpoint(server.url)).stream(HELLO))
    assert text.startswith("Hi"), "what was said so far is kept"
    assert f"more than {bound.most:,} {bound.unit}" in sentence
    assert bound.setting in sentence
    assert sentence.startswith("127.0.0.1:")
    assert growth.most < MOST_GROWTH


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("piece", [b": ping\n\n", b"a"])
def test_a_bomb_is_cut_while_it_unpacks(server: ModelServer, encoding: str, piece: bytes) -> None:
    server.will(bomb(encoding, piece, 200 * MEGABYTE))
    with Growth() as growth:
        text, sentence = refused(chat_at(Endpoint(server.url)).stream(HELLO))
    assert text == "Hi"
    assert "sets this limit" in sentence
    assert growth.most < MOST_GROWTH


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_bomb_instead_of_a_refusal_is_cut_too(server: ModelServer, encoding: str) -> None:
    play = bomb(encoding, b"a", 200 * MEGABYTE)

    def refuse(connection: Connection) -> None:
        class Refusing(Connection):
            def send(self, content: bytes) -> None:
                super().send(content.replace(b"200 OK", b"500 No"))

        play(Refusing(connection.socket, connection.number))

    server.will(refuse)
    with Growth() as growth, pytest.raises(ProviderError):
        ask(chat_at(Endpoint(server.url)))
    assert growth.most < MOST_GROWTH


def test_others_are_answered_beside_a_bomb_and_an_endless_stream(server: ModelServer) -> None:
    server.will(stream_of(HI, END))
    ask(chat_at(Endpoint(server.url)))

    bad = [bomb("gzip", b": ping\n\n", 300 * MEGABYTE), endless(b": ping\n\n")]
    plays = iter([*bad, *[stream_of(HI, END)] * 20])

    def play(connection: Connection) -> None:
        next(plays)(connection)

    server.will(play)
    streams = [chat_at(Endpoint(server.url)).stream(HELLO) for _ in bad]
    outcomes: list[type[ProviderError]] = []

    def run(stream: Any) -> None:
        try:
            stream.run(lambda _: None)
        except ProviderError as error:
            outcomes.append(type(error))

    threads = [threading.Thread(target=run, args=(stream,), daemon=True) for stream in streams]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    slowest = 0.0
    for _ in range(20):
        begun_at = time.monotonic()
        assert ask(chat_at(Endpoint(server.url))).text == "Hi"
        slowest = max(slowest, time.monotonic() - begun_at)
    for stream in streams:
        stream.abort()
    for thread in threads:
        thread.join(30)
    assert set(outcomes) <= {AnswerTooLarge, StreamAborted}
    assert slowest < 2


@pytest.mark.parametrize(
    ("headers", "bound"),
    [
        ((b"x-%d: a\r\n" % number for number in range(1_000_000)), budgets.HEADERS),
        ((b"x: " if number == 0 else b"a" * 1000 for number in range(20_000)), budgets.HEADER_BYTES),
    ],
)
def test_endless_headers_are_cut(server: ModelServer, headers: Iterator[bytes], bound: Budget) -> None:
    def play(connection: Connection) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\n")
        for header in headers:
            connection.send(header)

    server.will(play)
    text, sentence = refused(chat_at(Endpoint(server.url)).stream(HELLO))
    assert text == ""
    assert sentence == bound.sentence(f"{server.url.removeprefix('http://')} answered with")


def chat_calls(number: int) -> list[bytes]:
    calls = [{"index": at, "id": f"c{at}", "function": {"name": "ask", "arguments": "{}"}} for at in range(number)]
    return [data({"choices": [{"delta": {"tool_calls": calls}}]}), END]


def messages_calls(number: int) -> list[bytes]:
    calls = [
        {"type": "content_block_start", "index": at, "content_block": {"type": "tool_use", "id": f"c{at}", "name": "a"}}
        for at in range(number)
    ]
    return [named(calls), named([{"type": "message_stop"}])]


def responses_calls(number: int) -> list[bytes]:
    items = [{"type": "function_call", "call_id": f"c{at}", "name": "ask", "arguments": "{}"} for at in range(number)]
    done = [{"type": "response.output_item.done", "item": item} for item in items]
    return [named(done), named([{"type": "response.completed", "response": {"output": items}}])]


@pytest.mark.parametrize(
    ("provider", "calls"),
    [
        (chat_at, chat_calls),
        (lambda endpoint: AnthropicMessages(endpoint, info(ANTHROPIC)), messages_calls),
        (lambda endpoint: OpenAIResponses(endpoint, info(OPENAI)), responses_calls),
    ],
)
@pytest.mark.parametrize("number", [budgets.CALLS.most + 1, 20_000])
def test_more_calls_than_a_run_can_carry_fail_the_answer(
    server: ModelServer, provider: Any, calls: Any, number: int
) -> None:
    server.will(stream_of(*calls(number)))
    _, sentence = refused(provider(Endpoint(server.url)).stream(HELLO))
    assert sentence.endswith(budgets.CALLS.sentence("answered with"))
    server.will(stream_of(*calls(budgets.CALLS.most)))
    assert len(ask(provider(Endpoint(server.url))).finished.tool_calls) == budgets.CALLS.most


def test_all_of_it_at_once_stays_within_a_workers_bounds(server: ModelServer) -> None:
    line = data({"choices": [{"delta": {"content": "x" * MEGABYTE}}]})
    bad = [endless(b"a"), endless(b": ping\n\n"), bomb("deflate", b"a", 200 * MEGABYTE), stream_of(*chat_calls(20_000))]
    plays = iter([*bad, stream_of(line, END)])

    def play(connection: Connection) -> None:
        next(plays)(connection)

    server.will(play)
    asked: list[type[ProviderError] | int] = []

    def run() -> None:
        try:
            asked.append(len(ask(chat_at(Endpoint(server.url))).text))
        except ProviderError as error:
            asked.append(type(error))

    with Growth() as growth:
        threads = [threading.Thread(target=run, daemon=True) for _ in range(len(bad) + 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(asked, key=str) == sorted([*[AnswerTooLarge] * len(bad), MEGABYTE], key=str)
    assert growth.most < MOST_AT_ONCE
