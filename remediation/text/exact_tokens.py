"""Exact tokens: the parts of a text that nobody could guess again, such as addresses, paths, names and numbers.

Each has a worth, by which sentences that hold it are chosen.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import mul
from typing import NamedTuple

from remediation.text.secret_masking import REDACTED
from remediation.text.words import WIDE

MONTH = (
    r"(?:Jan(?:uary?)?|Feb(?:ruary?)?|Mar(?:ch)?|März|Apr(?:il)?|Ma[iy]|Jun[ei]?|Jul[iy]?|Aug(?:ust)?|Sep(?:tember)?"
    r"|O[ck]t(?:ober)?|Nov(?:ember)?|De[cz](?:ember)?)"
)
THOUSANDS = r",(?=\d{3}(?!\d))"  # the comma in 8,280
# The name of each shape, its pattern and its worth. Where several patterns match at a place, the first one counts.
TOKENS: tuple[tuple[str, str, float], ...] = (
    ("url", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]", 3.0),
    ("email", r"\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+\b", 3.0),
    (
        "setting",
        r"\b[A-Z][A-Z0-9_]{1,60}(?:\s?=\s?|:\s?(?=\S{0,40}\d))(?:\"[^\"\n]{1,80}\"|'[^'\n]{1,80}'|\{[^{}\n]{1,80}\}"
        rf"|(?:[^\s=,;\"'()]|{THOUSANDS})+)",
        3.0,
    ),
    (
        "assignment",
        r"(?<![\w.])[A-Za-z_][\w.-]{0,60}\s?=\s?(?:\"[^\"\n]{1,80}\"|'[^'\n]{1,80}'"
        rf"|[\d/~.$-](?:[^\s,;]|{THOUSANDS})*)",
        2.5,
    ),
    ("pair", rf"(?<![\w.=])[A-Za-z_][\w.-]{{0,60}}=(?:[^\s=,;\"'()]|{THOUSANDS})+", 2.5),
    ("windows path", r"\b[A-Za-z]:\\[\w\\.-]+", 3.0),
    ("path", r"(?<![\w.:/])(?:~|\.{1,2})?/(?:[\w.@-]+/)*[\w.@-]*\w/?|\b(?:[\w.-]+/)+[\w-]+\.\w{1,8}\b", 3.0),
    ("address", r"\b(?:[\da-fA-F]{2}:){5}[\da-fA-F]{2}\b(?!:)", 3.0),
    (
        "time",
        r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?|\b\d{1,2}:\d\d(?::\d\d)?\b"
        r"|\b\d{1,2}\.\d{1,2}\.(?:\d{4}|\d\d)?(?!\d)",
        2.5,
    ),
    ("uuid", r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", 3.0),
    ("address", r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:/\d+)?\b", 3.0),
    ("version", r"\bv?\d+\.\d+(?:\.\d+)+(?:[-+.]\w+)*\b|\bv\d+(?:\.\d+)*\b", 2.5),
    (
        "time",
        rf"\b{MONTH} {{1,2}}\d{{1,2}}\b(?:,? \d{{4}}\b| \d\d:\d\d(?::\d\d)?\b)?"
        rf"|\b\d{{1,2}}(?:\.? |[/-]){MONTH}\b(?:[ /-]\d{{4}}\b)?",
        2.5,
    ),
    (
        "money",
        r"[$€£¥]\s?\d[\d,.]*\d?\s?(?:[kKmM]\b|million|billion)?"
        r"|\b\d[\d,.]*\s?(?:USD|EUR|CHF|GBP|dollars|euros?|Euro|€|£)(?!\w)",
        2.5,
    ),
    ("host", r"\b(?:[a-zA-Z0-9][\w-]{0,62}\.)+(?:[a-z]{2,12})(?::\d+)?\b", 2.5),
    ("hash", r"\b(?=[0-9a-f]{0,40}\d)(?=[0-9a-f]{0,40}[a-f])[0-9a-f]{7,64}\b", 3.0),
    ("number sign", r"(?<!\w)#\d+\b", 2.5),
    ("flag", r"(?<![\w-])--?[a-zA-Z][\w-]+(?:=\S+)?", 1.5),
    ("code", r"\b[A-Za-z]{1,30}(?:[-_/][A-Za-z0-9]{1,30}){0,6}[-_/]?\d[\w-]*\b|\b\d+[A-Za-z]+\d\w*\b", 2.5),
    (
        "quoted",
        r"\"[^\"\n]{2,80}\"|`[^`\n]{2,80}`|“[^”\n]{2,80}”|„[^“”\n]{2,80}[“”]|《[^》\n]{1,80}》|「[^」\n]{1,80}」"
        r"|(?<!\w)'[^'\n]{2,60}'(?!\w)",
        2.5,
    ),
    ("snake", r"\b_*[A-Za-z][A-Za-z0-9]{0,40}_\w+\b", 2.0),
    ("camel", r"\b[a-z]+[A-Z]\w*\b|\b[A-Z][a-z0-9]+[A-Z]\w*\b", 2.0),
    (
        "measure",
        r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?\s?(?:%|[KMGT]i?B\b|[kmµn]?s\b|min\b|rpm\b)|(?<![\w.])\d{4,}\b",
        2.0,
    ),
    ("number", r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?!\w)", 1.5),
    ("full name", r"\b[A-Z][a-z'-]{1,30}(?: [A-Z][a-z'-]{1,30}){1,4}\b", 2.0),
    ("name", r"(?<=[a-z,;:] )[A-Z][\w'-]{0,30}(?: [A-Z][\w'-]{0,30}){0,4}", 1.2),
)
# Text in which no shape begins: plain words, spaces, signs, and what follows the first letter of a word. One match
# steps over all of it, since trying each shape at each character was most of the work. A run of plain words ends
# before a sign such as "=" or "/", since its last word may begin a shape.
PLAIN = (
    r"(?>(?:(?<=\w)\w+|[a-z\s,;:()\[\]{}<>!?|*—]+(?:(?<=[a-z])['’-](?=[a-z])[a-z\s,;:()\[\]{}<>!?|*—]+)*"
    r"(?:(?<=[\s,;:()\[\]{}<>!?|*—])(?![=@/\\])|(?=[.,;:)]*$))|\.(?=\s|$))+)"
    r"|^[A-Z][a-z]*(?:['’][a-z]+)?[,;:)]? (?=[a-z])"
)
# The speaker and the first word of a sentence, as in "Jon: Agreed!". The capital letter does not make that word a name.
FIRST_WORD = r"^[A-Z][\w'-]{0,30}: [A-Z][\w'’-]{0,30}(?=[,!?]| [a-z])"
# Bytes of a key, a certificate or a file: `81:02:76:3c:...`, `0000 4d5a 9000`. A few of them say nothing.
DUMP = (
    r"\b(?=[\d: ]*[a-fA-F])(?:(?:[\da-fA-F]{2}:){7,}(?:[\da-fA-F]{2}\b)?|(?:[\da-fA-F]{2} ){7,}(?:[\da-fA-F]{2}\b)?"
    r"|(?:[\da-fA-F]{4} ){4,}(?:[\da-fA-F]{4}\b)?)"
)
TOKEN = re.compile(
    "|".join(
        (
            f"(?P<plain>{FIRST_WORD}|{DUMP}|{PLAIN})",
            *(f"(?P<k{place}>{pattern})" for place, (_, pattern, _) in enumerate(TOKENS)),
        )
    )
)
WORTH = {f"k{place}": worth for place, (_, _, worth) in enumerate(TOKENS)}
# The keys of identifiers, values and quantities.
EXACT = frozenset(
    f"k{place}" for place, (name, _, _) in enumerate(TOKENS) if name not in ("quoted", "flag", "full name", "name")
)

NAMES = {f"k{place}": name for place, (name, _, _) in enumerate(TOKENS)}

ASSIGNED = frozenset({"setting", "assignment", "pair"})  # shapes that hold a name and its value

REMEMBERED = 8_192  # sentences whose tokens a process remembers for the next rewrite
DIGITS = re.compile(r"\d+")
SHARES = [0.5**place for place in range(8)]  # of its worth that each token adds, the best first
INSIDE = " .,;:"  # signs that belong to a token only if more of it follows


class Tokens(NamedTuple):
    """The exact tokens of a text, in their order."""

    shape: str  # of the whole text, as ``shape_of`` returns it
    worths: tuple[tuple[str, str, float], ...]  # each token in lower case, its shape without numbers, and its worth
    exact: tuple[str, ...]  # identifiers, values and quantities as they are written
    places: tuple[tuple[str, int, int], ...]  # the name of each token's shape, with its beginning and end in the text


@lru_cache(maxsize=REMEMBERED)
def tokens_in(text: str) -> Tokens:
    """Return all tokens of a sentence."""
    found = [(text[start:end], key, start, end) for key, start, end in places_of_tokens(text)]
    folded = [(token.strip().lower(), WORTH[key]) for token, key, *_ in found]
    return Tokens(
        shape=shape_of(text),
        worths=tuple([(token, shape_of(token), worth) for token, worth in folded if REDACTED not in token]),
        exact=tuple([token.strip(INSIDE) for token, key, *_ in found if key in EXACT]),
        places=tuple([(NAMES[key], start, end) for _, key, start, end in found]),
    )


def places_of_tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the key in ``TOKEN`` of each token, with its beginning and end.

    Scripts that are written without blanks are read as blanks, so that a value can begin and end beside them.
    """
    spaced = text if text.isascii() else WIDE.sub(lambda run: " " * len(run[0]), text)
    return ((str(match.lastgroup), *match.span()) for match in TOKEN.finditer(spaced) if match.lastgroup != "plain")


def worth_of_values(values: Sequence[tuple[str, str, float]], alike: Mapping[str, int]) -> float:
    """Add up the worth of tokens: the best counts whole, each further one half as much as the one before.

    ``alike`` is the number of tokens with a shape in all texts: a token that resembles many others is worth less.
    """
    worths = sorted([worth * alike.get(shape, 1) ** -0.5 for _, shape, worth in values], reverse=True)
    return float(sum(map(mul, worths, SHARES)))


def shape_of(text: str) -> str:
    """Return the text with each number replaced by 0, so that lines of a log that differ only in numbers are alike."""
    return DIGITS.sub("0", text)
