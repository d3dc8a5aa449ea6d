"""Content of answers in all the forms that servers give it: text, parts, calls' arguments, and indices."""

import re
from collections.abc import Iterator
from typing import Any

from dominds.llm.json_text import dump
from dominds.llm.providers.ends import letters_of

# Types of parts, by their letters: those of thinking, and those without text of the answer. All others are text.
THOUGHT_PART = re.compile("think|thought|reasoning|summary|analysis")
SILENT_PART = re.compile(
    "reference|citation|image|audio|video|file|document|tool|search|redacted|signature|compaction|container"
)
INSIDE = ("text", "thinking", "think", "reasoning", "reasoning_content", "refusal", "content", "summary", "value")


def spoken_in(content: Any) -> Iterator[tuple[str, bool]]:
    """Yield each text of a content, and whether it is thinking. A content is a string, a part, or a list of both."""
    match content:
        case str():
            yield content, False
        case list():
            for part in content:
                yield from spoken_in(part)
        case dict():
            kind = letters_of(str(content.get("type") or ""))
            if not SILENT_PART.search(kind):
                yield text_inside(content), bool(THOUGHT_PART.search(kind))
        case int() | float():
            yield text_inside(content), False


def objects_of(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, or a single object as a list. Other entries, as some servers send, are left out."""
    entries = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]


def text_inside(value: Any) -> str:
    """Return all text of a part at any depth."""
    match value:
        case str():
            return value
        case list():
            return "".join(map(text_inside, value))
        case dict():
            return next((text for name in INSIDE if (text := text_inside(value.get(name)))), "")
        case int() | float():  # Cloudflare sends the words "1" and "true" so
            return dump(value).decode()
    return ""


def arguments_in(value: Any) -> str:
    """Return a call's arguments, or a piece of them, as text, since some servers send the object itself."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dump(value).decode()


def whole_number(value: Any) -> int | None:
    """Read an index that a server may write as 1, 1.0 or "1"; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) else None
