"""Discussions of people who quote each other: a list of threads with messages of ``speaker`` and ``text``.

Nobody has to ask anything: a sentence that a message quotes was needed just before that message.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dominds.llm.messages import Message, Role
from remediation.evaluation.dialogs import Dialog, Turn

LEAST_CHARS = 40  # of a quoted sentence: a shorter one may occur in any message
QUOTE = re.compile(r"\s{0,3}>\s?(?!>)(.*)")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def recognises(content: Any) -> bool:
    first = content[0] if isinstance(content, list) and content else None
    messages = first.get("messages") if isinstance(first, dict) else None
    return bool(messages) and isinstance(messages, list) and {"speaker", "text"} <= messages[0].keys()


def read(content: Any, name: str) -> tuple[Dialog, ...]:
    return tuple(
        Dialog(f"{name}-{number}", "threads", tuple(_turns(thread["messages"])))
        for number, thread in enumerate(content, 1)
    )


def _turns(messages: Sequence[Mapping[str, str]]) -> Iterator[Turn]:
    for number, given in enumerate(messages, 1):
        message = Message(Role.USER, f"{given['speaker']}: {given['text']}")
        own = "\n".join(line for line in given["text"].splitlines() if not line.lstrip().startswith(">"))
        yield Turn(str(number), given["speaker"], message, own, quotes=tuple(_quotes(given["text"])))


def _quotes(text: str) -> Iterator[str]:
    run: list[str] = []
    for line in [*text.splitlines(), ""]:
        if quote := QUOTE.match(line):
            run.append(quote[1])
        elif run:
            yield from (one for one in SENTENCE_END.split(" ".join(run)) if len(one) >= LEAST_CHARS)
            run = []
