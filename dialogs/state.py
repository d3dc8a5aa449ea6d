"""A dialog's state, as a pure function of its rows."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    IDLE = "idle"
    QUEUED = "queued"
    GENERATING = "generating"
    WAITING = "waiting"  # an ordinary Q4H is open
    SUSPENDED = "suspended"  # a question of the runtime is open: about a critical context, a budget or a refusal
    FAILED = "failed"  # the last message failed; retry is offered
    CLOSED = "closed"


AT_REST = (State.IDLE.value, State.FAILED.value, State.CLOSED.value)  # nothing runs or waits for a person


@dataclass(frozen=True, slots=True)
class Facts:
    closed: bool
    open_question_kind: str  # "", "question", or one that suspends
    leased: bool
    owes_work: bool  # a message is queued or being answered, a generation or a rewrite is owed
    failed: bool


def state_of(facts: Facts) -> State:
    if facts.closed:
        return State.CLOSED
    if facts.open_question_kind:
        return State.WAITING if facts.open_question_kind == "question" else State.SUSPENDED
    if facts.leased:
        return State.GENERATING
    if facts.owes_work:
        return State.QUEUED
    return State.FAILED if facts.failed else State.IDLE
