"""Reading of an export in a process of its own, whose memory and time are bounded, since a file of 60 kB can become a
gigabyte of objects.

    python -m dialogs.extras.imports.reading_process NAME MOST_BYTES < FILE

writes a line of JSON for each conversation, and at last one that says how it ended.
"""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from datetime import datetime
from shutil import copyfileobj
from tempfile import TemporaryFile
from threading import BoundedSemaphore
from typing import IO, Any

from dialogs.extras.imports.conversation import Conversation, ImportedMessage
from dialogs.extras.imports.files import UnknownExport, conversations_in
from dominds import waits
from dominds.bounded_process import bound, environment
from dominds.llm.messages import Message, Role, ToolCall

AT_ONCE = BoundedSemaphore(2)  # files that a web process reads at once
MEMORY_TIMES = 12  # bytes of memory for each byte that a file may have; real exports take four to eight
LEAST_MEMORY = 256_000_000  # bytes of address space; an interpreter takes a third of it
BYTES_PER_CPU_SECOND = 1_000_000  # a slow core reads ten times as many
LEAST_CPU_SECONDS = 20
TOO_LARGE = "{name} becomes too large when it is read: it takes more than {megabytes:,} MB of memory."
TOO_LONG = "{name} was not read: it took too long or too much memory. Split it."
BUSY = "Other files are being read now. Try again in a minute."


def conversations_apart(file: IO[bytes], name: str, most_bytes: int) -> Generator[Conversation]:
    """Yield every conversation of an export, which another process reads. Raises ``UnknownExport``."""
    if not AT_ONCE.acquire(blocking=False):
        raise UnknownExport(BUSY)
    try:
        with TemporaryFile() as copy:
            file.seek(0)
            copyfileobj(file, copy)
            copy.seek(0)
            yield from _read(copy, name, most_bytes)
    finally:
        AT_ONCE.release()


def _read(file: IO[bytes], name: str, most_bytes: int) -> Iterator[Conversation]:
    waits.begin("the process that reads an import")
    reader = subprocess.Popen(
        [sys.executable, "-m", __name__, name, str(most_bytes)],
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    assert reader.stdout is not None
    try:
        for line in reader.stdout:
            if line.startswith(b"{"):
                entry = json.loads(line)
                if "end" in entry:
                    if entry["end"]:
                        raise UnknownExport(entry["end"])
                    return
                yield _conversation(entry)
        raise UnknownExport(TOO_LONG.format(name=name))
    finally:
        reader.kill()
        reader.stdout.close()
        reader.wait()


def _conversation(entry: dict[str, Any]) -> Conversation:
    messages = tuple(
        ImportedMessage(
            Message(Role(role), text, tuple(ToolCall(*call) for call in calls), call_id),
            datetime.fromisoformat(at) if at else None,
            tuple((name, content) for name, content in images),
        )
        for role, text, calls, call_id, at, images in entry["messages"]
    )
    return Conversation(entry["source"], entry["title"], messages, entry["left_out"], entry["problem"])


# -- In the process ----------------------------------------------------------------------------------------------------


def _entry(conversation: Conversation) -> dict[str, Any]:
    messages = [
        (
            said.message.role,
            said.message.text,
            [(call.id, call.name, call.arguments) for call in said.message.tool_calls],
            said.message.tool_call_id,
            said.at.isoformat() if said.at else "",
            said.images,
        )
        for said in conversation.messages
    ]
    return {
        "source": conversation.source,
        "title": conversation.title,
        "messages": messages,
        "left_out": dict(conversation.left_out),
        "problem": conversation.problem,
    }


def _bound(most_bytes: int) -> int:
    """Bound the memory and the processor time of this process, and return the bytes of memory."""
    memory = max(LEAST_MEMORY, MEMORY_TIMES * most_bytes)
    seconds = LEAST_CPU_SECONDS + most_bytes // BYTES_PER_CPU_SECOND
    bound(memory, seconds)
    return memory


def main(name: str, most_bytes: int) -> None:
    memory, end = _bound(most_bytes), ""
    try:
        with os.fdopen(0, "rb") as file:
            for conversation in conversations_in(file, name, most_bytes):
                sys.stdout.write(f"{json.dumps(_entry(conversation))}\n")
                sys.stdout.flush()
    except UnknownExport as error:
        end = str(error)
    except MemoryError:
        end = TOO_LARGE.format(name=name, megabytes=memory // 1_000_000)
    sys.stdout.write(f"{json.dumps({'end': end})}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
