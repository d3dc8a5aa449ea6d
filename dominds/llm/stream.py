"""What a model call yields while it runs, as a closed union."""

from dataclasses import dataclass

from dominds.llm.messages import ToolCall
from dominds.llm.usage import UsageReport


@dataclass(frozen=True, slots=True)
class Started:
    """The provider accepted the request. ``cursor`` goes into the next ``Request`` of the conversation."""

    cursor: str = ""


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """Characters of a tool call under way: they fill the window, and are never run from here."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The provider's explicit end. Only this makes a generation a success.

    ``finish_reason`` is ``stop``, ``tool_calls``, ``length`` or the provider's own word.
    """

    usage: UsageReport
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    provider_items: tuple[str, ...] = ()


StreamEvent = Started | TextDelta | ToolCallDelta | Finished
