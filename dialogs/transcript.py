"""What the model sees, computed from turns and rewrites (R8): a view, never the record itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db.models import Exists, QuerySet

from dialogs.models import Dialog, Round, Turn
from dominds.llm.messages import Message, Role, ToolCall
from dominds.statements import Select
from remediation.context import Unit, UnitKind, UnitRole, Units
from remediation.models import RemediationRun

NO_RESULT = "[No result was recorded for this call.]"
PENDING = (Turn.Status.QUEUED, Turn.Status.ANSWERING, Turn.Status.SUSPENDED)
_TURN_COLUMNS = (
    "seq", "position", "role", "status", "text", "tool_calls", "tool_call_id", "provider_items",
)  # fmt: skip
REMEMBERED_CHARS = 2_000  # longer texts cost more memory than it takes to make their units anew
_ROLES = {role.value: role for role in Role}  # a look-up, since calling an enumeration costs three times as much
_UNIT_ROLES = {role.value: role for role in UnitRole}


@dataclass(frozen=True, slots=True)
class View:
    """The units in the order in which the model sees them. ``base`` changes only when what went before is rewritten."""

    units: Units
    base: str
    base_position: int = 0  # the last turn that the rewrite took in
    by_value: frozenset[str] = frozenset()  # ids of units that a rewrite stored as text, in place of what was said
    interrupted: bool = False  # the newest answer was cut for compaction and is to go on


def view_of(dialog: Dialog) -> View:
    """The current round as the newest rewrite that stands left it, with every turn since."""
    current = _ROUND.one(dialog.pk, dialog.round_number)
    run = standing_run(dialog) if current.is_rewritten else None
    rows = _rows(dialog, current, run)
    by_seq = {row.seq: row for row in rows}
    units: list[Unit] = _rewritten_units(run, by_seq) if run else _opening_units(current)
    base_position = run.base_position if run else 0
    carried = set(current.carried)
    fresh = [row for row in rows if row.position > base_position or (run is None and row.seq in carried)]
    units += group(fresh)
    units = _pin(dialog, units)
    newest = rows[-1] if rows else None
    return View(
        units=tuple(units),
        base=f"{dialog.round_number}:{run.pk if run else 0}",
        base_position=base_position,
        by_value=frozenset(item["id"] for item in run.view if "id" in item) if run else frozenset(),
        interrupted=newest is not None and newest.status == Turn.Status.INTERRUPTED,
    )


def standing_run(dialog: Dialog) -> RemediationRun | None:
    return _STANDING.first(dialog.pk, dialog.round_number)


def _round(dialog_id: UUID, number: int) -> QuerySet[Round]:
    told: dict[str, Any] = {"is_rewritten": Exists(_standing(dialog_id, number))}
    return Round.objects.filter(dialog_id=dialog_id, number=number).annotate(**told)


def _standing(dialog_id: UUID, round_number: int) -> QuerySet[RemediationRun]:
    return (
        RemediationRun.objects.filter(dialog_id=dialog_id, round_number=round_number, undone_at__isnull=True)
        .defer("removed")  # the archive's copy of what went away can be long, and is not part of the view
        .order_by("-id")[:1]
    )


def _rows(dialog: Dialog, current: Round, run: RemediationRun | None) -> list[Any]:
    """The turns that the view is made of, in order: those of the round, and older ones that it names."""
    since, named = (run.base_position, _shown(run)) if run else (-1, list(current.carried))
    rows = _TURNS_SINCE(dialog.pk, dialog.round_number, since)
    if not named:
        return rows
    older = _shown_turns(Turn.objects.filter(dialog=dialog, seq__in=named))
    return sorted({row.seq: row for row in (*older, *rows)}.values(), key=attrgetter("position"))


def _shown(run: RemediationRun) -> list[int]:
    return [seq for item in run.view for seq in item.get("turns", ())]


def _turns_since(dialog_id: UUID, round_number: int, position: int) -> QuerySet[Turn, Any]:
    return _shown_turns(Turn.objects.filter(dialog_id=dialog_id, round_number=round_number, position__gt=position))


def _shown_turns(turns: QuerySet[Turn]) -> QuerySet[Turn, Any]:
    placed = turns.filter(position__isnull=False).exclude(role=Turn.Role.NOTICE)
    return placed.order_by("position").values_list(*_TURN_COLUMNS, named=True)


_ROUND, _STANDING, _TURNS_SINCE = Select(_round), Select(_standing), Select(_turns_since)


def _opening_units(current: Round) -> list[Unit]:
    if not current.package:
        return []
    text = f"[Re-entry package: what you carried over when your mind was cleared]\n{current.package}"
    return [
        Unit(
            id=f"package-{current.number}",
            kind=UnitKind.SUMMARY,
            role=UnitRole.USER,
            messages=(Message(Role.USER, text),),
            priority=1,
            pinned=True,
        )
    ]


def _rewritten_units(run: RemediationRun, by_seq: dict[int, Any]) -> list[Unit]:
    units: list[Unit] = []
    for item in run.view:
        if "messages" in item:
            units.append(unit_from_json(item))
        else:
            units += group([by_seq[seq] for seq in item["turns"] if seq in by_seq])
    return units


def unit_to_json(unit: Unit, original: bool) -> dict[str, Any]:
    """How a rewrite stores a unit of its view: by reference when it stands as it was said, by value otherwise."""
    if original and unit.source:
        return {"turns": list(unit.source)}
    return {
        "id": unit.id,
        "kind": unit.kind.value,
        "role": unit.role.value,
        "sources": list(unit.source),
        "priority": unit.priority,
        "area": unit.area,
        "pinned": unit.pinned,
        "failed": unit.failed,
        "messages": [
            {
                "role": message.role.value,
                "text": message.text,
                "tool_calls": [[call.id, call.name, call.arguments] for call in message.tool_calls],
                "tool_call_id": message.tool_call_id,
            }
            for message in unit.messages
        ],
    }


def unit_from_json(item: dict[str, Any]) -> Unit:
    return Unit(
        id=item["id"],
        kind=UnitKind(item["kind"]),
        role=UnitRole(item["role"]),
        messages=tuple(
            Message(
                Role(message["role"]),
                message["text"],
                tuple(ToolCall(*call) for call in message["tool_calls"]),
                message["tool_call_id"],
            )
            for message in item["messages"]
        ),
        source=tuple(item["sources"]),
        priority=item["priority"],
        area=item["area"],
        pinned=item["pinned"],
        failed=item.get("failed", False),  # rewrites stored before there was such a field
    )


def group(rows: Iterable[Any]) -> list[Unit]:
    """Turns into units: a tool call and its results are one (R9). A result without its call is left out, a call without a
    result gets a stand-in, so that no provider ever refuses the request for it."""
    units: list[Unit] = []
    rows = list(rows)
    results: dict[str, Any] = {row.tool_call_id: row for row in rows if row.role == "tool"}
    for row in rows:
        if row.role == "tool":
            continue
        if not row.tool_calls:
            if row.text:
                says = _says if len(row.text) <= REMEMBERED_CHARS else _says.__wrapped__
                units.append(says(row.seq, row.role, row.text, tuple(row.provider_items or ())))
            continue
        calls = _calls(row.tool_calls)
        message = Message(_ROLES[row.role], row.text, calls, "", tuple(row.provider_items or ()))
        answers = [(call, results.pop(call.id, None)) for call in calls]
        units.append(
            Unit(
                id=f"turn-{row.seq}",
                kind=UnitKind.MESSAGE,
                role=UnitRole.TOOL,
                messages=(message, *(_result(call, answer) for call, answer in answers)),
                source=(row.seq, *(answer.seq for _, answer in answers if answer)),
                failed=any(answer.status == Turn.Status.ERROR for _, answer in answers if answer),
            )
        )
    return units


@lru_cache(maxsize=8_192)
def _says(seq: int, role: str, text: str, items: tuple[str, ...]) -> Unit:
    """A turn of words alone. There may be thousands, and each generation sees almost all of those of the one before."""
    message = Message(_ROLES[role], text, (), "", items)
    return Unit(f"turn-{seq}", UnitKind.MESSAGE, _UNIT_ROLES[role], (message,), (seq,))


def _calls(calls: Sequence[dict[str, str]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in calls)


def _result(call: ToolCall, row: Any | None) -> Message:
    return Message(Role.TOOL, row.text if row else NO_RESULT, tool_call_id=call.id)


def _pin(dialog: Dialog, units: list[Unit]) -> list[Unit]:
    """The newest user message and the one being answered are never changed by a rewrite."""
    users = [unit for unit in units if unit.role is UnitRole.USER and unit.source]
    kept = {users[-1].id} if users else set()
    if dialog.answering_seq is not None:
        kept.add(f"turn-{dialog.answering_seq}")
    return [replace(unit, pinned=True) if unit.id in kept else unit for unit in units]


def visible_turns(dialog: Dialog, before_position: int | None = None, limit: int = 40) -> list[Turn]:
    """The newest turns of the conversation before a place in it, oldest first."""
    turns = dialog.turns.filter(position__isnull=False).select_related("generation__snapshot")
    if before_position is not None:
        turns = turns.filter(position__lt=before_position)
    return list(turns.order_by("-position")[:limit])[::-1]


def queued_turns(dialog: Dialog) -> list[Turn]:
    return list(dialog.turns.filter(status=Turn.Status.QUEUED).order_by("seq"))


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the newest reply that has no result yet. ``siblings`` are the ids of the calls beside it."""

    id: str
    name: str
    arguments: str
    siblings: tuple[str, ...]


def unresolved_calls(dialog: Dialog) -> tuple[Call, ...]:
    """What the newest reply of the round still waits for, in the model's order."""
    newest = _NEWEST_REPLY.first(dialog.pk, dialog.round_number)
    if newest is None or not newest[1]:
        return ()
    position, calls = newest[0], list(newest[1])
    answered = set(
        dialog.turns.filter(role=Turn.Role.TOOL, position__gt=position).values_list("tool_call_id", flat=True)
    )
    ids = tuple(call["id"] for call in calls)
    return tuple(
        Call(call["id"], call["name"], call["arguments"], tuple(other for other in ids if other != call["id"]))
        for call in calls
        if call["id"] not in answered
    )


def _newest_reply(dialog_id: UUID, round_number: int) -> QuerySet[Turn, Any]:
    replies = Turn.objects.filter(
        dialog_id=dialog_id, round_number=round_number, role=Turn.Role.ASSISTANT, status=Turn.Status.COMPLETE
    )
    # ``seq`` has an index, and for answers it is the order of positions.
    return replies.order_by("-seq").values_list("position", "tool_calls")[:1]


_NEWEST_REPLY = Select(_newest_reply)
