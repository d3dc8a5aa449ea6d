"""An LM Studio on this machine: chat completions and the model API, over real HTTP, answering as a test says.

It remembers every request, refuses what the strict double of an LM Studio refuses (``violations``), counts prompts with the model's own
tokenizer and chat template (``chat_templates``), and refuses what is longer than the window, as a server that does not
cut the middle out would.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.dominds.llm.model_server import Asked, Connection, ModelServer, data, plain
from tests.doubles.chat_rules import PROTOCOL, ChatRequest
from tests.doubles.chat_templates import count_prompt, count_text
from tests.doubles.local_servers import LATE_SYSTEM, LMStudioDouble

Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What the model says. ``usage``: ``counted`` by the tokenizer, ``None`` for unreported, or (prompt, completion)."""

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()  # (name, arguments); arguments as text are sent as they are
    usage: Any = "counted"
    refused: tuple[int, str] | None = None  # HTTP status and body instead of an answer
    error_event: str = ""  # an error inside the stream, after the text
    finish: str = ""
    chunk_chars: int = 400
    pause_seconds: float = 0.0  # before the answer begins
    chunk_seconds: float = 0.0


Script = Callable[[Body], Answer]

OVERFLOW = {
    "error": {
        "message": "Trying to keep the first tokens when context the overflows. However, the model is loaded with a "
        "context length of only {limit} tokens, which is not enough.",
        "type": "invalid_request_error",
    }
}


@dataclass
class Exchange:
    """One request as it arrived, and what was reported for it."""

    body: Body
    prompt_tokens: int
    problems: list[str]
    tokens_written: int = 0

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages

    @property
    def last(self) -> dict[str, Any]:
        return self.messages[-1]


class ChatServer(ModelServer):
    """``answer`` decides from the request's body. ``limit`` is the window the model is loaded with; ``None``: no window."""

    def __init__(self, model: str = "llama-3.1-8b-instruct", limit: int | None = None) -> None:
        super().__init__()
        self.model, self.limit = model, limit
        self.is_loaded = True
        self.answer: Script = lambda _: Answer("ok")
        self.exchanges: list[Exchange] = []
        self.cut_off: list[str] = []  # answers whose reader went away, as far as they were written
        self.listings = 0

    # -- what a test reads

    @property
    def bodies(self) -> list[Body]:
        return [exchange.body for exchange in self.exchanges]

    @property
    def problems(self) -> list[str]:
        return [problem for exchange in self.exchanges for problem in exchange.problems]

    @property
    def overflows(self) -> int:
        """Requests that were longer than the window, and answers that grew past it."""
        if self.limit is None:
            return 0
        return sum(exchange.prompt_tokens + exchange.tokens_written > self.limit for exchange in self.exchanges)

    # -- serving

    def talk(self, connection: Connection) -> None:
        try:
            while (asked := connection.read_request()) is not None:
                self.asked.append(asked)
                if asked.path == "/api/v0/models":
                    self.listings += 1
                    plain(200, json.dumps({"object": "list", "data": [self._listed()]}))(connection)
                elif asked.path == "/api/v1/models":  # a server of the older API
                    plain(404, "{}")(connection)
                else:
                    self._complete(asked, connection)
        except OSError:
            pass  # the client left

    def _listed(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"id": self.model, "object": "model", "type": "llm", "max_context_length": 131_072}
        if not self.is_loaded:
            return {**entry, "state": "not-loaded"}
        loaded = {} if self.limit is None else {"loaded_context_length": self.limit}
        return {**entry, "state": "loaded", **loaded}

    def _complete(self, asked: Asked, connection: Connection) -> None:
        exchange = Exchange(asked.body, count_prompt(self.model, asked.body), violations(asked.body))
        self.exchanges.append(exchange)
        if exchange.problems:
            plain(400, json.dumps({"error": {"message": "; ".join(exchange.problems), "type": "invalid"}}))(connection)
            return
        if self.limit is not None and exchange.prompt_tokens > self.limit:
            refusal = json.dumps(OVERFLOW).replace("{limit}", str(self.limit))
            plain(400, refusal)(connection)
            return
        answer = self.answer(asked.body)
        time.sleep(answer.pause_seconds)
        if answer.refused is not None:
            plain(answer.refused[0], answer.refused[1])(connection)
            return
        self._stream(connection, exchange, answer)

    def _stream(self, connection: Connection, exchange: Exchange, answer: Answer) -> None:
        connection.start_stream()
        written: list[str] = []
        asked_for = exchange.body.get("max_tokens") or 1_000_000
        try:
            is_cut = False
            for delta, text in _deltas(answer):
                exchange.tokens_written += count_text(self.model, text)
                if is_cut := exchange.tokens_written > asked_for:
                    break
                connection.chunk(data({"choices": [{"index": 0, "delta": delta}]}))
                written.append(text)
                time.sleep(answer.chunk_seconds)
            if answer.error_event:
                connection.chunk(data({"error": {"message": answer.error_event}}))
            else:
                finish = "length" if is_cut else answer.finish or ("tool_calls" if answer.calls else "stop")
                connection.chunk(data({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
                if (usage := self._usage(exchange, answer)) is not None:
                    connection.chunk(data({"choices": [], "usage": usage}))
                connection.chunk(data(b"[DONE]"))
            connection.end_stream()
        except OSError:
            self.cut_off.append("".join(written))
            raise

    def _usage(self, exchange: Exchange, answer: Answer) -> dict[str, int] | None:
        if answer.usage is None:
            return None
        prompt, completion = (
            (exchange.prompt_tokens, exchange.tokens_written) if answer.usage == "counted" else answer.usage
        )
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _deltas(answer: Answer) -> Iterator[tuple[dict[str, Any], str]]:
    for piece in _pieces(answer.text, answer.chunk_chars):
        yield {"content": piece}, piece
    for index, (name, arguments) in enumerate(answer.calls):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        head, *tail = _pieces(text, answer.chunk_chars) or [""]
        function = {"name": name, "arguments": head}
        yield {"tool_calls": [{"index": index, "id": f"call{index}", "type": "function", "function": function}]}, head
        for piece in tail:
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, piece


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def violations(body: Body) -> list[str]:
    """What the strict double of an LM Studio would refuse, in its words, but for forcing: tests call this server many names."""
    request = ChatRequest(body, {}, LMStudioDouble.kind, "", body["model"])
    found = (rule.refusal(request) for rule in (*PROTOCOL, LATE_SYSTEM))
    return [refusal.message for refusal in found if refusal is not None]


@contextmanager
def running(server: ChatServer) -> Iterator[ChatServer]:
    listening = server.serve()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()


@dataclass
class InOrder:
    """A script that gives these answers one after another; the last one repeats."""

    answers: list[Answer] = field(default_factory=list)

    def __call__(self, body: Body) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture(name="serve")
def lenient(minds: Any) -> Iterator[Callable[..., ChatServer]]:
    """Start a server and name it in llm.yaml: ``serve(limit=8_000, api_type="lmstudio", optimal_max_tokens=5_000)``."""
    with ExitStack() as stack:

        def start(
            model: str = "llama-3.1-8b-instruct",
            limit: int | None = None,
            api_type: str = "openai-compatible",
            **fields: Any,
        ) -> ChatServer:
            server = stack.enter_context(running(ChatServer(model, limit)))
            minds.serve(server, api_type, **fields)
            return server

        yield start
