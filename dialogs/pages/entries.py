"""The entries of a transcript: turns, rounds, rewrites and tool cards, in the order in which a page shows them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson
from django.db.models import Q
from django.utils.safestring import SafeString, mark_safe

from dialogs.actions.attachments import text_files, text_typed
from dialogs.actions.question_rows import ALLOW_ALWAYS, ALLOWING, INSTEAD
from dialogs.actions.questions import ASK_HUMAN
from dialogs.context import view
from dialogs.models import Dialog, Question, Round, Turn
from dialogs.pages.context_panel import RunLine, run_lines
from dialogs.pages.markdown import render
from dialogs.pages.reasoning import Reasoning, reasoning_of
from dialogs.state import State
from dominds.budgets import TURN_CHARS
from dominds.visible_text import in_reading_order
from health.models import HealthSnapshot
from remediation.guidance import CLEAR_MIND
from remediation.policies.registry import rewriting_policies

PAGE_TURNS = 40
RESULT_SHOWN_CHARS = 20_000
HINT_CHARS = 120
IMAGE_SHOWN_PX = 420, 280  # the greatest width and height of an attached image
FOLDED_CHARS, FOLDED_LINES = 2_500, 25  # a message is folded from this length on


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with its result, if there is one yet. A turn's calls run one after another: of those without a
    result, one is ``pending`` and runs, and the others are ``waiting``.
    """

    key: str
    name: str
    hint: str
    arguments: str
    arguments_chars: int
    result: str = ""
    result_chars: int = 0
    status: str = "pending"
    since: datetime | None = None  # when a pending call began
    approval: Question | None = None  # the question by which a person allowed or refused it

    @property
    def is_refused(self) -> bool:
        """Check whether a person refused the call, so that it has not run and has not failed."""
        return self.status == "error" and self.approval is not None and self.approval.answer not in ALLOWING

    @property
    def is_persons(self) -> bool:
        """Check whether a person gave the result in the tool's place."""
        return self.approval is not None and self.approval.action == INSTEAD

    @property
    def is_cut(self) -> bool:
        return self.result_chars > len(self.result) or self.arguments_chars > len(self.arguments)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file of a message, as far as the page shows it."""

    name: str
    text: str
    chars: int

    @property
    def is_cut(self) -> bool:
        return self.chars > len(self.text)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the transcript: a turn, the divider of a round or branch, or a rewrite of what the model sees."""

    position: float
    turn: Turn | None = None
    html: SafeString | None = None
    reasoning: Reasoning | None = None
    calls: tuple[Call, ...] = ()
    snapshot: HealthSnapshot | None = None
    round: Round | None = None
    run: RunLine | None = None
    is_fork: bool = False  # the line between a branch's copied turns and its own
    asked: tuple[Question, ...] = ()  # questions that this turn's calls asked
    answered: Question | None = None  # the question that this turn answers
    call_site: str = ""  # the address of the turn that asked

    @property
    def text(self) -> str:
        """Return the part of the turn's text that the page shows. The whole text has its own address."""
        return self.typed[: TURN_CHARS.most]

    @property
    def typed(self) -> str:
        return text_typed(self.turn.text, self.turn.attachments) if self.turn else ""

    @property
    def is_cut(self) -> bool:
        return len(self.typed) > TURN_CHARS.most

    @property
    def images(self) -> list[dict[str, Any]]:
        """Return the images with their sizes on the page, which reserves the room before they load."""
        files = (self.turn.attachments if self.turn else None) or ()
        return [file | _shown_size(file["width"], file["height"]) for file in files if "width" in file]

    @property
    def files(self) -> list[TextFile]:
        if self.turn is None:
            return []
        blocks = text_files(self.turn.text, self.turn.attachments)
        return [TextFile(name, text[:RESULT_SHOWN_CHARS], len(text)) for name, text in blocks]

    @property
    def is_long(self) -> bool:
        """Check whether the message is long enough to be folded, like a pasted document."""
        return len(self.text) > FOLDED_CHARS or self.text.count("\n") >= FOLDED_LINES

    @property
    def is_bare(self) -> bool:
        """Check whether this is an agent's turn with nothing to show."""
        assert self.turn is not None
        return not (self.turn.text or self.calls or self.asked or self.reasoning)

    @property
    def shows_usage(self) -> bool:
        """Check whether the size of its request is shown below it: not below a turn that only calls tools."""
        turn = self.turn
        assert turn is not None
        is_generated = turn.role == Turn.Role.ASSISTANT and turn.generation_id is not None
        return is_generated and bool(turn.text or not turn.tool_calls)

    @property
    def template(self) -> str:
        if self.run is not None:
            return "dialogs/_run.html"
        if self.is_fork:
            return "dialogs/_fork.html"
        if self.turn is None:
            return "dialogs/_round.html"
        return "dialogs/_turn.html" if self.answered is None else "dialogs/_human_answer.html"


