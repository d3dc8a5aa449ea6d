"""Values: answers that are JSON, and arguments of calls. Programs read them, and tell them again as they print them."""

import json
import re
from collections.abc import Iterator
from typing import Any

from dominds.llm.json_text import objects_in

_WORD = re.compile(r"\w+")


def tells_value_of(text: str, answer: str) -> bool:
    """Check whether a text tells all values that stand in the JSON of an answer: with the fields in another order, with
    further ones, or as words.
    """
    words = {word for value in _objects_of(answer) for word in _words_of(value)}
    if not words:
        return False
    told = _objects_of(text) or [text]
    return words <= {word for value in told for word in _words_of(value)}


def _objects_of(text: str) -> list[Any]:
    """Return the objects that stand in a text, with whatever stands around them: a fence of Markdown, say."""
    begin, end = text.find("{"), text.rfind("}") + 1
    return [json.loads(each) for each in objects_in(text[begin:end])] if 0 <= begin < end else []


def _words_of(value: Any) -> Iterator[str]:
    left = [value]  # without recursion, since a program may send values nested as deep as the parser takes them
    while left:
        match left.pop():
            case dict() as fields:
                left += fields.values()
            case list() as entries:
                left += entries
            case None:
                continue
            case float() as number if number.is_integer():
                yield str(int(number))
            case plain:
                yield from _WORD.findall(str(plain).casefold())
