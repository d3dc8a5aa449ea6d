"""The common form of recorded dialogs, whatever file they come from, and the questions that probe them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dominds.llm.messages import Message, Role
from remediation.context import Unit, UnitKind, UnitRole, Units
from remediation.text.classify import kind_of, priority_of

DEFAULT_PRIORITY = 2  # the default of agents
NO_RESULT = "[No result was recorded for this call.]"


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the file.

    ``words`` is the speaker's own text, without a name or date that the loader put before it. ``quotes`` are sentences
    of other messages that the message repeats; they are no part of ``words``.
    """

    id: str
    speaker: str
    message: Message
    words: str = ""
    failed: bool = False
    quotes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Probe:
    """A question asked at the dialog's end as the newest user message.

    It can be answered while all turns of ``evidence`` are in sight or, if it names none, while one of ``answers`` is.
    If ``sentences`` is not empty, these parts of the evidence have to be in sight instead of whole turns.
    ``superseded`` are values that the evidence replaced: a model that still sees one of them without a mark may take it
    as valid.
    """

    question: str
    kind: str
    evidence: tuple[str, ...] = ()  # ids of turns
    answers: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dialog:
    """``format`` names the kind of file. ``instructions`` stand before every request."""

    name: str
    format: str
    turns: tuple[Turn, ...]
    probes: tuple[Probe, ...] = ()
    instructions: str = ""

    def turn(self, turn_id: str) -> Turn | None:
        return next((turn for turn in self.turns if turn.id == turn_id), None)


Count = Callable[[Sequence[Message]], int]


def units_of(dialog: Dialog, count: Count) -> Units:
    """Group turns as the runtime does: a tool call and its results are one unit."""
    grouped: list[tuple[int, list[int]]] = []
    open_calls: dict[str, int] = {}
    for index, turn in enumerate(dialog.turns):
        if turn.message.role is Role.TOOL:
            if (place := open_calls.pop(turn.message.tool_call_id, None)) is not None:
                grouped[place][1].append(index)
            continue
        if not (turn.message.text or turn.message.tool_calls):
            continue
        grouped.append((index, [index]))
        open_calls |= {call.id: len(grouped) - 1 for call in turn.message.tool_calls}
    return tuple(_unit(dialog.turns, indices, count) for _, indices in grouped)


def _unit(turns: Sequence[Turn], indices: Sequence[int], count: Count) -> Unit:
    first = turns[indices[0]].message
    answered = {turns[index].message.tool_call_id for index in indices[1:]}
    missing = [
        Message(Role.TOOL, NO_RESULT, tool_call_id=call.id) for call in first.tool_calls if call.id not in answered
    ]
    messages = (*(turns[index].message for index in indices), *missing)
    role = UnitRole.TOOL if first.tool_calls else UnitRole(first.role.value)
    unit = Unit(
        id=f"turn-{indices[0] + 1}",
        kind=UnitKind.MESSAGE,
        role=role,
        messages=messages,
        source=tuple(index + 1 for index in indices),
        est_tokens=count(messages),
        failed=any(turns[index].failed for index in indices),
    )
    priority, area = priority_of(unit.text, (), DEFAULT_PRIORITY, role)
    return replace(unit, kind=kind_of(unit), priority=priority, area=area)


def question_unit(text: str, seq: int, count: Count) -> Unit:
    """Return a unit for the newest user message, pinned as the runtime pins a message without an answer."""
    messages = (Message(Role.USER, text),)
    return Unit(
        f"turn-{seq}", UnitKind.MESSAGE, UnitRole.USER, messages, (seq,), DEFAULT_PRIORITY, "", count(messages), True
    )
