"""Pieces of streamed answers."""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from tests.doubles.brains import Reply


class BreaksOff(Exception):
    """Raised by a stream that ends without its proper end."""


def data(payload: Any) -> bytes:
    """An event without a name, as chat completions use it."""
    return b"data: " + (payload if isinstance(payload, bytes) else json.dumps(payload).encode()) + b"\n\n"


def named(payload: Mapping[str, Any]) -> bytes:
    """An event named by its type, as Messages and Responses use it."""
    return f"event: {payload['type']}\ndata: {json.dumps(payload)}\n\n".encode()


def probable(text: str, alternatives: int = 0) -> list[dict[str, Any]]:
    """The letters of a text as tokens with their probabilities, and for each the likeliest ones."""
    tokens = [{"token": letter, "bytes": [*letter.encode()], "logprob": -0.25} for letter in text]
    return [{**token, "top_logprobs": [token] * alternatives} for token in tokens]


def pieces(text: str, reply: Reply) -> Iterator[str]:
    """The text in the reply's chunks, in the reply's time."""
    for start in range(0, len(text), reply.chunk_chars):
        yield text[start : start + reply.chunk_chars]
        time.sleep(reply.chunk_seconds)
        reply.after_piece(text[start : start + reply.chunk_chars])
