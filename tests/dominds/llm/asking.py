"""Requests and outcomes, said briefly."""

from dataclasses import dataclass

from dominds.llm.messages import Message, Request, Role, ToolSpec
from dominds.llm.provider import Provider, Stream
from dominds.llm.stream import Finished, Started, StreamEvent, TextDelta, ToolCallDelta

CLEAR_MIND = ToolSpec("clear_mind", "Start a new round.", {"type": "object", "properties": {}})
ADD_REMINDER = ToolSpec("add_reminder", "Keep a note.", {"type": "object", "properties": {}})
HELLO = Request("a-model", "Be brief.", (Message(Role.USER, "Hello"),))


@dataclass(frozen=True)
class Outcome:
    text: str
    finished: Finished
    started: Started
    tool_text: str = ""


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
    assert all(isinstance(event, TextDelta | ToolCallDelta) for event in between)
    return Outcome(
        "".join(event.text for event in between if isinstance(event, TextDelta)),
        events[-1],
        events[0],
        "".join(event.text for event in between if isinstance(event, ToolCallDelta)),
    )


def ask(provider: Provider, request: Request = HELLO) -> Outcome:
    return outcome_of(provider.stream(request))
