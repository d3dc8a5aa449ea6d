"""Text without hidden characters: those that cannot be seen, or that change how others are read, are escaped."""

import json
import re
import unicodedata

MOST_MARKS = 4  # marks on one letter: more than any script needs, and few enough not to cover other lines
_OTHER = re.compile(r"[^ -~\n]+")
_SEEN = frozenset("LNPS")
_NOT_SEEN_ALL_THE_SAME = ("Nl", "No", "Sk", "Sm", "So")  # some symbols are blank, and others look like punctuation
# Default_Ignorable_Code_Point of Unicode 17, which includes letters and marks. The standard library does not have it.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_BLANK = re.compile(rf"(?:[\s\u2800]|{_IGNORABLE.pattern})*")  # U+2800 is Braille without a dot
_TURNS_READING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def is_blank(text: str) -> bool:
    """Check whether a text has no visible character, but perhaps a zero-width space."""
    return _BLANK.fullmatch(text) is not None


def visible(text: str) -> str:
    r"""Return ``text`` with most other characters as ``\uXXXX``: only letters, digits, marks on a letter, punctuation,
    currency signs, line feeds and plain spaces are left.
    """
    return _OTHER.sub(lambda match: _visible(match[0], match.string[max(0, match.start() - 1) : match.start()]), text)


def in_reading_order(text: str) -> str:
    r"""Return ``text`` with the characters that turn the direction of others as ``\uXXXX``, so that it is read in the
    order in which it is sent. Those that are merely not seen stay: emoji and some scripts need them.
    """
    return _TURNS_READING.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _visible(text: str, before: str) -> str:
    result: list[str] = []
    marks = 0 if before.isalpha() else MOST_MARKS  # marks since the last letter; without a letter none is allowed
    for character in text:
        category = unicodedata.category(character)
        if category[0] == "M":
            is_seen = marks < MOST_MARKS and category != "Me" and not _IGNORABLE.match(character)
            marks += 1
        else:
            is_seen = category[0] in _SEEN and category not in _NOT_SEEN_ALL_THE_SAME
            is_seen = is_seen and not _IGNORABLE.match(character)
            marks = 0 if is_seen and category[0] == "L" else MOST_MARKS
        result.append(character if is_seen else json.dumps(character)[1:-1])
    return "".join(result)
