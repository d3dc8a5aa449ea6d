"""Events of a model call, as a closed union."""

from dataclasses import dataclass
from enum import StrEnum

from dominds.llm.messages import ToolCall
from dominds.llm.usage import UsageReport


class FinishReason(StrEnum):
    """The reason why a model stopped."""

    STOP = "stop"
    STOP_SEQUENCE = "stop_sequence"  # at a stop sequence, where the provider tells it from other ends
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"  # the requested length of output was reached
    THOUGHT_ONLY = "length_thinking"  # the length was reached before the first word of the answer or call
    WINDOW_EXCEEDED = "window_exceeded"  # the model's window is full
    REFUSAL = "refusal"  # the model or its provider's filter refused; the answer may be empty
    PAUSE = "pause"  # a pause: the answer goes back as it is, and the model goes on from there
    COMPACTION = "compaction"  # the provider shortened the conversation
    OTHER = "other"  # an unknown reason: the answer may not be whole


# Ends before the answer was whole, as far as anybody knows.
CUT_SHORT = frozenset(
    {
        FinishReason.LENGTH,
        FinishReason.THOUGHT_ONLY,
        FinishReason.WINDOW_EXCEEDED,
        FinishReason.PAUSE,
        FinishReason.COMPACTION,
        FinishReason.OTHER,
    }
)


@dataclass(frozen=True, slots=True)
class Started:
    """The provider accepted the request. ``cursor`` goes into the next ``Request`` of the conversation."""

    cursor: str = ""


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of what the model thinks, as far as its provider shows it. It is never part of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Rethought:
    """A correction: all text so far was no part of the answer, but mostly thinking without its opening tag."""


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """Characters of a tool call under way. They fill the window, and a call runs only once it is complete."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The provider's explicit end, whose own word is ``end``. Only this makes a generation a success."""

    usage: UsageReport
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = FinishReason.STOP
    provider_items: tuple[str, ...] = ()
    end: str = ""


StreamEvent = Started | TextDelta | ReasoningDelta | Rethought | ToolCallDelta | Finished
