"""Tools that read the operator's workspace: one folder, and nothing outside it."""

import codecs
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from dialogs.context.tool_calls import Result
from dialogs.errors import Refusal
from dialogs.tools.tool import Invocation, Tool, explain_refusals, parameters
from dominds.llm.messages import ToolSpec

MAX_READ_BYTES = 64 * 1024  # per call
MAX_LINES = 2_000
MAX_ENTRIES = 500
SAMPLE_BYTES = 8 * 1024  # read to tell text from binary


class Outside(Refusal):
    """Raised for a path that cannot be used, with the reason for the model."""


@explain_refusals
def read_file(call: Invocation) -> Result:
    path = _inside(str(call.arguments["path"]))
    with _open(path) as file:
        return Result(_read(file, _name_of(path), call))


@explain_refusals
def list_files(call: Invocation) -> Result:
    folder = _inside(str(call.arguments.get("path") or "."))
    if not folder.is_dir():
        raise Outside(f"{_name_of(folder)} is not a folder. Read it with read_file, or list the folder it is in.")
    return Result(_list(folder, recursive=bool(call.arguments.get("recursive"))))


# Paths inside the workspace


def _root() -> Path:
    root = Path(settings.WORKSPACE_DIR).resolve()
    if not root.is_dir():
        raise Outside("There is no workspace folder. The operator names one with DOMINDS_WORKSPACE_DIR.")
    return root


def _inside(given: str) -> Path:
    """Return the file or folder that a model named, with links followed. Raises ``Outside`` beyond the root."""
    root = _root()
    if "\0" in given:
        raise Outside("The path holds a NUL character. Send a plain relative path.")
    asked = Path(given)
    if asked.is_absolute() or ".." in asked.parts:
        raise Outside(f"{given!r} leaves the workspace. Send a path relative to its root, without '..'.")
    try:
        path = (root / asked).resolve(strict=True)
    except (OSError, RuntimeError):  # missing, a loop of links, a name too long
        raise Outside(f"There is no {given!r} in the workspace. List what there is with list_files.") from None
    if not path.is_relative_to(root):
        raise Outside(f"{given!r} is a link that leaves the workspace.")
    return path


def _name_of(path: Path) -> str:
    return path.relative_to(_root()).as_posix()


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    """Open a file. The path was resolved before, so a new link is refused. A pipe does not block the worker."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise Outside(f"{_name_of(path)} cannot be read: {error.strerror}.") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Outside(f"{_name_of(path)} is no file. List a folder with list_files.")
    with os.fdopen(descriptor, "rb") as file:
        yield file


# Reading


def _read(file: BinaryIO, name: str, call: Invocation) -> str:
    """Return a part of a text file, and how to read on: by lines, or by bytes in a line too long for one read."""
    size = os.fstat(file.fileno()).st_size
    if not _is_text(file.read(SAMPLE_BYTES)):
        raise Outside(f"{name} is binary or not UTF-8 ({size:,} bytes); read_file reads text only.")
    if "byte_offset" in call.arguments:
        return _by_bytes(file, size, int(call.arguments["byte_offset"]))
    return _by_lines(file, size, int(call.arguments.get("offset", 1)), int(call.arguments.get("limit", MAX_LINES)))


def _is_text(sample: bytes) -> bool:
    if b"\0" in sample:
        return False
    whole = len(sample) < SAMPLE_BYTES  # a longer file's sample may end inside a character
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def _by_bytes(file: BinaryIO, size: int, start: int) -> str:
    file.seek(min(start, size))
    piece = file.read(MAX_READ_BYTES)
    end = min(start, size) + len(piece)
    text = piece.decode("utf-8", "replace")
    return text if end >= size else f"{text}\n[{size - end:,} bytes follow: read on with byte_offset={end}]"


def _by_lines(file: BinaryIO, size: int, first: int, limit: int) -> str:
    """Return lines, counted from 1. Lines before ``first`` are skipped piece by piece, so memory stays bounded."""
    start = _start_of_line(file, first)
    if start is None or (start >= size and first > 1):
        raise Outside(f"The file ends before line {first:,}. Lines count from 1.")
    file.seek(start)
    content = file.read(MAX_READ_BYTES)
    at_end = start + len(content) >= size
    lines = content.removesuffix(b"\n").split(b"\n") if at_end else content.split(b"\n")[:-1]
    if not lines:
        text = content.decode("utf-8", "replace")
        return f"{text}\n[line {first:,} is longer than one read: read on with byte_offset={start + len(content)}]"
    text = b"\n".join(lines[:limit]).decode("utf-8", "replace")
    if at_end and len(lines) <= limit:
        return text
    following = first + min(limit, len(lines))
    return (
        f"{text}\n[lines {first:,} to {following - 1:,} of a file of {size:,} bytes: read on with offset={following}]"
    )


def _start_of_line(file: BinaryIO, line: int) -> int | None:
    """Return the byte at which a line begins, or None beyond the end."""
    file.seek(0)
    seen, position = 1, 0
    while seen < line:
        piece = file.read(MAX_READ_BYTES)
        if not piece:
            return None
        if seen + piece.count(b"\n") < line:
            seen, position = seen + piece.count(b"\n"), position + len(piece)
            continue
        at = -1
        for _ in range(line - seen):
            at = piece.index(b"\n", at + 1)
        return position + at + 1
    return position


# Listing


def _list(folder: Path, *, recursive: bool) -> str:
    lines: list[str] = []
    for entry in _entries(folder, recursive=recursive):
        if len(lines) == MAX_ENTRIES:
            lines.append(f"[more than {MAX_ENTRIES} entries: list a folder below instead]")
            break
        lines.append(entry)
    return "\n".join(lines) or "[the folder is empty]"


def _entries(folder: Path, *, recursive: bool) -> Iterator[str]:
    """List files with their sizes, and folders with a slash, in order. Links are listed and never followed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise Outside(f"{_name_of(folder)} cannot be listed: {error.strerror}.") from None
    for entry in entries:
        name = _name_of(Path(entry.path))
        if entry.is_symlink():
            yield f"{name} (link)"
        elif entry.is_dir():
            yield f"{name}/"
            if recursive:
                yield from _entries(Path(entry.path), recursive=True)
        else:
            with suppress(FileNotFoundError):  # gone meanwhile
                yield f"{name} ({entry.stat().st_size:,} bytes)"


_PATH = {"type": "string", "minLength": 1, "description": "relative to the workspace's root"}
_LINE = {"type": "integer", "minimum": 1}

TOOLS = (
    Tool(
        ToolSpec(
            "read_file",
            "Read a text file of the workspace, by lines, at most 64 KB at once; the result says how to read on.",
            parameters(
                ["path"],
                path=_PATH,
                offset={**_LINE, "description": "first line, 1 by default"},
                limit={**_LINE, "maximum": MAX_LINES, "description": "how many lines"},
                byte_offset={
                    "type": "integer",
                    "minimum": 0,
                    "description": "instead of lines, to read on in a long one",
                },
            ),
        ),
        outside=read_file,
    ),
    Tool(
        ToolSpec(
            "list_files",
            "List a folder of the workspace.",
            parameters([], path=_PATH, recursive={"type": "boolean", "description": "folders below as well"}),
        ),
        outside=list_files,
    ),
)