def _shown_size(width: int, height: int) -> dict[str, int]:
    scale = min(1.0, IMAGE_SHOWN_PX[0] / width, IMAGE_SHOWN_PX[1] / height)
    return {"width": max(1, round(width * scale)), "height": max(1, round(height * scale))}


def entries_of(dialog: Dialog, turns: Sequence[Turn], *, opens: bool = False) -> list[Entry]:
    """Return turns as entries, with the clears and rewrites between them. ``opens``: the dialog's first turn is among
    them.
    """
    first, last = (turns[0].round_number, turns[-1].round_number) if turns else (1, 1)
    clears = list(_clears(dialog, 1 if opens else first, last))
    entries: list[Entry] = []
    for entry, turn in zip(turn_entries(dialog, turns), turns, strict=True):
        while clears and clears[0].number <= turn.round_number:
            entries.append(Entry(position=(turn.position or 0) - 0.5, round=clears.pop(0)))
        entries.append(entry)
    return sorted(entries + _run_entries(dialog, turns), key=lambda entry: entry.position)


def _clears(dialog: Dialog, after: int, last: int) -> Iterable[Round]:
    """Return the rounds behind ``after``, up to ``last``, that began with a clear. Other rounds have no divider."""
    return dialog.rounds.filter(number__gt=after, number__lte=last, cause__in=Round.CLEARS) if last > after else ()


def turn_entries(dialog: Dialog, turns: Sequence[Turn]) -> list[Entry]:
    """Return turns as entries, without the dividers and rewrites between them."""
    calls = calls_of(dialog, turns)
    answered = {turn.tool_call_id for turn in turns if turn.role == Turn.Role.TOOL}
    if pending := [call["id"] for turn in turns for call in turn.tool_calls or () if call["id"] not in answered]:
        first = min(turn.position or 0 for turn in turns)  # in ``turns``, results may come before the turn that asked
        results = dialog.turns.filter(tool_call_id__in=pending, position__gt=first)
        answered |= set(results.values_list("tool_call_id", flat=True))
    asked = _questions_of(dialog, calls, answered)
    approvals = _approvals_of(dialog, turns)
    entries = [entry_of(dialog, turn, calls, answered, asked, approvals) for turn in turns]
    began = [turn.created_at for turn in turns if turn.role == Turn.Role.TOOL]
    if pending:
        allowed = dialog.questions.filter(tool_call_id__in=pending).values_list("resolved_at", flat=True)
        began += [at for at in allowed if at]
    return [_with_running(entry, began) for entry in entries]


def _with_running(entry: Entry, began: Sequence[datetime]) -> Entry:
    """Mark which of the entry's calls without a result runs, and which wait.

    They run in their order, but a clear of the mind comes last, and none runs while a question is open. The running
    call began at the newest of the moments ``began``: when the call before it ended, or when a person allowed it.
    """
    pending = sorted(
        (call for call in entry.calls if call.status == "pending"), key=lambda call: call.name == CLEAR_MIND
    )
    if not pending or entry.turn is None:
        return entry
    since = max([entry.turn.created_at, *began])
    is_asking = any(question.state == Question.State.OPEN for question in entry.asked)
    running = {} if is_asking else {pending[0].key: replace(pending[0], since=since)}
    waiting = {call.key: replace(call, status="waiting") for call in pending[len(running) :]}
    return replace(entry, calls=tuple((running | waiting).get(call.key, call) for call in entry.calls))


