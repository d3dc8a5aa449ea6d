"""Common parts of the three wire formats: a stream driven by a reader of events, and tool calls' ids."""

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from dominds import budgets
from dominds.budgets import OverBudget
from dominds.llm.errors import complaint_of_payload, error_of, readable, text_of_page
from dominds.llm.http import event_loop
from dominds.llm.http.endpoint import Endpoint, without_key
from dominds.llm.http.exchange import Exchange
from dominds.llm.http.sse import ServerEvent, SseParser
from dominds.llm.json_text import NotJson, parsed
from dominds.llm.messages import Message, ToolCall
from dominds.llm.provider import AnswerTooLarge, MalformedStream, ProviderError
from dominds.llm.stream import Finished, FinishReason, ReasoningDelta, Started, StreamEvent, TextDelta, ToolCallDelta

HEAD_BYTES = 4096  # kept of an answer until it proves to be a stream, to say what it was instead
DONE = b"[DONE]"
CHECK_ADDRESS = "Check its address (under Models, or baseUrl in llm.yaml), which mostly ends in /v1."
WRONG_SHAPE = (TypeError, AttributeError, KeyError)  # what readers meet when a field is not what the format says


class Complained(Exception):
    """The provider reported an error inside its stream; ``payload`` is what it sent."""

    def __init__(self, payload: Any) -> None:
        super().__init__("error inside the stream")
        self.payload = payload


class Reader(Protocol):
    """Folds one wire format's events. ``is_done`` after the explicit end that needs no further event."""

    is_done: bool

    def read(self, event: ServerEvent) -> Iterable[StreamEvent]: ...

    def close(self) -> Iterable[StreamEvent]:
        """What was held back until the end."""

    def finished(self) -> Finished | None:
        """The outcome, or None when the provider never said that it had finished."""


class WireStream:
    """One model call over HTTP. See ``provider.Stream``."""

    def __init__(self, exchange: Exchange, reader: Reader, endpoint: Endpoint) -> None:
        self._exchange = exchange
        self._reader = reader
        self._provider = endpoint.host
        self._key = endpoint.key
        self._text_chars = self._reasoning_chars = self._argument_chars = 0

    @property
    def body(self) -> bytes:
        return self._exchange.body

    def abort(self) -> None:
        self._exchange.abort()

    def run(self, take: Callable[[StreamEvent], object]) -> None:
        event_loop.LOOP.run(self._conversed(take))

    async def _conversed(self, take: Callable[[StreamEvent], object]) -> None:
        try:
            await self._exchange.open()
            take(Started())
            await self._follow(take)
            for event in self._reader.close():
                take(self._counted(event))
            take(self._finished())
        finally:
            self._exchange.close()

    async def _follow(self, take: Callable[[StreamEvent], object]) -> None:
        """Take what the body says, up to its explicit end."""
        exchange, parser, head, is_stream = self._exchange, SseParser(self._provider), b"", False
        while chunk := await exchange.chunk():
            if not is_stream:
                head = (head + chunk)[:HEAD_BYTES]
            for event in parser.feed(chunk):
                is_stream = True
                exchange.note_event()
                self._take_all(event, take)
                if self._reader.is_done:
                    await exchange.drain()
                    return
        for event in parser.close():
            is_stream = True
            self._take_all(event, take)
        if not is_stream:
            raise self._no_stream(head)

    def _take_all(self, event: ServerEvent, take: Callable[[StreamEvent], object]) -> None:
        for piece in self._read(event):
            take(self._counted(piece))
            self._exchange.raise_if_cut()  # whoever takes may have had enough

    def _counted(self, piece: StreamEvent) -> StreamEvent:
        """The same event. Raises ``AnswerTooLarge``, and then what was taken before it is what was said."""
        match piece:
            case TextDelta(text):
                self._text_chars += len(text)
                self._exchange.keep_within(budgets.ANSWER_CHARS, self._text_chars)
            case ReasoningDelta(text):
                self._reasoning_chars += len(text)
                self._exchange.keep_within(budgets.ANSWER_CHARS, self._reasoning_chars)
            case ToolCallDelta(text):
                self._argument_chars += len(text)
                self._exchange.keep_within(budgets.ARGUMENT_CHARS, self._argument_chars)
        return piece

    def _read(self, event: ServerEvent) -> Iterable[StreamEvent]:
        try:
            return self._reader.read(event)
        except Complained as complained:
            error = error_of(complaint_of_payload(complained.payload), self._provider)
            raise error.reworded(without_key(str(error), self._key)) from None
        except OverBudget as error:
            raise AnswerTooLarge(error.bound.sentence(f"{self._provider} answered with")) from None
        except NotJson as error:
            start = readable(event.data[:80].decode("utf-8", "replace"))
            raise MalformedStream(f"{self._provider} sent an event that is not JSON: {start!r}.") from error
        except WRONG_SHAPE as error:
            raise self._other_format(error) from error

    def _other_format(self, error: Exception) -> MalformedStream:
        return MalformedStream(f"{self._provider} sent an event in another format ({type(error).__name__}: {error}).")

    def _finished(self) -> Finished:
        try:
            finished = self._reader.finished()
        except WRONG_SHAPE as error:
            raise self._other_format(error) from error
        if finished is None:
            raise MalformedStream(f"{self._provider} closed its answer without saying that it was finished.")
        # Some formats repeat the whole answer in their last event, where no piece of it was counted.
        self._exchange.keep_within(budgets.CALLS, len(finished.tool_calls))
        self._exchange.keep_within(budgets.ARGUMENT_CHARS, sum(len(call.arguments) for call in finished.tool_calls))
        return finished

    def _no_stream(self, head: bytes) -> ProviderError:
        if not head.strip():
            return MalformedStream(
                f"{self._provider} answered HTTP 200 with an empty body. "
                "Some servers do so when a streamed request is too long for the model."
            )
        try:
            result = parsed(head)
        except NotJson:
            words = readable(text_of_page(head))[:120]
            return MalformedStream(
                f"{self._provider} answered something that is no event stream: {words!r}. {CHECK_ADDRESS}"
            )
        if isinstance(result, dict) and result.get("error"):
            return error_of(complaint_of_payload(result), self._provider)
        return MalformedStream(f"{self._provider} answered one JSON document, not the event stream that was asked for.")


def json_of(event: ServerEvent) -> dict[str, Any]:
    """The event's object; an ``error`` inside it is raised as the provider's complaint."""
    result = parsed(event.data)
    if not isinstance(result, dict):
        raise NotJson("not an object")
    if event.name == "error" or result.get("error"):
        raise Complained(result)
    return result


def text_in(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {type(value).__name__}")
    return value


def finish_reason_of(known: Mapping[str, FinishReason], word: str, *, has_answer: bool) -> FinishReason:
    """The provider's word as one of ours."""
    reason = known.get(word, FinishReason.OTHER)
    return FinishReason.THOUGHT_ONLY if reason is FinishReason.LENGTH and not has_answer else reason


def with_own_ids(calls: Iterable[ToolCall], messages: Iterable[Message]) -> tuple[ToolCall, ...]:
    """Give a call an id of our own when its id is empty or was used before: some servers count from 0 each time."""
    calls = tuple(calls)
    used = {call.id for message in messages for call in message.tool_calls} if calls else set()
    kept = []
    for call in calls:
        is_usable = call.id and call.id not in used
        kept.append(call if is_usable else ToolCall(f"call_{uuid.uuid4().hex[:24]}", call.name, call.arguments))
        used.add(kept[-1].id)
    return tuple(kept)
