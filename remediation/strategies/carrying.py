"""The key-fact ledger as a unit of the view: what a rewrite removes contributes to it, and it follows the summary (R15)."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from remediation.context import Toolbox, UnitKind, UnitRole, Units
from remediation.strategies.outcome import LEDGER_PREFIX, is_ledger, text_of
from remediation.strategies.stand_ins import stand_in, text_counter, told
from remediation.text.ledger import key_facts, merge_ledgers, render_ledger

CANDIDATES = 8  # times the budget: the facts to choose from
LEDGER_SHARE = 10  # the ledger gets at most the limit divided by this
MESSAGE_TOKENS = 10  # of an empty message, rounded up
SMALLEST_LEDGER = 16  # tokens
KIND_WORDS = ("Rule: ", "Failed: ", "Tool output: ")  # with which the ledger's lines may begin

# The beginning of a log line that reports nothing unusual, and how long something took. Linear: no repeat inside another.
ROUTINE = re.compile(
    r"\[?(?:\d{4}-\d\d-\d\d[T ]?)?(?:\d\d:\d\d(?::\d\d)?[.,\d]{0,10}Z?\]?)? ?\[?(?:TRACE|DEBUG|INFO)\b\]?:? ?"
)
EXACT = re.compile(r"[0-9]|\w/\w|[~./]/\w|\b(?:error|exception|fail|denied|refused|never|must not|do not|don.t)", re.I)
DURATION = re.compile(r"(?:\bin )?\b\d{1,12}(?:\.\d{1,6})? ?(?:ns|us|µs|ms|s|sec|seconds)\b")


@dataclass(frozen=True, slots=True)
class Carried:
    units: Units
    ledger: tuple[str, ...]


def ledger_budget(limit: int) -> int:
    """Tokens, the heading included."""
    return limit // LEDGER_SHARE


def ledger_lines(units: Units) -> tuple[str, ...]:
    """The facts that the ledgers among ``units`` already carry."""
    lines = (line for unit in units if is_ledger(unit) for line in unit.text.splitlines())
    return tuple(line.removeprefix("- ") for line in lines if line.startswith("- "))


def carry(before: Units, after: Units, budget_tokens: int, toolbox: Toolbox) -> Carried:
    """``after`` with one ledger: the facts carried so far and those that ``before`` loses, except what still stands."""
    view = tuple(unit for unit in after if not is_ledger(unit))
    room = budget_tokens - MESSAGE_TOKENS
    lost = removed_from(before, view)
    if room < SMALLEST_LEDGER or not lost:
        return Carried(view, ())
    ledger = _facts(before, lost, view, room, toolbox)
    if not ledger:
        return Carried(view, ())
    unit = stand_in(UnitKind.SUMMARY, render_ledger(ledger), lost, toolbox, view, LEDGER_PREFIX)
    position = _position(before, view)
    return Carried((*view[:position], unit, *view[position:]), ledger)


def _facts(before: Units, lost: Units, view: Units, room: int, toolbox: Toolbox) -> tuple[str, ...]:
    """Important units speak first, since the budget may not reach for all."""
    count, visible = text_counter(toolbox), text_of(view)
    speakers = sorted((unit for unit in lost if told(unit)), key=lambda unit: unit.priority)
    texts = [(unit.role.value, without_routine(told(unit))) for unit in speakers]
    found = (*ledger_lines(before), *key_facts(texts, CANDIDATES * room, count))
    lines = [line for line in dict.fromkeys(found) if _said(line) not in visible]
    exact = merge_ledgers([], [line for line in lines if _is_exact(line)], room, count)
    return _filled(exact, [line for line in lines if not _is_exact(line)], room // 2, count)


def _is_exact(line: str) -> bool:
    """Rules, failures, and what holds a number, an identifier or a path: what R15 names. Other lines get at most half the room."""
    return line.startswith(KIND_WORDS) or bool(EXACT.search(line))


def _filled(ledger: tuple[str, ...], others: list[str], room: int, count: Callable[[str], int]) -> tuple[str, ...]:
    for line in others:
        if count(render_ledger((*ledger, line))) > room:
            break
        ledger = (*ledger, line)
    return ledger


def without_routine(text: str) -> str:
    """``text`` without the clock times, levels and durations of routine log lines, which would crowd out the facts."""
    return "\n".join(
        DURATION.sub("", line[found.end() :]) if (found := ROUTINE.match(line)) else line for line in text.splitlines()
    )


def _said(line: str) -> str:
    """A ledger line without the word that says what kind it is."""
    return next((line.removeprefix(word) for word in KIND_WORDS if line.startswith(word)), line)


def removed_from(before: Units, after: Units) -> Units:
    """The units of ``before`` that ``after`` does not show as they were."""
    standing = {(unit.id, unit.messages) for unit in after}
    return tuple(unit for unit in before if (unit.id, unit.messages) not in standing)


def _position(before: Units, view: Units) -> int:
    """After the first text that is new and stands for others; else after the leading system prompts."""
    known = {unit.id for unit in before}
    for index, unit in enumerate(view):
        if unit.kind is UnitKind.SUMMARY and unit.id not in known:
            return index + 1
    return next((index for index, unit in enumerate(view) if unit.role is not UnitRole.SYSTEM), len(view))
