"""Silence, aborts and deadlines: what a stream does when a server does nothing."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from dominds.llm.http.endpoint import Endpoint, Timeouts
from dominds.llm.http.exchange import WATCH
from dominds.llm.provider import ProviderTimeout, StreamAborted
from dominds.llm.providers.anthropic_messages import ANTHROPIC, AnthropicMessages
from dominds.llm.providers.openai_responses import OPENAI, OpenAIResponses
from dominds.llm.stream import Started, StreamEvent, TextDelta
from tests.dominds.llm.asking import HELLO, ask, chat_at, events_of, info
from tests.dominds.llm.model_server import Connection, ModelServer, data, stream_of
from tests.harness.silent_host import silent_port
from tests.harness.stack import eventually

HI = data({"choices": [{"delta": {"content": "Hi"}}]})
END = data({"choices": [{"delta": {}, "finish_reason": "stop"}]}, b"[DONE]")
PROVIDERS: list[Callable[[Endpoint], Any]] = [
    chat_at,
    lambda endpoint: OpenAIResponses(endpoint, info(OPENAI)),
    lambda endpoint: AnthropicMessages(endpoint, info(ANTHROPIC)),
]


def aborted_after(stream: Any, seconds: float) -> float:
    """Run while another thread aborts; answers how long the abort took to be felt."""
    aborted_at = []

    def abort() -> None:
        time.sleep(seconds)
        aborted_at.append(time.monotonic())
        stream.abort()

    thread = threading.Thread(target=abort)
    thread.start()
    with pytest.raises(StreamAborted):
        events_of(stream)
    felt_at = time.monotonic()
    thread.join()
    return felt_at - aborted_at[0]


class Silence:
    """Plays ``first`` and then nothing, and notes whether the client hung up."""

    def __init__(self, *first: bytes, with_headers: bool = True) -> None:
        self.first = first
        self.with_headers = with_headers
        self.hung_up = threading.Event()

    def __call__(self, connection: Connection) -> None:
        if self.with_headers:
            connection.start_stream()
        for chunk in self.first:
            connection.chunk(chunk)
        if connection.is_closed_within(5):
            self.hung_up.set()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_abort_before_the_headers_is_felt_at_once_by_both_sides(server: ModelServer, provider: Any) -> None:
    silence = Silence(with_headers=False)
    server.will(silence)
    assert aborted_after(provider(Endpoint(server.url, "key-1234")).stream(HELLO), 0.2) < 0.5
    assert silence.hung_up.wait(1), "a model at work on a prompt must hear that nobody waits for it"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_abort_in_a_blocked_read_is_felt_at_once(server: ModelServer, provider: Any) -> None:
    silence = Silence(b": still here\n\n")
    server.will(silence)
    assert aborted_after(provider(Endpoint(server.url, "key-1234")).stream(HELLO), 0.2) < 0.5
    assert silence.hung_up.wait(1)


def test_abort_on_a_connection_used_before_is_felt_at_once(server: ModelServer) -> None:
    silence = Silence(with_headers=False)
    server.will(stream_of(HI, END), silence)
    provider = chat_at(Endpoint(server.url))
    ask(provider)
    assert aborted_after(provider.stream(HELLO), 0.2) < 0.5
    assert silence.hung_up.wait(1)
    assert {asked.connection for asked in server.asked} == {1}


def test_abort_is_felt_at_once_while_the_server_accepts_no_connection() -> None:
    with silent_port() as port:
        stream = chat_at(Endpoint(f"http://127.0.0.1:{port}/v1", timeouts=Timeouts(connect=30))).stream(HELLO)
        assert aborted_after(stream, 0.3) < 0.5


def test_abort_before_the_start_sends_nothing(server: ModelServer) -> None:
    server.will(stream_of(HI, END))
    stream = chat_at(Endpoint(server.url)).stream(HELLO)
    stream.abort()
    with pytest.raises(StreamAborted):
        events_of(stream)
    assert server.asked == []


def test_abort_by_whoever_takes_ends_the_call(server: ModelServer) -> None:
    server.will(stream_of(HI + HI + HI + END))
    stream = chat_at(Endpoint(server.url)).stream(HELLO)
    taken: list[StreamEvent] = []

    def take(event: StreamEvent) -> None:
        taken.append(event)
        if len(taken) == 2:
            stream.abort()

    with pytest.raises(StreamAborted):
        stream.run(take)
    assert taken == [Started(), TextDelta("Hi")]


def test_abort_after_the_end_leaves_the_connection_to_others(server: ModelServer) -> None:
    server.will(stream_of(HI, END))
    provider = chat_at(Endpoint(server.url))
    old = provider.stream(HELLO)
    events_of(old)
    taken: list[StreamEvent] = []

    def take(event: StreamEvent) -> None:
        taken.append(event)
        old.abort()

    provider.stream(HELLO).run(take)
    assert len(taken) == 3
    assert {asked.connection for asked in server.asked} == {1}


@pytest.mark.parametrize(
    ("silence", "timeouts", "words"),
    [
        (Silence(with_headers=False), Timeouts(first_byte=0.3), "sent nothing for 0.3 s"),
        (Silence(), Timeouts(first_byte=0.3), "sent nothing for 0.3 s"),
        (Silence(HI), Timeouts(idle=0.3), "stopped sending for 0.3 s"),
    ],
)
def test_silence_ends_by_the_clock(server: ModelServer, silence: Silence, timeouts: Timeouts, words: str) -> None:
    server.will(silence)
    started_at = time.monotonic()
    with pytest.raises(ProviderTimeout, match=words):
        ask(chat_at(Endpoint(server.url, timeouts=timeouts)))
    assert time.monotonic() - started_at < 2


@pytest.mark.parametrize(
    ("chunk", "timeouts", "words"),
    [
        (b": ping\n\n", Timeouts(comments=0.4), "only keep-alive comments for 0.4 s"),
        (HI, Timeouts(total=0.4), "took more than 0.4 s"),
    ],
)
def test_endless_answers_end_by_the_clock(server: ModelServer, chunk: bytes, timeouts: Timeouts, words: str) -> None:
    server.will(stream_of(*[chunk] * 200, pause_seconds=0.02))
    with pytest.raises(ProviderTimeout, match=words):
        ask(chat_at(Endpoint(server.url, timeouts=timeouts)))


def test_a_connection_left_open_after_the_end_is_no_failure(server: ModelServer) -> None:
    server.will(Silence(HI, END))
    started_at = time.monotonic()
    assert ask(chat_at(Endpoint(server.url))).text == "Hi"
    assert time.monotonic() - started_at < 1.5


def test_a_hundred_streams_run_together_and_all_can_be_stopped(server: ModelServer) -> None:
    server.will(Silence(HI))
    streams = [chat_at(Endpoint(server.url)).stream(HELLO) for _ in range(100)]
    outcomes: list[type[BaseException]] = []

    def run(stream: Any) -> None:
        try:
            events_of(stream)
        except StreamAborted as error:
            outcomes.append(type(error))

    threads = [threading.Thread(target=run, args=(stream,)) for stream in streams]
    for thread in threads:
        thread.start()
    eventually(lambda: len(server.asked) == 100)
    started_at = time.monotonic()
    for stream in streams:
        stream.abort()
    for thread in threads:
        thread.join()
    assert outcomes == [StreamAborted] * 100
    assert time.monotonic() - started_at < 2
    assert not WATCH._exchanges
