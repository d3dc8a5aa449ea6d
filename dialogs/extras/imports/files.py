"""Files of exports: JSON, JSON lines, Markdown or plain text, or a service's ZIP archive. The first format that
recognises an entry reads it."""

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
MOST_BYTES = 500_000_000  # of the JSON texts of one file together; each of them is read into memory whole
MOST_MEMBERS = 1_000  # files of one archive
BYTES_PER_PART = 8  # on average at least, in a file over ``SMALL_BYTES``; real exports have 30 and more
SMALL_BYTES = 1_000_000
# Names of the files in an archive that are read; large exports have several.
CONVERSATIONS = re.compile(r"(?:^|[/\\])conversations[^/\\]*\.jsonl?$", re.I)
OTHERS = re.compile(r"(?:^|[/\\])[^./\\][^/\\]*\.jsonl?$", re.I)  # only if no file matches CONVERSATIONS
WRITTEN = re.compile(r"(?:^|[/\\])[^./\\][^/\\]*\.(?:md|markdown|txt)$", re.I)  # only if no file is JSON
DEEPEST = 3  # levels of objects and lists around conversations, such as ``data`` and ``chats``
MACOS_FOLDER = "__MACOSX"  # a folder in which macOS stores attributes of the other files
SEPARATOR = re.compile(r"\s*,?\s*(?=[^\s\],])")
SAYS_WHAT_IS_KNOWN = (
    "Known are ChatGPT's, Claude's, DeepSeek's and Grok's JSON files (or the ZIP archive that holds them), exports of "
    "Open WebUI, LibreChat and llama.cpp's web interface, conversations of LM Studio, Jan and SillyTavern, Google's "
    "record of Gemini's activity as JSON, sessions of Gemini CLI, Claude Code and Codex, Dominds' own exports, lists "
    "of messages as model servers take them, and Markdown or text in which lines such as “### User” and "
    "“### Assistant” tell who speaks."
)


class UnknownExport(ValueError):
    """Raised for a file that is none of the known exports, which the message names."""


def conversations_in(file: IO[bytes], name: str, most_bytes: int = MOST_BYTES) -> Iterator[Conversation]:
    """Yield every conversation of an export, or its title with why it cannot be read. Raises ``UnknownExport``."""
    found = False
    refused: list[UnknownExport] = []  # errors of single files of an archive; its other files are read
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
            for item in (entry, *own_export.dialogs_within(entry)):
                if (form := next((form for form in FORMATS if form.recognises(item)), None)) is not None:
                    found = True
                    yield _read(form, item)
    if not found:
        raise next(iter(refused), UnknownExport(f"{name} holds no conversation in a known form. {SAYS_WHAT_IS_KNOWN}"))
    for reason in map(str, refused):
        yield Conversation("", "", problem=reason.removesuffix(f" {SAYS_WHAT_IS_KNOWN}").rstrip("."))


def _read(form: ModuleType, entry: Item) -> Conversation:
    """Read one conversation. If a field has an unexpected type, only this conversation cannot be read."""
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
            names = [each for each in archive.namelist() if not each.startswith(MACOS_FOLDER)]
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
    """Return the content. Raises ``UnknownExport`` if it is too large, which is found by reading one byte more than is
    allowed, since the sizes that an archive states cannot be trusted.
    """
    content = file.read(most + 1)
    if len(content) > most:
        raise UnknownExport(
            f"{name} has more than {most:,} bytes. Split it, or import it by the command `dominds import`."
        )
    return content


class Unreadable(ValueError):
    """A part of the file that is not JSON, with a message about where it is."""


def _content(text: bytes, name: str) -> Any:
    """Return a file's JSON. Unreadable parts of JSON lines, or of a list that breaks off, are ``Unreadable`` values."""
    number = text.count(b",") + text.count(b"[") + text.count(b"{")
    if len(text) > SMALL_BYTES and number * BYTES_PER_PART > len(text):
        raise UnknownExport(f"{name} is no export of conversations: it consists of {number:,} tiny parts.")
    try:
        return json.loads(text)
    except UnicodeDecodeError:  # a character that was cut in two is replaced, and everything else is read
        return _content(text.decode(errors="replace").encode(), name)
    except (ValueError, RecursionError) as error:
        looks_like_json = text.lstrip().startswith((b"[", b"{"))
        if not looks_like_json and (told := written.conversation_in(text.decode("utf-8-sig"))):
            return told
        parts = [*(_elements(text) if text.lstrip().startswith(b"[") else _lines(text))]
        if all(isinstance(part, Unreadable) for part in parts):
            why = f"is not JSON: {error}" if looks_like_json else "is neither JSON nor text that tells who speaks"
            raise UnknownExport(f"{name} {why}. {SAYS_WHAT_IS_KNOWN}") from None
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
    """Yield the objects that may be conversations: one, several, or a bare list of messages, perhaps within objects."""
    if isinstance(content, dict):
        inner = content.get("conversations")
        if message_lists.recognises({"messages": inner}):  # ShareGPT's name for the messages of one conversation
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
