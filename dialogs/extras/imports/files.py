"""Files of exports: JSON, JSON lines, Markdown or plain text, or a service's ZIP archive. An entry is read by the
first format that knows it."""

import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from types import ModuleType
from typing import IO, Any

import structlog

from dialogs.extras.imports import chatgpt, claude, librechat, message_lists, open_webui, own_export, written
from dialogs.extras.imports.conversation import Conversation, Item, text_of

log = structlog.get_logger(__name__)

FORMATS = (own_export, chatgpt, claude, open_webui, librechat, message_lists)
MOST_BYTES = 500_000_000  # the JSON texts of one file together, each of which is read whole
MOST_MEMBERS = 1_000  # files of one archive
BYTES_PER_PART = 8  # the least for files over ``SMALL_BYTES``; parts of real exports take 30 and more
SMALL_BYTES = 1_000_000
# Names in an archive; large exports have several such files.
CONVERSATIONS = re.compile(r"(?:^|[/\\])conversations[^/\\]*\.jsonl?$", re.I)
OTHERS = re.compile(r"(?:^|[/\\])[^./\\][^/\\]*\.jsonl?$", re.I)  # where no file has such a name
WRITTEN = re.compile(r"(?:^|[/\\])[^./\\][^/\\]*\.(?:md|markdown|txt)$", re.I)  # where no file is JSON
DEEPEST = 3  # objects and lists around conversations, as ``data`` and ``chats``
APPLES = "__MACOSX"  # a folder of its own files about the others
SEPARATOR = re.compile(r"\s*,?\s*(?=[^\s\],])")
SAYS_WHAT_IS_KNOWN = (
    "Known are ChatGPT's, Claude's, DeepSeek's and Grok's JSON files (or the ZIP archive that holds them), exports of "
    "Open WebUI, LibreChat and llama.cpp's web interface, conversations of LM Studio, Jan and SillyTavern, Google's "
    "record of Gemini's activity as JSON, sessions of Gemini CLI, Claude Code and Codex, Dominds' own exports, lists "
    "of messages as model servers take them, and Markdown or text in which lines such as “### User” and "
    "“### Assistant” tell who speaks."
)


class UnknownExport(ValueError):
    """Raised for a file that is none of the known exports. The message names those."""


def conversations_in(file: IO[bytes], name: str, most_bytes: int = MOST_BYTES) -> Iterator[Conversation]:
    """Yield every conversation of an export, or its title with why it cannot be read. Raises ``UnknownExport``."""
    found = False
    refused: list[UnknownExport] = []  # of an archive's files, of which the others are read
    for text in _texts(file, name, most_bytes):
        try:
            content = _content(text, name)
        except UnknownExport as error:
            refused.append(error)
            continue
        for entry in _entries(content):
            if isinstance(entry, Unreadable):
                yield Conversation("", "", problem=str(entry))
                continue
            for one in (entry, *own_export.dialogs_within(entry)):
                if (form := next((form for form in FORMATS if form.recognises(one)), None)) is not None:
                    found = True
                    yield _read(form, one)
    if not found:
        raise next(iter(refused), UnknownExport(f"{name} holds no conversation in a known form. {SAYS_WHAT_IS_KNOWN}"))
    for reason in map(str, refused):
        yield Conversation("", "", problem=reason.removesuffix(f" {SAYS_WHAT_IS_KNOWN}").rstrip("."))


def _read(form: ModuleType, entry: Item) -> Conversation:
    """Read one conversation. A field of another kind than its format has ends this conversation alone."""
    try:
        conversation: Conversation = form.read(entry)
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
        log.warning("import_entry_unreadable", form=form.__name__, exc_info=error)
        return Conversation("", text_of(entry.get("title")), problem="its entry in the file cannot be read")
    return conversation


