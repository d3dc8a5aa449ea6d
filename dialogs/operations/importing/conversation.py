"""A conversation as an export tells it, and what every format needs to read one."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dominds.llm.messages import Message, Role, ToolCall

NAME = re.compile(r"[^a-zA-Z0-9_-]+")  # what no provider takes in the name of a tool
LONGEST_NAME = 64
NO_RESULT = "[The export holds no result of this call.]"

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """``at`` is when, where the export says so."""

    message: Message
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """``source`` names it for ever, such as ``chatgpt:<its id>``. ``left_out`` counts by kind what was not taken."""

    source: str
    title: str
    said: tuple[Said, ...]
    left_out: Mapping[str, int]


@dataclass(slots=True)
class Builder:
    """What was said, one message after the other. Calls and results come to stand in pairs, whatever the export has."""

    said: list[Said] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    open_calls: dict[str, None] = field(default_factory=dict)  # ids, oldest first

    def say(self, role: Role, text: str, at: datetime | None = None) -> None:
        if text.strip():
            self._close_calls(at)
            self.said.append(Said(Message(role, text), at))

    def call(self, text: str, calls: Iterable[tuple[str, str, str]], at: datetime | None = None) -> None:
        """``calls`` are ids, names and arguments. Ids are made unique, since exports repeat them. Calls that follow each
        other without a word or a result between them were made at once."""
        begun = self.said.pop().message if self.open_calls and not text and self.said[-1].message.tool_calls else None
        if begun is None:
            self._close_calls(at)
        earlier = begun.tool_calls if begun else ()
        made = tuple(
            ToolCall(f"{len(self.said)}-{place}-{given}"[:120], NAME.sub("_", name)[:LONGEST_NAME] or "tool", arguments)
            for place, (given, name, arguments) in enumerate(calls, len(earlier))
        )
        self.said.append(Said(Message(Role.ASSISTANT, begun.text if begun else text, (*earlier, *made)), at))
        self.open_calls |= dict.fromkeys(call.id for call in made)

    def result(self, text: str, given: str = "", at: datetime | None = None) -> None:
        """Of the open call with this id, else of the oldest open one. A result without any call is said by the agent."""
        ids = list(self.open_calls)
        own = next((one for one in ids if given and one.endswith(f"-{given}"[:120])), ids[0] if ids else None)
        if own is None:
            self.say(Role.ASSISTANT, text and f"[Result of a tool]\n{text}", at)
            return
        del self.open_calls[own]
        self.said.append(Said(Message(Role.TOOL, text or "[Empty.]", tool_call_id=own), at))

    def _close_calls(self, at: datetime | None) -> None:
        for own in self.open_calls:
            self.said.append(Said(Message(Role.TOOL, NO_RESULT, tool_call_id=own), at))
        self.open_calls = {}

    def conversation(self, kind: str, given: object, title: object) -> Conversation:
        """``given`` is the export's own id; where it has none, what was said names the conversation."""
        self._close_calls(self.said[-1].at if self.said else None)
        name = str(given) if given else digest_of(self.said)
        return Conversation(f"{kind}:{name}"[:200], text_of(title).strip(), tuple(self.said), dict(self.left_out))


def digest_of(said: Sequence[Said]) -> str:
    texts = [[one.message.role.value, one.message.text] for one in said]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:32]


def path_to(leaf: object, parent_of: Callable[[Any], Any], known: Mapping[Any, Any]) -> list[Any]:
    """The keys from the root down to ``leaf``. A file that leads in a circle ends where it began."""
    path: dict[Any, None] = {}
    while leaf in known and leaf not in path:
        path[leaf] = None
        leaf = parent_of(known[leaf])
    return list(path)[::-1]


def items(value: object) -> Iterator[Item]:
    """The mappings in a list; nothing of what is no list."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, Mapping):
            yield item


def mapping(value: object) -> Item:
    return value if isinstance(value, Mapping) else {}


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def json_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def moment_of(value: object) -> datetime | None:
    """Seconds or milliseconds since 1970, or ISO 8601."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
    return found.replace(tzinfo=found.tzinfo or UTC) if found else None
