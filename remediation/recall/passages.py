"""Passages of the index: a short text whole, a long one cut, so that a line of a large tool
result can come back alone."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from remediation.text.statements import until_mark
from remediation.tokens.counting import count_characters

PASSAGE_CHARS = 600  # about 150 tokens; most messages are shorter and stay whole
PASSAGE_TOKENS = 150  # of scripts that take more tokens for a character passages have fewer characters
LEAST_CHARS = 120
SAMPLE_CHARS = 1_200  # of a text that tell its script
# Where a text may be cut, the best first: lines, sentences, entries of JSON, then any blank.
CUTS = (
    re.compile(r"\n+"),
    re.compile(r"(?<=[.!?])\s+|(?<=[。！？])"),
    re.compile(r"(?<=[}\]]),\s*"),
    re.compile(r"(?<=[,;])\s+|(?<=[，、；])"),
    re.compile(r"\s+"),
)

NAME = re.compile(r"([^\W\d_][\w'’-]{0,30}):\s")  # with which a message may begin, where several people speak


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of what was said. ``turn`` is the number of the turn in the dialog, ``part`` counts from 0 within it.

    ``superseded`` pairs the end in ``text`` of each sentence that no longer holds with the turn that says something
    newer, in the order of the text.
    """

    turn: int
    speaker: str
    text: str
    est_tokens: int
    part: int = 0
    parts: int = 1
    superseded: tuple[tuple[int, int], ...] = ()

    @property
    def marked(self) -> str:
        """Return the text with a mark behind each sentence that no longer holds."""
        text, start = "", 0
        for end, turn in self.superseded:
            text += f"{self.text[start:end]} {until_mark(turn)}"
            start = end
        return text + self.text[start:]


def names_of(passage: Passage) -> tuple[str, ...]:
    """Return the names of who speaks: the role or tool, and the name with which the text begins, in lower case."""
    name = NAME.match(passage.text)
    return (passage.speaker, name[1].casefold()) if name else (passage.speaker,)


def passages_of(turn: int, speaker: str, text: str, count: Callable[[str], int]) -> tuple[Passage, ...]:
    """Cut one turn into passages. ``count`` estimates the tokens of a text."""
    text = text.strip()
    pieces = tuple(_pieces(text, _chars_of(text)))
    return tuple(Passage(turn, speaker, piece, count(piece), part, len(pieces)) for part, piece in enumerate(pieces))


def _chars_of(text: str) -> int:
    """Return the length of a passage of this text. It is constant for ASCII: only other scripts are counted."""
    if text.isascii() or len(text) <= LEAST_CHARS:
        return PASSAGE_CHARS
    sample = text[:SAMPLE_CHARS]
    return max(LEAST_CHARS, min(PASSAGE_CHARS, PASSAGE_TOKENS * len(sample) // max(1, count_characters(sample))))


def _pieces(text: str, chars: int) -> Iterator[str]:
    start = 0
    while len(text) - start > chars * 3 // 2:
        end = _cut(text, start, chars)
        if piece := text[start:end].strip():
            yield piece
        start = end
    if last := text[start:].strip():
        yield last


def _cut(text: str, start: int, chars: int) -> int:
    """Return the last good place to cut within a passage's length, or its end in text without any."""
    least, most = start + chars // 2, start + chars
    for pattern in CUTS:
        ends = [match.end() for match in pattern.finditer(text, least, most) if match.end() > least]
        if ends:
            return ends[-1]
    return most
