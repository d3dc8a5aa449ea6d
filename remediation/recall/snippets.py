"""Snippets: the place in a text where the words of a query stand, with the words marked."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from remediation.text.words import TOKEN, words

SNIPPET_CHARS = 320
CHARS_BEFORE = 100  # of the first word of the best place
MOST_CHARS = 20_000  # of a text that are looked through
MOST_PLACES = 200  # that are compared


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a snippet. ``is_match`` says that it is a word of the query, in whatever form."""

    text: str
    is_match: bool


def matching_words(text: str, asked: Collection[str]) -> tuple[str, ...]:
    """Return the words of a text that the query asks for, as written there, each once."""
    results = (text[start:end] for start, end in _places(text, asked))
    return tuple({word.casefold(): word for word in results}.values())


def snippet(text: str, asked: Collection[str], chars: int = SNIPPET_CHARS) -> tuple[Part, ...]:
    """Return some ``chars`` characters that hold most words of the query, with ellipses for omitted text."""
    places = list(_places(text, asked))
    start = max(0, _best_start(text, places, chars) - CHARS_BEFORE) if len(text) > chars else 0
    end = min(len(text), start + chars)
    parts = [Part("…", False)] if start else []
    for first, last in places:
        if start <= first and last <= end:
            parts += [Part(text[start:first], False), Part(text[first:last], True)]
            start = last
    parts.append(Part(text[start:end] + ("…" if end < len(text) else ""), False))
    return tuple(part for part in parts if part.text)


def _places(text: str, asked: Collection[str]) -> Iterator[tuple[int, int]]:
    for token in TOKEN.finditer(text, 0, MOST_CHARS):
        if any(word in asked for word in words(token.group())):
            yield token.start(), token.start() + len(token.group().rstrip("./:@#%+'’-"))


def _best_start(text: str, places: list[tuple[int, int]], chars: int) -> int:
    """Return the start of the window that holds most different words."""
    best, most = 0, 0
    for start, _ in places[:MOST_PLACES]:
        inside = {
            text[first:last].casefold()
            for first, last in places[:MOST_PLACES]
            if start <= first < start + chars - CHARS_BEFORE
        }
        if len(inside) > most:
            best, most = start, len(inside)
    return best
