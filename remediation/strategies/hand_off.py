"""The hand-off: an account in place of the units that a rewrite removes.

If there is a model, it is asked for a summary, and once more if that lacks too much. If it has no usable one, sentences
are chosen by rule.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

from dominds.llm.messages import Message, Role
from remediation.budget import with_its_answer
from remediation.context import STAND_INS, Toolbox, Unit, UnitKind, UnitRole, Units, total_tokens, write_nothing
from remediation.prompts import render
from remediation.strategies.carrying import most_of_account
from remediation.strategies.digest import digest, shorten
from remediation.strategies.outcome import is_ledger, task_of, text_of, those, tokens_at, without
from remediation.strategies.said import labelled, said_in
from remediation.strategies.stand_ins import (
    heading_tokens,
    own_text,
    stand_in,
    summary_heading,
    text_counter,
)
from remediation.text.coverage import FEWEST_TELLING, Required, Shown, is_about, missing_from, required_of, stems_of
from remediation.text.marks import BY_RULE, SPEAKERS, disarm, fenced
from remediation.text.secret_masking import redact
from remediation.text.summaries import summary_problem, without_reasoning, without_role_play

# A model is asked for the tokens of the removed units divided by the first, but at least and at most for the others.
REMOVED_SHARE, FEWEST_TOKENS, MOST_TOKENS = 5, 300, 2_000
SMALLEST_ROOM = 24  # tokens; a shorter account says nothing
RESULT_HEAD, RESULT_TAIL = 900, 500  # characters of a tool's result that the summariser reads
ARGUMENTS_CHARS = 300  # of a call's arguments that the summariser reads
TASK_CHARS = 600  # of the task that a model reads
FEWEST_WORTH_ASKING = 2  # from so many missing statements on, the model is asked once more
MOST_REPAIRS = 24  # missing statements that it is told
PROMPT_OVERHEAD = 900  # tokens of a request's instructions and frame, rounded up
ANSWER_PERCENT = 25  # of the summariser's window that is left for its answer
PEOPLE_SHARE = 5  # an account by rule has people's messages whole if they fit into the limit divided by this

Item = TypeVar("Item")

BESIDE = (
    "Beside your summary the agent will see: the newest messages word for word, a short list of key facts, and its "
    "tools search_archive and read_archive for everything else."
)


@dataclass(frozen=True, slots=True)
class HandOff:
    """An account, and for the record how it was made. ``text`` is empty if there is nothing to say."""

    text: str
    note: str = ""
    by_model: bool = False


def hand_off(
    gone: Units, remaining: Units, room: int, toolbox: Toolbox, people_room: int = 0, most: int = 0
) -> HandOff:
    """Write an account of the units that are ``gone``, beside those ``remaining``.

    A model's good summary may have ``most`` tokens, an account by rule ``room``. In the latter, people's messages stay
    whole if all of them fit into ``people_room`` tokens.
    """
    written = by_model(gone, remaining, max(room, most), toolbox)
    return written if written.by_model else by_rule(gone, remaining, room, toolbox, people_room, written.note)


def handed_over(units: Units, stays: set[int], aim: int, toolbox: Toolbox, limit: int, opening: str = "") -> Units:
    """Return the units that stay, with one account in place of the others, in ``aim`` tokens together.

    The account stands where the first of the others stood. The lines of an ``opening`` come before it, and stand there
    even if there is no account.
    """
    gone = tuple(unit for unit in without(units, stays) if not is_ledger(unit))
    beside = tokens_at(units, stays) + heading_tokens(gone, toolbox, opening)
    people, most = limit // PEOPLE_SHARE, most_of_account(limit, beside)
    handed = hand_off(gone, those(units, stays), aim - beside, toolbox, people, most)
    return summarised(units, stays, handed.text, toolbox, opening)


def summarised(units: Units, stays: set[int], text: str, toolbox: Toolbox, opening: str = "") -> Units:
    """Return the units that stay, with ``text`` as the account of the others where the first of them stood.

    Without an ``opening`` there is no account if it would be no smaller than the units. Ledgers are not accounted for.
    """
    gone = tuple(unit for unit in without(units, stays) if not is_ledger(unit))
    words = f"{opening}{summary_heading(gone)}{text}" if text else opening.strip()
    unit = stand_in(UnitKind.SUMMARY, words, gone, toolbox, units)
    if not gone or not words or (not opening and unit.est_tokens >= total_tokens(gone)):
        return those(units, stays)
    first = min(set(range(len(units))) - stays)
    return (*units[:first], unit, *(units[index] for index in sorted(stays) if index > first))


def by_model(gone: Units, remaining: Units, most: int, toolbox: Toolbox) -> HandOff:
    """Return a model's good summary, or its best sentences if it has more than ``most`` tokens.

    If there is none, the text is empty and the note says why, unless no model was asked.
    """
    if toolbox.summarise is write_nothing or most < SMALLEST_ROOM or not any(map(own_text, gone)):
        return HandOff("")
    text, note = _ask_model(gone, remaining, most, toolbox)
    count = text_counter(toolbox)
    text = text if count(text) <= most else shorten(text, most, count)
    return HandOff(text, note, by_model=bool(text))


def by_rule(gone: Units, remaining: Units, room: int, toolbox: Toolbox, people_room: int, cause: str) -> HandOff:
    """Return sentences chosen from the units. ``cause`` says why a model's summary could not be used."""
    if room < SMALLEST_ROOM or not any(map(own_text, gone)):
        return HandOff("")
    chosen = digest(gone, room, toolbox, people_room, remaining) or _beginning(gone, room, text_counter(toolbox))
    return HandOff(redact(chosen), f"chosen by rule, because {cause}" if cause else "chosen by rule")


