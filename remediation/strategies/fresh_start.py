"""The fresh start: one handover replaces the conversation, and what must not be lost stays beside it."""

from dataclasses import replace

from remediation.context import STAND_INS, Rewritten, Toolbox, Unit, UnitKind, UnitRole, Units, total_tokens
from remediation.strategies.carrying import ledger_reserve, most_of_account
from remediation.strategies.conclusion import Attempt, conclude, fail, irreducible
from remediation.strategies.fresh_results import cut_fresh_results
from remediation.strategies.hand_off import PEOPLE_SHARE, hand_off
from remediation.strategies.outcome import (
    first_user,
    newest_failure,
    newest_user,
    standing,
    task_of,
    those,
    tokens_at,
    with_newest,
    without,
)
from remediation.strategies.stand_ins import (
    HANDOVER_CLOSING,
    HANDOVER_OPENING,
    TASK_BEGAN,
    stand_in,
    summary_heading,
    text_counter,
)
from remediation.text.marks import disarm
from remediation.text.reading import without_fenced

AIM_SHARE = 2  # a fresh start aims at the limit divided by this, units of priority 1 included
SMALLEST_HANDOVER = 40  # tokens; a shorter one cannot hand anything over
TASK_CHARS = 200  # of the newest message in a handover; the message itself stands in full
TASK_SHARE = 3  # the first request may take the handover's room divided by this, or TASK_CHARS if that is more


def start_fresh(units: Units, toolbox: Toolbox, limit: int, opening: str = HANDOVER_OPENING) -> Rewritten:
    """Start afresh at the wish of a person, at a milestone, after a loop or after repeated over-hits; see ``recover``.

    The handover begins with the ``opening``, which says why.
    """
    return recover(Attempt(units, limit, toolbox.clock()), toolbox, opening)


def recover(attempt: Attempt, toolbox: Toolbox, opening: str = HANDOVER_OPENING) -> Rewritten:
    """Replace the conversation by one handover of priority 1.

    System prompts, pinned units and the newest user message stay. If they fit into half of the limit, so do units of
    priority 1, the newest failure, and the newest unit if it is a tool call.
    """
    attempt = replace(attempt, recovered=True)
    limit = attempt.limit
    before = cut_fresh_results(attempt.before, limit // AIM_SHARE - ledger_reserve(limit, attempt.before), toolbox)
    toolbox.report("recovery", total_tokens(before), limit)
    kept = _indices_to_keep(before, limit)
    used = tokens_at(before, kept)
    room = limit - used - ledger_reserve(limit, before)
    if room < SMALLEST_HANDOVER:
        return fail(attempt, irreducible(before, limit), toolbox)
    if len(kept) == len(before):
        return fail(attempt, "A fresh start would remove nothing: every unit must stay.", toolbox)
    aim = limit // AIM_SHARE - used - ledger_reserve(limit, before)
    handover = _handover(before, kept, min(room, max(aim, limit // 8, SMALLEST_HANDOVER)), toolbox, opening, limit)
    rewritten = conclude(attempt, _in_order(before, kept, handover), toolbox)
    if rewritten.est_after > limit:
        return fail(attempt, irreducible(before, limit), toolbox)
    if not rewritten.failure:
        toolbox.report("handover", rewritten.est_after, limit)
    return rewritten


def _indices_to_keep(units: Units, limit: int) -> set[int]:
    failure, last = newest_failure(units), len(units) - 1
    candidates = [
        index
        for index, unit in enumerate(units)
        if index == failure
        or (index == last and unit.role is UnitRole.TOOL)
        or (unit.priority == 1 and unit.kind is not UnitKind.SUMMARY)
    ]
    return with_newest(units, standing(units), candidates, limit // 2, skip=True)


def _handover(units: Units, kept: set[int], room: int, toolbox: Toolbox, opening: str, limit: int) -> Unit:
    gone, stay = without(units, kept), those(units, kept)
    task = _task(units, kept, room, toolbox)
    opening += summary_heading(gone)
    frame = text_counter(toolbox)(f"{opening}{HANDOVER_CLOSING}{task}") + 4
    most = most_of_account(limit, total_tokens(stay) + frame)
    people = limit // PEOPLE_SHARE
    handed = hand_off(gone, stay, max(room - frame, SMALLEST_HANDOVER // 2), toolbox, people, most)
    words = f"{opening}{handed.text}{HANDOVER_CLOSING}{task}"
    return replace(stand_in(UnitKind.SUMMARY, words, gone, toolbox, units, "handover-"), priority=1)


def _task(units: Units, kept: set[int], room: int, toolbox: Toolbox) -> str:
    """Return the task that the agent is to go on with: the newest message, and the first request if that goes."""
    newest = _shorten(task_of(units), TASK_CHARS)
    first = _first_request(units, kept)
    if not first:
        return newest
    share = room / TASK_SHARE / max(1, text_counter(toolbox)(first))
    whole = _shorten(first, max(TASK_CHARS, int(len(first) * share)))
    place = newest_user(units)
    request = _shorten(units[place].text, TASK_CHARS) if place >= 0 else ""
    return f"{request}{TASK_BEGAN}{whole}"


def _shorten(text: str, chars: int) -> str:
    """Return a text in one line without fenced code. If it is longer than ``chars``, it is cut between words."""
    line = disarm(" ".join(" ".join(without_fenced(text.splitlines())).split() or text.split()))
    return line if len(line) <= chars else f"{line[:chars].rpartition(' ')[0] or line[:chars]} …"


def _first_request(units: Units, kept: set[int]) -> str:
    """Return the request that the work began with; empty if it stays in the view, or went in an earlier rewrite.

    An earlier handover tells it. Otherwise it is the first message, unless a stand-in replaces turns before that.
    """
    first = first_user(units)
    for unit in units[: max(0, first)]:
        if unit.kind is UnitKind.SUMMARY and TASK_BEGAN in unit.text:
            return unit.text.rpartition(TASK_BEGAN)[2]
    if first < 0 or first in kept:
        return ""
    has_gone = any(unit.kind in STAND_INS and unit.source[:1] < units[first].source[:1] for unit in units)
    return "" if has_gone else _shorten(units[first].text, len(units[first].text))


def _in_order(units: Units, kept: set[int], handover: Unit) -> Units:
    """Return the system prompts, the handover, and then the other units that are kept."""
    stay = those(units, kept)
    system = [unit for unit in stay if unit.role is UnitRole.SYSTEM]
    return (*system, handover, *(unit for unit in stay if unit.role is not UnitRole.SYSTEM))
