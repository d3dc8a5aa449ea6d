"""Requests and messages: frozen values that every provider wrapper translates to its own wire format."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    SYSTEM = "system"  # an instruction inside the conversation; those at its beginning are ``Request.instructions``
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One structured call as the model wrote it. ``arguments`` is its raw JSON text, possibly malformed."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool offered to the model. ``parameters`` is a JSON schema of an object; if ``strict``, calls must match it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A picture, with a media type such as ``image/png``.

    If its bytes are stored elsewhere, ``content`` is empty, ``key`` identifies them and ``size`` is their number.
    ``pixels`` are width and height, if known. ``detail`` tells OpenAI's models how closely to look: low, high,
    original, or empty for the model's choice. ``at`` counts the characters of the message's text before the image, or
    is None for all of them.
    """

    media_type: str
    content: bytes = field(default=b"", repr=False)
    name: str = ""
    key: str = ""
    size: int = 0
    pixels: tuple[int, int] | None = None
    detail: str = ""
    at: int | None = None

    @property
    def label(self) -> str:
        """Return the words by which a text refers to the image."""
        shape = f" ({self.pixels[0]:,} × {self.pixels[1]:,} pixels)" if self.pixels else ""
        return f"Image “{self.name or 'unnamed'}”{shape}"


@dataclass(frozen=True, slots=True)
class FilePart:
    """A document: its bytes, with a media type such as ``application/pdf``."""

    name: str
    media_type: str
    content: bytes = field(repr=False)


Part = ImagePart | FilePart


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of the conversation; instructions are not messages, see ``Request``.

    ``provider_items`` are opaque JSON texts, such as reasoning items or signed thinking. The provider that wrote them
    wants them back unchanged, and any other provider ignores them. ``parts`` follow the text, or stand in it.
    """

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    provider_items: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()


def with_parts(messages: Iterable[Message]) -> list[Message]:
    """Return the messages that have images or files."""
    return [message for message in messages if message.parts]


def are_plain(messages: Iterable[Message]) -> bool:
    """Check whether all messages are text that is not blank, without calls, results, images and files."""
    return not any(
        each.tool_calls or each.parts or each.role is Role.TOOL or not each.text or each.text.isspace()
        for each in messages
    )


def chars_of(messages: Iterable[Message]) -> int:
    """Count the characters of texts and calls, without ids and provider items."""
    texts, calls = 0, 0
    for message in messages:
        texts += len(message.text)
        if message.tool_calls:
            calls += sum([len(call.name) + len(call.arguments) for call in message.tool_calls])
    return texts + calls


ANY_TOOL, NO_TOOL = "*", "-"


@dataclass(frozen=True, slots=True)
class Request:
    """One model call.

    ``force`` names the tool that the model has to call, or is ``ANY_TOOL`` or ``NO_TOOL``; some providers cannot
    insist. The list of tools stays whole in any case, since caches and signed thinking depend on it. ``epoch`` counts
    rewrites of the conversation and changes of its instructions and tools. Reasoning of an earlier epoch is not sent,
    since the text that it was about is gone. ``conversation`` is stable over a dialog and may serve as a provider's
    cache key. ``cursor`` is the value that the previous stream of this conversation returned in ``Started``, or empty.
    ``is_plain`` says that no message has calls or images (see ``are_plain``), so that they need not be searched.
    """

    model: str
    instructions: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    force: str | None = None
    max_output_tokens: int | None = None
    epoch: int = 0
    conversation: str = ""
    cursor: str = ""
    is_plain: bool = False

    @property
    def with_parts(self) -> Sequence[Message]:
        """Return the messages that have images or files."""
        return () if self.is_plain else with_parts(self.messages)
