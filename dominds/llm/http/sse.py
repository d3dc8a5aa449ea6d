"""Parser of server-sent events from a byte stream, which may be cut into chunks at any place."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dominds import budgets
from dominds.budgets import Budget
from dominds.llm.provider import AnswerTooLarge

BLANK_LINES = b"\n\n\n"
COMMENTS = re.compile(rb"\n\n(?::[^\n]*+\n++)++")  # comments and blank lines after a blank line mean nothing
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event. ``data`` stays bytes, since JSON is parsed from the whole of it."""

    data: bytes
    name: str = ""


class SseParser:
    """A parser that takes chunks in order by ``feed``, and ends by ``close``.

    It skips comments and the fields ``id`` and ``retry``. A body that is one JSON document is one event.
    """

    def __init__(self, sender: str = "The provider", bound: Budget = budgets.EVENT_BYTES) -> None:
        self._sender = sender
        self._bound = bound  # bounds one line, and also one event of several lines
        self._rest: list[bytes] = []  # pieces of an unfinished line; they are joined once, without repeated copying
        self._rest_bytes = 0
        self._after_carriage_return = False
        self._at_start = True
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = ""
        self._is_document = False

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """Yield the events that this chunk completes."""
        if not chunk:
            return
        lines = self._with_plain_line_ends(chunk).split(b"\n")
        for piece in lines[:-1]:
            event = self._take_line(self._complete_line(piece) if self._rest else piece)
            if event is not None:
                yield event
        self._extend_rest(lines[-1])

    def close(self) -> Iterator[ServerEvent]:
        """Yield the last event if its final blank line is missing, since some servers stop right after ``[DONE]``."""
        if self._rest:
            self._take_line(self._complete_line(b""))
        event = self._dispatch()
        if event is not None:
            yield event

    def _with_plain_line_ends(self, chunk: bytes) -> bytes:
        if self._after_carriage_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_carriage_return = False
        if not chunk:
            return chunk
        self._after_carriage_return = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        # One blank line ends an event as many do, and 64 MB of them would hold up the event loop for half a minute.
        while BLANK_LINES in chunk:
            chunk = chunk.replace(BLANK_LINES, b"\n\n")
        return COMMENTS.sub(b"\n\n", chunk)

    def _complete_line(self, piece: bytes) -> bytes:
        self._extend_rest(piece)
        line = b"".join(self._rest)
        self._rest, self._rest_bytes = [], 0
        return line

    def _extend_rest(self, piece: bytes) -> None:
        if piece:
            self._rest.append(piece)
            self._rest_bytes += len(piece)
            self._check_size(self._rest_bytes)

    def _check_size(self, size_bytes: int) -> None:
        if size_bytes > self._bound.most:
            raise AnswerTooLarge(
                f"{self._bound.sentence(f'{self._sender} answered with')} "
                "A model's stream consists of small ones: check that the address is that of a model server."
            )

    def _take_line(self, line: bytes) -> ServerEvent | None:
        if self._at_start:
            line = line.removeprefix(BYTE_ORDER_MARK)
            self._is_document = line.lstrip().startswith((b"{", b"["))
            self._at_start = not line.strip()
        if self._is_document:
            line = b"data:" + line if line else b":"
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        if field == b"data":
            value = value.removeprefix(b" ")
            self._data.append(value)
            self._data_bytes += len(value) + 1
            self._check_size(self._data_bytes - 1)
        elif field == b"event":
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")
        elif field == b"error":  # llama.cpp wrote errors in a field of this name until September 2025
            self._name = "error"
            self._data.append(value.removeprefix(b" "))
        return None

    def _dispatch(self) -> ServerEvent | None:
        data, name = self._data, self._name
        self._data, self._data_bytes, self._name = [], 0, ""
        if not data:
            return None
        return ServerEvent(data[0] if len(data) == 1 else b"\n".join(data), name)
