"""Requests and outcomes, said briefly."""

from dataclasses import dataclass
from typing import Any

from dominds.llm.http.endpoint import Endpoint
from dominds.llm.messages import Message, Request, Role, ToolSpec
from dominds.llm.models.model import ModelInfo, ProviderKind
from dominds.llm.provider import Provider, Stream
from dominds.llm.providers.echoes import Owner
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE, OpenAIChat
from dominds.llm.stream import Finished, ReasoningDelta, Started, StreamEvent, TextDelta, ToolCallDelta

CLEAR_MIND = ToolSpec("clear_mind", "Start a new round.", {"type": "object", "properties": {}})
ADD_REMINDER = ToolSpec("add_reminder", "Keep a note.", {"type": "object", "properties": {}})
HELLO = Request("a-model", "Be brief.", (Message(Role.USER, "Hello"),))


def info(kind: ProviderKind, **fields: Any) -> ModelInfo:
    """A model of a kind, with the kind's own traits where ``fields`` state no others."""
    traits = {"echo": kind.echo, "max_tokens_field": kind.max_tokens_field, "modalities": kind.modalities}
    return ModelInfo("stub", "a-model", "A model", kind, **{**traits, **fields})


def chat_at(endpoint: Endpoint) -> OpenAIChat:
    return OpenAIChat(endpoint, info(OPENAI_COMPATIBLE))


def owner(epoch: int = 0, key: str = "") -> Owner:
    return Owner.of("stub", "a-model", key, epoch)


@dataclass(frozen=True)
class Outcome:
    text: str
    finished: Finished
    started: Started
    tool_text: str = ""
    reasoning: str = ""


def events_of(stream: Stream) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    stream.run(events.append)
    return events


def outcome_of(stream: Stream) -> Outcome:
    """Run a stream to its end and check the order that its contract promises."""
    events = events_of(stream)
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    between = events[1:-1]
    assert all(isinstance(event, TextDelta | ReasoningDelta | ToolCallDelta) for event in between)
    return Outcome(
        "".join(event.text for event in between if isinstance(event, TextDelta)),
        events[-1],
        events[0],
        "".join(event.text for event in between if isinstance(event, ToolCallDelta)),
        "".join(event.text for event in between if isinstance(event, ReasoningDelta)),
    )


def ask(provider: Provider, request: Request = HELLO) -> Outcome:
    return outcome_of(provider.stream(request))
