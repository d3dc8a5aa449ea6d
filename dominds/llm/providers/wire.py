"""One model call over HTTP, driven by a reader of its events."""

from collections.abc import Callable, Iterable

from dominds import budgets
from dominds.budgets import OverBudget
from dominds.llm.complaints import complaint_of_payload, readable, text_of_page
from dominds.llm.errors import error_of
from dominds.llm.http import event_loop
from dominds.llm.http.endpoint import Endpoint, without_key
from dominds.llm.http.exchange import Exchange
from dominds.llm.http.sse import ServerEvent, SseParser
from dominds.llm.json_text import NotJson
from dominds.llm.provider import AnswerTooLarge, MalformedStream, ProviderError
from dominds.llm.providers.events import Complained, is_keep_alive
from dominds.llm.providers.reading import Reader
from dominds.llm.stream import Finished, ReasoningDelta, Started, StreamEvent, TextDelta, ToolCallDelta

HEAD_BYTES = 4096  # the beginning of an answer that is kept, so that an error can quote it if it is no stream
CHECK_ADDRESS = "Check its address (under Models, or in the server's configuration), which mostly ends in /v1."
WRONG_SHAPE = (TypeError, AttributeError, KeyError)  # a reader raises these for a field that breaks its format


class WireStream:
    """A model call over HTTP (see ``provider.Stream``)."""

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
        event_loop.LOOP.run(self._converse(take))

    async def _converse(self, take: Callable[[StreamEvent], object]) -> None:
        try:
            await self._exchange.open()
            take(Started())
            await self._follow(take)
            for event in self._reader.close():
                take(self._count(event))
            take(self._finish())
        finally:
            self._exchange.close()

    async def _follow(self, take: Callable[[StreamEvent], object]) -> None:
        """Pass on the events of the body up to its explicit end."""
        exchange, parser, head, is_stream = self._exchange, SseParser(self._provider), b"", False
        while chunk := await exchange.chunk():
            if not is_stream:
                head = (head + chunk)[:HEAD_BYTES]
            for event in parser.feed(chunk):
                is_stream = True
                if not is_keep_alive(event):
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
            take(self._count(piece))
            self._exchange.raise_if_cut()  # ``take`` may have aborted the call

    def _count(self, piece: StreamEvent) -> StreamEvent:
        """Count the event's characters and return it. Raises ``AnswerTooLarge``."""
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
            raise self._error_of(complained) from None
        except OverBudget as error:
            raise AnswerTooLarge(error.bound.sentence(f"{self._provider} answered with")) from None
        except NotJson as error:
            start = readable(event.data[:80].decode("utf-8", "replace"))
            raise MalformedStream(f"{self._provider} sent an event that is not JSON: {start!r}.") from error
        except WRONG_SHAPE as error:
            raise self._other_format(error) from error

    def _error_of(self, complained: Complained) -> ProviderError:
        error = error_of(complaint_of_payload(complained.payload), self._provider)
        return error.reword(without_key(str(error), self._key))

    def _other_format(self, error: Exception) -> MalformedStream:
        return MalformedStream(f"{self._provider} sent an event in another format ({type(error).__name__}: {error}).")

    def _finish(self) -> Finished:
        try:
            finished = self._reader.outcome()
        except Complained as complained:
            raise self._error_of(complained) from None
        except WRONG_SHAPE as error:
            raise self._other_format(error) from error
        if finished is None:
            raise MalformedStream(f"{self._provider} closed its answer without saying that it was finished.")
        # Calls may come only in the last event, as a whole, so that no piece of them was counted.
        self._exchange.keep_within(budgets.CALLS, len(finished.tool_calls))
        self._exchange.keep_within(budgets.ARGUMENT_CHARS, sum(len(call.arguments) for call in finished.tool_calls))
        return finished

    def _no_stream(self, head: bytes) -> ProviderError:
        if not head.strip():
            return MalformedStream(
                f"{self._provider} answered HTTP 200 with an empty body. "
                "Some servers do so when a streamed request is too long for the model."
            )
        words = readable(text_of_page(head))[:120]
        return MalformedStream(
            f"{self._provider} answered something that is no event stream: {words!r}. {CHECK_ADDRESS}"
        )
