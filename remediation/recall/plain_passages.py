"""Passages of a Markdown text as people read it: without the marks that format it."""

import re
from collections.abc import Iterator, Sequence

from remediation.recall.snippets import Part

# Each with groups of what is left out. Of a pair both stand in one line: a mark alone may be anything.
_LINES = re.compile(r"^([ \t]{0,3}(?:#{1,6}[ \t]+|(?:>[ \t]?)+|(?:`{3,}[^`\n]*|~{3,}.*)(?:\n|$)))", re.M)
_CODE = re.compile(r"(`{1,2})(?!`)[^`\n]+(\1)(?!`)")
_PAIRS = (
    re.compile(r"(\*\*|~~)(?=\S)[^\n]+?(?<=\S)(\1)"),
    re.compile(r"(?<!\w)(__?)(?=[^\s_])[^\n]+?(?<=[^\s_])(\1)(?!\w)"),
    re.compile(r"(?<![\w*])(\*)(?=[^\s*])[^*\n]+(?<=\S)(\*)(?![\w*])"),
    re.compile(r"(!?\[)[^\]\n]+(\]\([^)\s]*\))"),
)


def without_marks(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts without Markdown's marks, but for those that hold a word of the query, such as addresses."""
    text = "".join(part.text for part in parts)
    asked, gone, start = set[int](), set[int](), 0
    for part in parts:
        end = start + len(part.text)
        asked.update(range(start, end) if part.is_match else ())
        start = end
    for mark in _marks(text):
        if asked.isdisjoint(mark):
            gone.update(mark)
    places = iter(range(len(text)))
    read = (Part("".join(char for char in part.text if next(places) not in gone), part.is_match) for part in parts)
    return tuple(part for part in read if part.text)


def _marks(text: str) -> Iterator[list[int]]:
    """Return the places of each mark's characters, those of a pair together."""
    yield from (_places(match) for match in _LINES.finditer(text))
    codes = list(_CODE.finditer(text))
    yield from map(_places, codes)
    for pattern in _PAIRS:
        for match in pattern.finditer(text):
            if not any(code.start() < match.start() < code.end() for code in codes):
                yield _places(match)


def _places(match: re.Match[str]) -> list[int]:
    return [at for number in range(1, match.re.groups + 1) for at in range(*match.span(number))]