def _beginning(gone: Units, room: int, count: Callable[[str], int]) -> str:
    """Return the beginning of what a person said last, or else the agent, for a room in which no sentence fits."""
    if not (said := said_in(gone)):
        return ""
    last = next((one for one in reversed(said) if one.role == Role.USER), said[-1])
    label = f"{BY_RULE}\n{labelled(last, '')}"
    words = shorten(last.text, max(0, room - count(label)), count)
    return f"{label}{words}" if words else ""


def _ask_model(gone: Units, remaining: Units, room: int, toolbox: Toolbox) -> tuple[str, str]:
    """Ask the model for a summary. Return it with a note, or an empty text with the reason."""
    asked = min(room, max(FEWEST_TOKENS, min(MOST_TOKENS, total_tokens(gone) // REMOVED_SHARE)))
    judge: _Judge | None = None
    summary = _earlier(gone) or "none"
    requests = list(requests_for(gone, remaining, toolbox))
    for request in requests:
        written = toolbox.summarise(request.replace(EARLIER_MARK, summary), asked)
        if not written.strip():
            return "", ""
        judge = judge or _Judge(gone, toolbox)
        summary = judge.usable(written)
        if cause := judge.problem(summary or written):
            return "", cause
    if judge is None or len(requests) > 1:  # people wait for each call, so a long summary is not repaired
        return summary, ""
    return _repair(summary, judge, remaining, asked, toolbox)


class _Judge:
    """The judge of a model's summaries. It reads all that the summary stands for, which is slow, so it is made late."""

    def __init__(self, gone: Units, toolbox: Toolbox) -> None:
        self.required = required_of(said_in(gone))
        self._original = redact("\n".join((_earlier(gone), *(entry for unit in gone for entry in entries_of(unit)))))
        self._known, self._count = Shown(self._original), text_counter(toolbox)

    def usable(self, written: str) -> str:
        """Return what a model wrote without its reasoning, secrets, our marks, and turns that it made up."""
        return without_role_play(redact(disarm(without_reasoning(written))), self._original)

    def problem(self, summary: str) -> str:
        """Say why the summary must not be used; empty if it may be."""
        about = is_about(summary, self._known, self.required)
        is_faithful = bool(self.required) and about and len(stems_of(summary)) >= FEWEST_TELLING
        most = self._count(self._original)
        if cause := summary_problem(summary, self._original, self._count, most, lambda: is_faithful):
            return cause
        return "" if about else "the summary says nothing of what it stands for"


def _repair(summary: str, judge: _Judge, remaining: Units, asked: int, toolbox: Toolbox) -> tuple[str, str]:
    """Ask once more if the summary lacks too much. Return the better of both, with a note.

    What still lacks then is left to the ledger.
    """
    beside = text_of(remaining)
    missing = missing_from(Shown(f"{summary}\n{beside}"), judge.required)
    if len(missing) < FEWEST_WORTH_ASKING:
        return summary, ""
    answer = judge.usable(toolbox.summarise(_repair_request(summary, missing, toolbox), asked))
    still = missing_from(Shown(f"{answer}\n{beside}"), judge.required)
    if judge.problem(answer) or len(still) >= len(missing):
        return summary, f"{len(missing)} missing facts went to the ledger"
    return answer, f"asked once more for {len(missing)} missing facts, {len(still)} went to the ledger"


def _repair_request(summary: str, missing: Sequence[Required], toolbox: Toolbox) -> str:
    worst = sorted(missing, key=lambda one: -one.statement.worth)[:MOST_REPAIRS]
    lines = "\n".join(
        f"- {SPEAKERS.get(one.statement.role, one.statement.role)}: {one.statement.text}" for one in worst
    )
    return f"{render(toolbox.prompt('summary_repair'), missing=lines)}\n\nYour summary:\n{summary}"


# -- What the summariser reads -----------------------------------------------------------------------------------------

EARLIER_MARK = "\0earlier summary\0"


def requests_for(gone: Units, remaining: Units, toolbox: Toolbox) -> Iterator[str]:
    """Yield requests that fit the summariser's window. Each asks to revise the summary that came of the one before."""
    entries, count = [entry for unit in gone for entry in entries_of(unit)], text_counter(toolbox)
    parts = [entries]
    if window := toolbox.summariser_window or (toolbox.assistant and toolbox.assistant.window()):
        room = max(400, with_its_answer(window, ANSWER_PERCENT) - PROMPT_OVERHEAD)
        parts = in_parts([(entry, count(entry) + 1) for entry in entries], room) or [[]]
    nonce = sha256("\0".join(map("\n".join, parts)).encode(errors="replace")).hexdigest()[:12]
    for number, part in enumerate(parts, 1):
        which = f" (part {number} of {len(parts)})" if len(parts) > 1 else ""
        turns = "\n".join(part).replace(nonce, "")
        yield (
            f"{BESIDE}\nThe newest task, which the agent sees anyway: {in_short(task_of(remaining or gone))}\n\n"
            f"Earlier summary, to be revised:\n{EARLIER_MARK}\n\n"
            f"The turns{which}:\nBEGIN {nonce}\n{turns}\nEND {nonce}"
        )


def in_parts(items: Sequence[tuple[Item, int]], room: int) -> list[list[Item]]:
    """Divide items, each given with its tokens, into parts of at most ``room`` tokens. A larger one stands alone."""
    parts: list[list[Item]] = []
    left = 0
    for item, tokens in items:
        if not parts or tokens > left:
            parts.append([])
            left = room
        parts[-1].append(item)
        left -= tokens
    return parts


def entries_of(unit: Unit) -> Iterator[str]:
    """Yield the unit's messages as a summariser reads them: with turn and speaker, long results cut in the middle."""
    if is_ledger(unit) or unit.kind in STAND_INS:
        return
    names = {call.id: call.name for message in unit.messages for call in message.tool_calls}
    for place, message in enumerate(unit.messages):
        turn = unit.source[min(place, len(unit.source) - 1)] if unit.source else 0
        yield from _entries(message, f"[turn {turn}] " if turn else "", names, unit)


def _entries(message: Message, turn: str, names: dict[str, str], unit: Unit) -> Iterator[str]:
    if message.role is Role.TOOL:
        result = _cut_middle(redact(message.text), RESULT_HEAD, RESULT_TAIL)
        name, outcome = names.get(message.tool_call_id, "a tool"), " (failed)" if unit.failed else ""
        yield f"{turn}result of {name}{outcome}: {fenced(result)}"
        return
    if message.text.strip():
        role = "system" if unit.role is UnitRole.SYSTEM else message.role.value
        yield f"{turn}{SPEAKERS.get(role, role)}: {fenced(redact(message.text))}"
    for call in message.tool_calls:
        yield f"{turn}agent calls {call.name}({_cut_middle(redact(call.arguments), ARGUMENTS_CHARS, 60)})"


def _cut_middle(text: str, head: int, tail: int) -> str:
    if len(text) <= head + tail + 40:
        return text
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[-tail:]}"


def _earlier(gone: Units) -> str:
    summaries = (unit for unit in gone if unit.kind is UnitKind.SUMMARY and not is_ledger(unit))
    return "\n".join(text for text in map(own_text, summaries) if text.strip())


def in_short(text: str) -> str:
    """Return the text in one line without secrets, and cut if it has more than TASK_CHARS."""
    line = redact(" ".join(text.split()))
    return line if len(line) <= TASK_CHARS else f"{line[:TASK_CHARS]}…"
