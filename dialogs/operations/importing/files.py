"""Files of exports: JSON, JSON lines, or the ZIP archive that a service sends. The first format that knows an entry reads it."""

import json
import re
import zipfile
from collections.abc import Iterator
from typing import IO, Any

from dialogs.operations.importing import chatgpt, claude, librechat, message_lists, open_webui, own_export
from dialogs.operations.importing.conversation import Conversation, Item

FORMATS = (own_export, chatgpt, claude, open_webui, librechat, message_lists)
MOST_BYTES = 500_000_000  # of one JSON text, which is read whole
CONVERSATIONS = re.compile(r"(?:^|/)conversations[^/]*\.json$")  # in an archive; large exports have several
SAYS_WHAT_IS_KNOWN = (
    "Known are ChatGPT's and Claude's conversations.json (or the ZIP archive that holds it), Open WebUI's and LibreChat's exports, "
    "Dominds' own in JSON, and lists of messages in OpenAI's form."
)


class UnknownExport(ValueError):
    """The file is none of the known exports; the message says what is known."""


def conversations_in(file: IO[bytes], name: str, most_bytes: int = MOST_BYTES) -> Iterator[Conversation]:
    """Every conversation of an export. Raises ``UnknownExport``."""
    result = False
    for text in _texts(file, name, most_bytes):
        for item in _entries(_content(text, name)):
            known = next((form for form in FORMATS if form.recognises(item)), None)
            if known is not None:
                result = True
                yield known.read(item)
    if not result:
        raise UnknownExport(f"{name} holds no conversation in a known form. {SAYS_WHAT_IS_KNOWN}")


def _texts(file: IO[bytes], name: str, most: int) -> Iterator[bytes]:
    if not zipfile.is_zipfile(file):
        file.seek(0)
        yield _within(file, name, most)
        return
    with zipfile.ZipFile(file) as archive:
        for member in archive.namelist():
            if CONVERSATIONS.search(member):
                with archive.open(member) as opened:
                    yield _within(opened, f"{name}/{member}", most)


def _within(file: IO[bytes], name: str, most: int) -> bytes:
    """Read one byte more than allowed: what an archive says of its sizes is not believed."""
    content = file.read(most + 1)
    if len(content) > most:
        raise UnknownExport(
            f"{name} has more than {most:,} bytes. Split it, or import it by the command `dominds import`."
        )
    return content


def _content(text: bytes, name: str) -> Any:
    """A file's JSON; of JSON lines, the list of their values."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError) as error:
            raise UnknownExport(f"{name} is not JSON: {error}. {SAYS_WHAT_IS_KNOWN}") from None


def _entries(content: Any) -> Iterator[Item]:
    """The objects that may be conversations: one, several, or a bare list of messages."""
    if isinstance(content, dict):
        inner = content.get("conversations")
        yield from _entries(inner) if isinstance(inner, list) else (content,)
    elif message_lists.recognises({"messages": content}):
        yield {"messages": content}
    elif isinstance(content, list):
        for item in content:
            if isinstance(item, dict) or message_lists.recognises({"messages": item}):
                yield item if isinstance(item, dict) else {"messages": item}
