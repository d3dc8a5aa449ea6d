"""A conversation in an export, and what the readers of all formats use: a builder, and careful access to JSON."""

import hashlib
import json
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from dominds.llm.messages import Message, Role, ToolCall

NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")  # characters that providers refuse in a tool's name
LONGEST_NAME = 64
NUMBER = re.compile(r"\d+(\.\d*)?")
WRITTEN_TIMES = ("%B %d, %Y %I:%M%p", "%Y-%m-%d@%Hh%Mm%Ss", "%Y/%m/%d %H:%M:%S")  # SillyTavern, and NextChat
UNITS = (1, 1e3, 1e6, 1e9)  # the parts of a second in which exports count time
DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,", re.I)
NO_RESULT = "[The export holds no result of this call.]"

Item = Mapping[str, Any]
Image = tuple[str, str]
"""A name, and the content in base64."""


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """A message, with its time if the export tells it, and with the images of a person that the export holds."""

    message: Message
    at: datetime | None = None
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """An exported conversation.

    ``source`` identifies it forever, such as ``chatgpt:<its id>``. ``left_out`` counts by kind what was not taken over,
    and ``problem`` says why the conversation cannot be read, if so.
    """

    source: str
    title: str
    messages: tuple[ImportedMessage, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""


@dataclass(slots=True)
class Builder:
    """A conversation under construction, message by message. It pairs calls and results if the export does not."""

    messages: list[ImportedMessage] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    making: list[ToolCall] = field(default_factory=list)  # the calls of the newest answer, while more may follow
    open_calls: OrderedDict[str, str] = field(default_factory=OrderedDict)  # the export's ids by ours, oldest first
    by_given: defaultdict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))  # ours by the export's

    def say(self, role: Role, text: str, at: datetime | None = None, images: Sequence[Image] = ()) -> None:
        if text.strip() or images:
            self._close_calls(at)
            self.messages.append(ImportedMessage(Message(role, text), at, tuple(images)))

    def call(self, text: str, calls: Iterable[tuple[str, str, str]], at: datetime | None = None) -> None:
        """Add calls, given by ids, names and arguments.

        Ids are made unique, since exports repeat them. Calls without a word or a result between them count as made at
        once, in one answer.
        """
        if text or not self.making:
            self._close_calls(at)
            self.messages.append(ImportedMessage(Message(Role.ASSISTANT, text), at))
        for place, (given, name, arguments) in enumerate(calls, len(self.making)):
            own = f"{len(self.messages) - 1}-{place}-{given}"[:120]
            self.making.append(ToolCall(own, NOT_IN_NAMES.sub("_", name)[:LONGEST_NAME] or "tool", arguments))
            self.open_calls[own] = given
            self.by_given[given].append(own)

    def result(self, text: str, given: str = "", at: datetime | None = None) -> None:
        """Add the result of the open call with the id ``given``, or of the oldest. Without an open call, the result
        becomes words of the agent.
        """
        self._end_answer()
        if not self.open_calls:
            self.say(Role.ASSISTANT, text and f"[Result of a tool]\n{text}", at)
            return
        if not (given and self.by_given.get(given)):
            given = next(iter(self.open_calls.values()))
        own = self.by_given[given].popleft()
        del self.open_calls[own]
        self.messages.append(ImportedMessage(Message(Role.TOOL, text or "[Empty.]", tool_call_id=own), at))

    def _end_answer(self) -> None:
        if self.making:
            answer = self.messages[-1]
            self.messages[-1] = replace(answer, message=replace(answer.message, tool_calls=tuple(self.making)))
            self.making = []

    def _close_calls(self, at: datetime | None) -> None:
        self._end_answer()
        for own in self.open_calls:
            self.messages.append(ImportedMessage(Message(Role.TOOL, NO_RESULT, tool_call_id=own), at))
        self.open_calls.clear()
        self.by_given.clear()

    def conversation(self, kind: str, given: object, title: object) -> Conversation:
        """Return the conversation. Without ``given``, the export's own id, the messages identify the conversation."""
        self._close_calls(self.messages[-1].at if self.messages else None)
        name = str(given) if given else digest_of(self.messages)
        return Conversation(f"{kind}:{name}"[:200], text_of(title).strip(), tuple(self.messages), dict(self.left_out))


def digest_of(messages: Sequence[ImportedMessage]) -> str:
    texts = [[imported.message.role.value, imported.message.text] for imported in messages]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:32]


def items(value: object) -> Iterator[Item]:
    """Yield the mappings in a list, and nothing for anything but a list."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, Mapping):
            yield item


def by_id(value: object) -> dict[str, Item]:
    """Return entries by their ids: those of a mapping, or of a list whose entries name their own ids."""
    if isinstance(value, Mapping):
        return {str(name): entry for name, entry in value.items() if isinstance(entry, Mapping)}
    return entries_by_name((str(entry.get("id")), entry) for entry in items(value))


def entries_by_name(entries: Iterable[tuple[str, Item]]) -> dict[str, Item]:
    """Return entries by unique names. An entry that equals the first or the newest of its name is left out, and others
    of the same name get a number behind it.
    """
    results: dict[str, Item] = {}
    newest: dict[str, Item] = {}
    numbers = Counter[str]()
    for name, entry in entries:
        if name in newest and entry in (results[name], newest[name]):
            continue
        own = name
        while own in results:
            numbers[name] += 1
            own = f"{name}~{numbers[name] + 1}"
        results[own] = newest[name] = entry
    return results


def role_of(value: object) -> str:
    return text_of(value).strip().lower()


def mapping(value: object) -> Item:
    return value if isinstance(value, Mapping) else {}


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def json_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def image_in(part: Item) -> Image | None:
    """Return the image that a part of a message holds, in the form of any protocol, or None."""
    given = part.get("image_url")
    addresses = (mapping(given).get("url") or given, *map(part.get, ("url", "image", "base64Url", "data", "value")))
    name = text_of(part.get("name") or part.get("filename")) or "image"
    for address in map(text_of, addresses):
        if opening := DATA_URL.match(address):
            return name, address[opening.end() :]
    for held, kind, content in (
        (mapping(part.get("source")), "media_type", "data"),  # Anthropic
        (mapping(part.get("inlineData")), "mimeType", "data"),  # Gemini
        (part, "mime", "value"),  # HuggingChat
    ):
        if text_of(held.get(kind)).startswith("image/") and (data := text_of(held.get(content))):
            return name, data
    return None


def moment_of(value: object) -> datetime | None:
    """Return a time, or None for anything else. A number, also as text, counts seconds, or thousandths, millionths or
    billionths of them, since 1970; other texts are ISO 8601 or of ``WRITTEN_TIMES``; a mapping is a date of MongoDB.
    """
    if isinstance(value, Mapping):
        return moment_of(value.get("$date", value.get("$numberLong")))
    try:
        if isinstance(value, str) and NUMBER.fullmatch(value):
            value = float(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(next((part for size in UNITS if (part := value / size) < 1e11), value), UTC)
        result = _written_moment(value) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
    return result.replace(tzinfo=result.tzinfo or UTC) if result else None


def _written_moment(text: str) -> datetime:
    for form in WRITTEN_TIMES:
        with suppress(ValueError):
            return datetime.strptime(text, form)
    return datetime.fromisoformat(text)
