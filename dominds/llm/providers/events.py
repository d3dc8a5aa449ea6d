"""Events of a stream: their objects, errors in them, keep-alives, and characters that are cut in two."""

import re
from typing import Any

from dominds.llm.http.sse import ServerEvent
from dominds.llm.json_text import NotJson, parse
from dominds.llm.providers.ends import letters_of

DONE = b"[DONE]"
KEEP_ALIVE = re.compile(rb':.*|["[]?(ping|pong|keep[-_ ]?alive|heart[-_ ]?beat|([\w.-]+ )?processing)?["\]]?', re.I)
KEEP_ALIVE_NAMES = ("ping", "keepalive", "heartbeat")
KEEP_ALIVE_CHARS = 18  # the longest form of such a name, with characters between its letters
# Halves of a surrogate pair, as JSON escapes them, at the end and at the beginning of a text. An escaped backslash
# before the u belongs to JSON within the text.
FIRST_HALF = re.compile(rb'(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})"')
SECOND_HALF = re.compile(rb'"(?=\\u[dD][c-fC-F][0-9a-fA-F]{2})')


class CharacterJoiner:
    """A joiner of characters that a server cut in two, with the halves at the end of one text and in the next one."""

    def __init__(self) -> None:
        self.half = b""  # the first half of a character whose second half has not come yet

    def join(self, event: ServerEvent) -> ServerEvent:
        """Move the first half of a character to the second one, in the next text that begins so."""
        if not self.half and b"\\u" not in event.data:
            return event
        data = event.data
        if half := self.half:
            data, joined = SECOND_HALF.subn(lambda _: b'"' + half, data, count=1)
            self.half = b"" if joined else half
        if found := FIRST_HALF.search(data):
            self.half = found[1]
            data = data[: found.start(1)] + data[found.end(1) :]
        return ServerEvent(data, event.name)


class Complained(Exception):
    """Raised for an error that the provider reports inside its stream. ``payload`` is the object with the error."""

    def __init__(self, payload: Any) -> None:
        super().__init__(f"error inside the stream: {payload}"[:500])
        self.payload = payload


def document_of(event: ServerEvent) -> dict[str, Any] | None:
    """Return the event's object, or None for a keep-alive.

    Raises ``Complained`` for an error, and ``NotJson`` for damage.
    """
    if _is_empty(event):
        return None
    try:
        document = parse(event.data, takes_nan=True)
    except NotJson:
        if _names_keep_alive(event.name):
            return None
        raise
    if isinstance(document, list) and document and isinstance(document[0], dict):
        document = document[0]  # Google wraps an error in a list
    if not isinstance(document, dict):
        if _names_keep_alive(event.name) or not document:
            return None
        raise NotJson("not an object")
    if event.name:
        document.setdefault("type", event.name)
    # This runs for each piece of an answer. Few have more than one of these fields, and most of them hold longer words.
    for name in NAMING:
        if (word := document.get(name)) and _names_keep_alive(word):
            return None
    if "error" in (event.name, document.get("type"), document.get("object")):
        raise Complained(document)
    refuse_errors(document, *map(document.get, HOLDERS))
    return document


NAMING = ("type", "event", "object", "status")  # fields that say what an event is
HOLDERS = ("delta", "message", "response")  # objects of an event that may hold an error instead of an answer


def refuse_errors(*objects: Any) -> None:
    """Raise ``Complained`` if one of these values holds an error."""
    for each in objects:
        if isinstance(each, dict) and (each.get("error") or each.get("errors")):
            raise Complained(each)


def is_keep_alive(event: ServerEvent) -> bool:
    """Check for an event that is certainly only a keep-alive."""
    return _is_empty(event) or bool(event.name and _names_keep_alive(event.name))


def _names_keep_alive(word: Any) -> bool:
    """Check whether an event's type is that of a keep-alive. The length is tested first: most types are longer."""
    return isinstance(word, str) and 0 < len(word) <= KEEP_ALIVE_CHARS and letters_of(word) in KEEP_ALIVE_NAMES


def _is_empty(event: ServerEvent) -> bool:
    """Check for data that is only a keep-alive. Objects, as nearly all events are, are excluded first."""
    return not event.data.startswith(b"{") and bool(KEEP_ALIVE.fullmatch(event.data.strip()))
