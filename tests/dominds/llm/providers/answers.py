"""Reads the bytes of an answer as a model call does, for tests of readers."""

import json
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from dominds.llm.http.sse import SseParser
from dominds.llm.json_text import NotJson
from dominds.llm.providers.events import Complained
from dominds.llm.providers.reading import Reader
from dominds.llm.providers.wire import WRONG_SHAPE
from dominds.llm.stream import Finished, ReasoningDelta, Rethought, TextDelta

DONE = b"data: [DONE]\n\n"
OSLO, ROME = ("get_weather", '{"city":"Oslo"}'), ("get_weather", '{"city":"Rome"}')


@dataclass
class Read:
    """What became of a body. ``error`` where it failed."""

    text: str = ""
    thought: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    finished: Finished | None = None
    error: str = ""

    @property
    def finish(self) -> str:
        return self.finished.finish_reason if self.finished else ""


def read(reader: Reader, *chunks: bytes) -> Read:
    result = Read()
    try:
        parser = SseParser("host")
        events: list[Any] = []
        for event in chain(*map(parser.feed, chunks), parser.close()):
            events += reader.read(event)
            if reader.is_done:
                break
        for piece in [*events, *reader.close()]:
            match piece:
                case TextDelta(text):
                    result.text += text
                case ReasoningDelta(text):
                    result.thought += text
                case Rethought():
                    result.thought, result.text = result.thought + result.text, ""
        result.finished = reader.outcome()
        result.error = "" if result.finished else "never said that it had finished"
    except (Complained, NotJson, *WRONG_SHAPE) as error:
        result.error = str(error) or type(error).__name__
    if result.finished:
        result.calls = [(call.name, call.arguments) for call in result.finished.tool_calls]
    return result


def event(document: Any, name: str = "") -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + json.dumps(document).encode() + b"\n\n"