def _questions_of(dialog: Dialog, calls: Mapping[str, "AskedCall"], answered: set[str]) -> dict[str, Question]:
    """Map call ids to the questions that these calls asked, or that ask whether they may run."""
    is_waiting = dialog.state == State.WAITING
    ids = [
        call_id
        for call_id, (call, _) in calls.items()
        if call["name"] == ASK_HUMAN or (is_waiting and call_id not in answered)
    ]
    rows = dialog.questions.filter(Q(approves="") | Q(state=Question.State.OPEN), tool_call_id__in=ids)
    result = rows.select_related("resolved_by") if ids else ()
    return {question.tool_call_id: question for question in result}


def _approvals_of(dialog: Dialog, turns: Sequence[Turn]) -> dict[str, Question]:
    """Map call ids to the questions by which a person allowed or refused the calls. Their results have an author."""
    tools = {turn.tool_call_id: turn.tool_name for turn in turns if turn.role == Turn.Role.TOOL and turn.author_id}
    if not tools:
        return {}
    rows = dialog.questions.exclude(approves="").filter(Q(tool_call_id__in=tools) | Q(answer=ALLOW_ALWAYS))
    closed = list(rows.exclude(state=Question.State.OPEN).select_related("resolved_by"))
    always = {row.tool: row for row in closed if row.answer == ALLOW_ALWAYS and row.action != INSTEAD}
    return {call_id: always[tool] for call_id, tool in tools.items() if tool in always} | {
        row.tool_call_id: row for row in closed
    }


def _run_entries(dialog: Dialog, turns: Sequence[Turn]) -> list[Entry]:
    """Return the rewrites that were made between these turns."""
    if not turns:
        return []
    first, last = turns[0].position or 0, turns[-1].position or 0
    reach = {"base_position__gte": first}
    if last < dialog.last_position:
        reach["base_position__lt"] = last
    return [run_entry(line) for line in run_lines(dialog, **reach)]


def run_entry(line: RunLine) -> Entry:
    """Place a rewrite after the last turn before it. Only its policy's notice, or a clear that it undid, is between."""
    if line.undoes_clear:
        return Entry(position=line.run.base_position + 0.75, run=line)
    has_notice = any(policy.notices for policy in rewriting_policies() if policy.name == line.run.policy)
    return Entry(position=line.run.base_position + has_notice + 0.25, run=line)


def entry_of(
    dialog: Dialog,
    turn: Turn,
    calls: Mapping[str, "AskedCall"],
    answered: set[str],
    asked: Mapping[str, Question],
    approvals: Mapping[str, Question],
) -> Entry:
    generation, position = turn.generation, turn.position or 0
    if turn.role == Turn.Role.TOOL:
        call, asking = calls.get(turn.tool_call_id, (None, None))
        if (question := asked.get(turn.tool_call_id)) is not None and asking is not None:
            site = address_of(dialog, asking.position or 0, f"turn-{asking.seq}")
            return Entry(position=position, turn=turn, answered=question, call_site=site)
        card = replace(_card(call, turn), approval=approvals.get(turn.tool_call_id))
        if (approval := card.approval) and approval.edited_arguments and approval.tool_call_id == turn.tool_call_id:
            card = replace(card, hint=_arguments(approval.edited_arguments)[1])  # the call ran with these
        return Entry(position=position, turn=turn, calls=(card,))
    snapshot = getattr(generation, "snapshot", None) if generation and turn.role == Turn.Role.ASSISTANT else None
    html = None
    if turn.role == Turn.Role.ASSISTANT and turn.text:
        html = mark_safe(render(turn.text[: TURN_CHARS.most]))  # nosec B308 B703  render() cleans it
    made = turn.tool_calls or ()
    return Entry(
        position=position,
        turn=turn,
        html=html,
        reasoning=reasoning_of(turn),
        calls=tuple(_card(call, None) for call in made if call["id"] not in answered and call["id"] not in asked),
        snapshot=snapshot,
        asked=tuple(asked[call["id"]] for call in made if call["id"] in asked),
    )


AskedCall = tuple[dict[str, str], Turn]  # a call, and the turn that made it


