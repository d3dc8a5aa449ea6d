"""What a single request leaves out of the view to fit the window. The view itself stays as it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dominds.llm.messages import Message, Role
from remediation.context import Unit, UnitRole, Units, total_tokens
from remediation.strategies.masking import FRESH_UNITS, with_short_arguments
from remediation.strategies.outcome import standing

LEFT_OUT = "[Left out of this one request, to make room.]"
LEFT_OUT_MESSAGES = "[Earlier messages are left out of this one request, to make room.]"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What one request leaves out of a view, by the indices of its units: only the ``results``, or whole ``units``.

    ``messages`` is the number of messages that the whole view has.
    """

    results: tuple[int, ...] = ()
    units: tuple[int, ...] = ()
    messages: int = 0


ALL_SHOWN = LeftOut()


def to_leave_out(units: Units, counted: Units, excess: int, count: Callable[[Sequence[Message]], int]) -> LeftOut:
    """Choose what one request leaves out so that it is ``excess`` tokens smaller. ``counted`` has the units' sizes.

    The results of old calls go first, then the oldest units, then the same of the newest FRESH_UNITS. System prompts,
    pinned units and the newest message stay. Only if all else does not suffice, people's messages among these go; they
    are there again in the next request.
    """
    stays, results, gone = standing(units), set[int](), set[int]()
    sizes = {index: unit.est_tokens for index, unit in enumerate(counted) if index not in stays}
    if excess > sum(sizes.values()):
        gone = {index for index in stays if units[index].role is UnitRole.USER and units[index].source}
        excess -= total_tokens([counted[index] for index in gone])
    newest = len(units) - FRESH_UNITS
    for part in ([index for index in sizes if index < newest], [index for index in sizes if index >= newest]):
        for index in part:
            if excess > 0 and units[index].role is UnitRole.TOOL:
                size = count(_without_results(units[index]).messages)
                excess -= sizes[index] - size
                sizes[index] = size
                results.add(index)
        for index in part:
            if excess > 0:
                gone.add(index)
                excess -= sizes[index]
    if not results and not gone:
        return ALL_SHOWN
    return LeftOut(tuple(sorted(results)), tuple(sorted(gone)), sum(len(unit.messages) for unit in units))


def without(units: Units, left_out: LeftOut) -> Units:
    """Return the units of one request, with marks in place of what it leaves out."""
    results, gone = frozenset(left_out.results), frozenset(left_out.units)
    kept = list[Unit]()
    for index, unit in enumerate(units):
        if index not in gone:
            kept.append(_without_results(unit) if index in results else unit)
        elif index == left_out.units[0]:
            mark = (Message(Role.USER, LEFT_OUT_MESSAGES),)
            kept.append(replace(unit, role=UnitRole.USER, messages=mark, pinned=False))
    return tuple(kept)


def _without_results(unit: Unit) -> Unit:
    messages = (
        replace(message, text=LEFT_OUT) if message.role is Role.TOOL else with_short_arguments(message)
        for message in unit.messages
    )
    return replace(unit, messages=tuple(messages))
