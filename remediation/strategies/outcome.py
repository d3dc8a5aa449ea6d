"""The outcome of a strategy, and the units that a strategy may touch at all."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from remediation.context import STAND_INS, Unit, UnitKind, UnitRole, Units, total_tokens

LEDGER_PREFIX = "ledger-"  # of the id of the unit that holds the key facts
FAILURE_SHARE = 8  # the newest failure stays if it takes at most the whole divided by this
# Plain words looked up in lower-cased text: each search is linear, whatever the text holds.
FAILURE_WORDS = (
    "error",
    "exception",
    "traceback",
    "failed",
    "failure",
    "failing",
    "fatal",
    "panic",
    "crash",
    "denied",
    "timed out",
)


@dataclass(frozen=True, slots=True)
class StrategyOutcome:
    """The units after a strategy, its progress kept even where the target was not reached.

    ``fresh_start`` says that only a fresh start can help: everything is relevant. ``excess`` are the tokens that a
    model's good summary takes beyond the target: nothing else is to go for them.
    """

    units: Units
    note: str = ""
    fresh_start: bool = False
    excess: int = 0


def has_calls(units: Sequence[Unit]) -> bool:
    """Check whether a tool was called. Where none was, all is talk: it is weighed by other words, and quoted."""
    return any(unit.role is UnitRole.TOOL for unit in units)


def mentions(lowered: str, words: Collection[str]) -> bool:
    return any(map(lowered.__contains__, words))


def in_units(number: int) -> str:
    return f"{number:,} unit" if number == 1 else f"{number:,} units"


def is_ledger(unit: Unit) -> bool:
    return unit.kind is UnitKind.SUMMARY and unit.id.startswith(LEDGER_PREFIX)


def touchable(units: Units) -> list[int]:
    """Return the indices of units that a strategy may change or remove, oldest first.

    System prompts, pinned units, priority 1, the ledger, the newest unit, the newest failure and the newest user
    message always stay word for word.
    """
    stays = standing(units) | {newest_failure(units)}
    return [
        index for index, unit in enumerate(units[:-1]) if not (index in stays or unit.priority == 1 or is_ledger(unit))
    ]


def standing(units: Units) -> set[int]:
    """The indices of what no rewrite may change or take away: system prompts,
    pinned units and the newest user message."""
    newest = newest_user(units)
    return {index for index, unit in enumerate(units) if unit.role is UnitRole.SYSTEM or unit.pinned or index == newest}


def newest_failure(units: Units) -> int:
    """Return the index of the newest call that failed and that the same call has not mended since: whoever works on
    needs it with its arguments and its outcome. It is -1 without one, and for one that is too large to stay.
    """
    mended: set[tuple[str, str]] = set()
    for index in reversed(range(len(units))):
        unit = units[index]
        if unit.role is UnitRole.TOOL and unit.kind not in STAND_INS:
            calls = {(call.name, call.arguments) for message in unit.messages for call in message.tool_calls}
            if unit.failed and not calls <= mended:
                return index if unit.est_tokens * FAILURE_SHARE <= total_tokens(units) else -1
            mended |= set() if unit.failed else calls
    return -1


def standing_tokens(units: Units) -> int:
    return tokens_at(units, standing(units))


def tokens_at(units: Units, indices: Iterable[int]) -> int:
    return sum(units[index].est_tokens for index in indices)


def with_newest(units: Units, kept: set[int], candidates: Iterable[int], room: int, skip: bool = False) -> set[int]:
    """Return ``kept`` and the last candidates that fit beside it into ``room`` tokens, up to the first that does not
    unless ``skip`` is set. A ledger is none, since each rewrite writes it anew, nor is an index below 0.
    """
    chosen, left = set(kept), room - tokens_at(units, kept)
    open_to_choice = [i for i in candidates if i >= 0 and i not in kept and not is_ledger(units[i])]
    for index in reversed(open_to_choice):
        if units[index].est_tokens <= left:
            chosen.add(index)
            left -= units[index].est_tokens
        elif not skip:
            break
    return chosen


def is_question(unit: Unit) -> bool:
    """Check for what a person said."""
    return unit.role is UnitRole.USER and unit.kind not in STAND_INS


def newest_user(units: Units) -> int:
    return max((index for index, unit in enumerate(units) if is_question(unit)), default=-1)


def first_user(units: Units) -> int:
    return next((index for index, unit in enumerate(units) if is_question(unit)), -1)


def task_of(units: Units) -> str:
    """Return a query for what the dialog is about now: its newest user message, followed by its first."""
    said = [unit.text for unit in units if is_question(unit)]
    return "\n".join(said[-1:] + said[:-1][:1])


def text_of(units: Sequence[Unit]) -> str:
    return "\n\n".join(unit.text for unit in units)


def those(units: Units, indices: Collection[int]) -> Units:
    return tuple(unit for index, unit in enumerate(units) if index in indices)


def without(units: Units, indices: Collection[int]) -> Units:
    return tuple(unit for index, unit in enumerate(units) if index not in indices)
