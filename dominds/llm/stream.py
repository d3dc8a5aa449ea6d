"""Events of a model call, as a closed union."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dominds.llm.messages import ToolCall
from dominds.llm.usage import UsageReport


class FinishReason(StrEnum):
    """The reason why a model stopped."""

    STOP = "stop"
    STOP_SEQUENCE = "stop_sequence"  # at a stop sequence, if the provider reports it as such
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"  # the requested length of output was reached
    THOUGHT_ONLY = "length_thinking"  # the length was reached before the first word of the answer or call
    WINDOW_EXCEEDED = "window_exceeded"  # the model's window is full
    REFUSAL = "refusal"  # the model or its provider's filter refused; the answer may be empty
    PAUSE = "pause"  # the answer so far has to be sent back unchanged, and the model goes on from there
    COMPACTION = "compaction"  # the provider shortened the conversation
    OTHER = "other"  # an unknown reason: the answer may not be whole


# The reasons after which the answer may not be whole.
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
    """A piece of the answer's text. A refusal, if its provider tells it apart, is the end of the text."""

    text: str
    is_refusal: bool = False


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning, as far as its provider shows it. It is never part of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Rethought:
    """A correction: all text so far was no part of the answer. Mostly it was thinking without an opening tag."""


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a tool call's text. It counts towards the window; the call runs only once it is complete."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The provider's explicit end, without which no generation succeeds. ``end`` is the provider's word for it.

    ``fields`` are further fields for programs: annotations, and fields of the whole answer.
    """

    usage: UsageReport
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = FinishReason.STOP
    provider_items: tuple[str, ...] = ()
    end: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


StreamEvent = Started | TextDelta | ReasoningDelta | Rethought | ToolCallDelta | Finished
