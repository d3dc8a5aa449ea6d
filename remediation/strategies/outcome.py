"""The outcome of a strategy, and questions about units that all strategies ask, such as which of them must stay."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from remediation.context import STAND_INS, Unit, UnitKind, UnitRole, Units, total_tokens

LEDGER_PREFIX = "ledger-"  # of the id of the unit that holds the key facts
FAILURE_SHARE = 8  # the newest failure must stay if it takes at most the size of all units divided by this
# These words are looked up in lower-cased text. They are no patterns, so each search is linear, whatever the text is.
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
    """The units that a strategy leaves, even if it misses its target, and a note on what it did.

    With ``fresh_start`` only a fresh start can help, since everything is relevant. ``excess`` are the tokens by which a
    model's good summary misses the target: no other unit is to go for them.
    """

    units: Units
    note: str = ""
    fresh_start: bool = False
    excess: int = 0


def has_calls(units: Sequence[Unit]) -> bool:
    """Check whether a tool was called. A view without calls is talk, for which some rules differ."""
    return any(unit.role is UnitRole.TOOL for unit in units)


def mentions(lowered: str, words: Collection[str]) -> bool:
    """Check whether a text in lower case holds one of these words, also as a part of a longer word."""
    return any(map(lowered.__contains__, words))


def in_units(number: int) -> str:
    return f"{number:,} unit" if number == 1 else f"{number:,} units"


def is_ledger(unit: Unit) -> bool:
    return unit.kind is UnitKind.SUMMARY and unit.id.startswith(LEDGER_PREFIX)


def touchable(units: Units) -> list[int]:
    """Return the indices of units that a strategy may change or remove, oldest first.

    It may not touch system prompts, pinned units, units of priority 1, the ledger, the newest unit, the newest failure
    and the newest user message.
    """
    stays = standing(units) | {newest_failure(units)}
    return [
        index for index, unit in enumerate(units[:-1]) if not (index in stays or unit.priority == 1 or is_ledger(unit))
    ]


def standing(units: Units) -> set[int]:
    """Return the indices of system prompts, pinned units and the newest user message, which no rewrite may touch."""
    newest = newest_user(units)
    return {index for index, unit in enumerate(units) if unit.role is UnitRole.SYSTEM or unit.pinned or index == newest}


def newest_failure(units: Units) -> int:
    """Return the index of the newest call that failed, unless the same call succeeded later.

    The agent needs it with its arguments and its result to go on. The index is -1 if there is none, or if it takes too
    many tokens to stay.
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
    """Return the size of the units that no rewrite may touch."""
    return tokens_at(units, standing(units))


def tokens_at(units: Units, indices: Iterable[int]) -> int:
    return sum(units[index].est_tokens for index in indices)


def with_newest(units: Units, kept: set[int], candidates: Iterable[int], room: int, skip: bool = False) -> set[int]:
    """Return the indices ``kept``, and those of the last candidates that fit beside them into ``room`` tokens.

    The first that does not fit ends the search, or with ``skip`` is skipped. Ledgers, which each rewrite writes anew,
    and negative indices are no candidates.
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
    """Check for a person's message."""
    return unit.role is UnitRole.USER and unit.kind not in STAND_INS


def newest_user(units: Units) -> int:
    return max((index for index, unit in enumerate(units) if is_question(unit)), default=-1)


def first_user(units: Units) -> int:
    return next((index for index, unit in enumerate(units) if is_question(unit)), -1)


def task_of(units: Units) -> str:
    """Return the newest user message and the first one. Together they say what the dialog is about now."""
    said = [unit.text for unit in units if is_question(unit)]
    return "\n".join(said[-1:] + said[:-1][:1])


def text_of(units: Sequence[Unit]) -> str:
    return "\n\n".join(unit.text for unit in units)


def those(units: Units, indices: Collection[int]) -> Units:
    return tuple(unit for index, unit in enumerate(units) if index in indices)


def without(units: Units, indices: Collection[int]) -> Units:
    return tuple(unit for index, unit in enumerate(units) if index not in indices)