def _texts(file: IO[bytes], name: str, most: int) -> Iterator[bytes]:
    if not zipfile.is_zipfile(file):
        file.seek(0)
        yield _within(file, name, most)
        return
    try:
        with zipfile.ZipFile(file) as archive:
            names = [each for each in archive.namelist() if not each.startswith(APPLES)]
            members = [*filter(CONVERSATIONS.search, names)] or [*filter(OTHERS.search, names)]
            members = members or [*filter(WRITTEN.search, names)]
            inner = next((each for each in names if each.lower().endswith(".zip")), "")
            if inner and not members:
                raise UnknownExport(f"{name} holds another archive, {inner}. Take that out and import it.")
            if len(members) > MOST_MEMBERS:
                raise UnknownExport(f"{name} has {len(members):,} files of conversations, more than {MOST_MEMBERS:,}.")
            for member in members:
                with archive.open(member) as opened:
                    text = _within(opened, f"{name}/{member}", most)
                most -= len(text)
                yield text
    # ``zipfile`` raises NotImplementedError for a compression that it does not know, RuntimeError for a password.
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise UnknownExport(f"{name} is an archive that cannot be read: {error}.") from None


def _within(file: IO[bytes], name: str, most: int) -> bytes:
    """Read one byte more than allowed, since an archive's own sizes are not believed."""
    content = file.read(most + 1)
    if len(content) > most:
        raise UnknownExport(
            f"{name} has more than {most:,} bytes. Split it, or import it by the command `dominds import`."
        )
    return content


class Unreadable(ValueError):
    """A part of the file that is not JSON, with a message about where it is."""


def _content(text: bytes, name: str) -> Any:
    """Return a file's JSON. Of JSON lines, or of a list that breaks off, unreadable parts come as ``Unreadable``."""
    number = text.count(b",") + text.count(b"[") + text.count(b"{")
    if len(text) > SMALL_BYTES and number * BYTES_PER_PART > len(text):
        raise UnknownExport(f"{name} is no export of conversations: it consists of {number:,} tiny parts.")
    try:
        return json.loads(text)
    except UnicodeDecodeError:  # a character that was cut costs no more than itself
        return _content(text.decode(errors="replace").encode(), name)
    except (ValueError, RecursionError) as error:
        if not text.lstrip().startswith((b"[", b"{")) and (told := written.conversation_in(text.decode("utf-8-sig"))):
            return told
        parts = [*(_elements(text) if text.lstrip().startswith(b"[") else _lines(text))]
        if all(isinstance(part, Unreadable) for part in parts):
            raise UnknownExport(f"{name} is not JSON: {error}. {SAYS_WHAT_IS_KNOWN}") from None
        return parts


def _lines(text: bytes) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                yield Unreadable(f"line {number:,} of the file is not JSON")


def _elements(text: bytes) -> Iterator[Any]:
    """Yield the elements of a list up to the first that cannot be read."""
    decoder, rest = json.JSONDecoder(), text.decode(errors="replace")
    at = rest.index("[") + 1
    while match := SEPARATOR.match(rest, at):
        try:
            element, at = decoder.raw_decode(rest, match.end())
        except (ValueError, RecursionError):
            yield Unreadable("the file breaks off, or is damaged, behind the conversations before")
            return
        yield element


def _entries(content: Any, depth: int = 0) -> Iterator[Item | Unreadable]:
    """Yield the objects that may be conversations: one, several, or a bare list of messages, in any wrapping."""
    if isinstance(content, dict):
        inner = content.get("conversations")
        if message_lists.recognises({"messages": inner}):  # as ShareGPT names the messages of one
            yield from message_lists.separate({**content, "messages": inner})
        elif isinstance(inner, list):
            yield from _entries(inner, depth)
        elif depth < DEEPEST and not any(form.recognises(content) for form in FORMATS):
            for value in content.values():
                yield from _entries(value, depth + 1)
        else:
            yield from message_lists.separate(content)
    elif message_lists.recognises({"messages": content}):
        yield from message_lists.separate({"messages": content})
    elif isinstance(content, list) and depth <= DEEPEST:
        for item in content:
            yield from _entries(item, depth + isinstance(item, list))
    elif isinstance(content, Unreadable):
        yield content