def calls_of(dialog: Dialog, turns: Sequence[Turn]) -> dict[str, AskedCall]:
    """Return the calls of these turns and those to which their results belong, by id. The turn that asked may stand on
    an older page.
    """
    calls = {call["id"]: (call, turn) for turn in turns for call in turn.tool_calls or ()}
    missing = [turn for turn in turns if turn.role == Turn.Role.TOOL and turn.tool_call_id not in calls]
    if missing:
        before = min(turn.position or 0 for turn in missing)
        asking = dialog.turns.filter(role=Turn.Role.ASSISTANT, tool_calls__isnull=False, position__lt=before)
        for turn in asking.order_by("-position")[:2]:
            calls |= {call["id"]: (call, turn) for call in turn.tool_calls or ()}
    return calls


def _card(call: dict[str, str] | None, result: Turn | None) -> Call:
    arguments, hint = _arguments(call["arguments"]) if call else ("", "")
    return Call(
        key=f"{result.seq}" if result else (call or {}).get("id", ""),
        name=call["name"] if call else (result.tool_name if result else ""),
        hint=hint,
        arguments=arguments[:RESULT_SHOWN_CHARS],
        arguments_chars=len(arguments),
        result=result.text[:RESULT_SHOWN_CHARS] if result else "",
        result_chars=len(result.text) if result else 0,
        status=result.status if result else "pending",
    )


def _arguments(text: str) -> tuple[str, str]:
    """Return the arguments as indented JSON, and a hint: the beginning of the first value. Both in the order in which
    the tool reads them.
    """
    arguments, hint = _indented(text)
    return in_reading_order(arguments), in_reading_order(hint)


def _indented(text: str) -> tuple[str, str]:
    try:
        given = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return text, _hint(text)
    if not isinstance(given, dict) or not given:
        return ("", "") if not given else (text, text[:HINT_CHARS])
    try:
        return orjson.dumps(given, option=orjson.OPT_INDENT_2).decode(), _hint(str(next(iter(given.values()))))
    except (TypeError, RecursionError):  # orjson reads 1,024 levels, and writes 254
        return text, _hint(text)


def _hint(text: str) -> str:
    """Return the beginning of a text on one line."""
    return " ".join(text[: 10 * HINT_CHARS].split())[:HINT_CHARS]


def address_of(dialog: Dialog, position: int, anchor: str) -> str:
    """Return the address of a place in the transcript: on the newest page, or on an older page that also shows the turn
    before it.
    """
    is_old = dialog.last_position - position >= PAGE_TURNS - 1
    return f"/d/{dialog.pk}/{f'?before={position + PAGE_TURNS - 1}' if is_old else ''}#{anchor}"


def all_entries(dialog: Dialog, before: int | None = None) -> tuple[list[Entry], int | None]:
    """Return one page of the transcript, and the position from which the next older page goes on, if there is one."""
    turns = view.visible_turns(dialog, before, PAGE_TURNS)
    first = turns[0].position if turns else None
    older = first if first is not None and first > 1 and len(turns) == PAGE_TURNS else None
    entries = entries_of(dialog, turns, opens=older is None) + ([] if before else _empty_rounds(dialog, turns))
    return sorted(entries + _fork_line(dialog, turns, before), key=lambda entry: entry.position), older


def _fork_line(dialog: Dialog, turns: Sequence[Turn], before: int | None) -> list[Entry]:
    """Return the fork's line on the page with the first own turn, or at the end while there is none."""
    own_from = dialog.own_from
    first, last = (turns[0].position or 0, turns[-1].position or 0) if turns else (1, 0)
    is_here = first <= own_from <= last or (before is None and own_from == last + 1)
    return [Entry(position=own_from - 0.5, is_fork=True)] if dialog.forked_from_id and is_here else []


def _empty_rounds(dialog: Dialog, turns: Sequence[Turn]) -> list[Entry]:
    """Return the dividers of the newest rounds, which have no turn yet."""
    last = turns[-1].round_number if turns else 1
    clears = _clears(dialog, last, dialog.round_number)
    return [Entry(position=dialog.last_position + 0.5, round=row) for row in clears]
