"""The view: what the model sees, computed from turns and rewrites. It is never the record itself."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet, Subquery

from dialogs.context.config import prompts_folder
from dialogs.context.images import sendable
from dialogs.context.units import group, is_cut_off, unit_from_json, unit_to_json
from dialogs.context.view_cache import CACHED_CHARS, Head, count_settled, messages_of
from dialogs.models import Dialog, Drive, Round, Turn
from dominds.db.prepared import Select
from dominds.llm.messages import Message, Role, are_plain, chars_of, with_parts
from dominds.llm.models.model import ModelInfo
from dominds.weighted_cache import Bounded
from remediation.context import Unit, UnitKind, UnitRole, Units
from remediation.models import RemediationRun
from remediation.prompts import Prompt, load, render
from remediation.strategies.left_out import ALL_SHOWN, LeftOut

_TURN_COLUMNS = (
    "seq",
    "position",
    "role",
    "status",
    "text",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "provider_items",
    "attachments",
)
PACKAGE_ID = "package-"  # and the round's number are the id of the unit that the round begins with
WHOLE = "1:0"  # base of a view that no rewrite or clear has touched
# The columns of a round that each view reads. Its package can be long, and is read only when a view is opened.
_OPENING = ("carried", "standing_run", "has_package")


@dataclass(frozen=True, slots=True)
class View:
    """What the model sees of a round: units in order, and their messages.

    ``chars`` counts the characters of all messages, ``summary_chars`` those of stand-ins, ``result_chars`` those of
    tool results. ``base`` names the round and the rewrite in force. ``position`` is that of the last turn.
    """

    units: Units
    messages: tuple[Message, ...]
    chars: int
    base: str
    position: int = 0
    summary_chars: int = 0
    result_chars: int = 0
    is_plain: bool = False  # True only if all messages are known to be (``are_plain``)
    base_position: int = 0  # of the last turn that the rewrite covers
    by_value: frozenset[str] = frozenset()  # ids of units that a rewrite stored as text, and not by their turns
    interrupted: bool = False  # the newest answer was cut for compaction and is to go on
    carried: frozenset[int] = frozenset()  # seqs of the messages that a clear took into the round
    left_out: LeftOut = ALL_SHOWN  # for one request alone

    @property
    def with_parts(self) -> Sequence[Message]:
        """Return the messages that have images or files."""
        return () if self.is_plain else with_parts(self.messages)

    def sendable(self, model: ModelInfo) -> tuple[tuple[Message, ...], int]:
        """Return the messages as the model gets them, and how many of them were changed (``images.sendable``)."""
        return (self.messages, 0) if self.is_plain else sendable(self.messages, model)

    @property
    def is_fresh_round(self) -> bool:
        """Check whether no person has said anything since the clear that began the round."""
        if not (self.units and self.units[0].id.startswith(PACKAGE_ID)):
            return False
        said = (unit for unit in self.units[1:] if unit.role is UnitRole.USER)
        return all(set(unit.source) <= self.carried for unit in said)


_heads = Bounded[Head](CACHED_CHARS)


def view_of(dialog: Dialog) -> View:
    """Return the view of the current round: the result of the rewrite in force, and every turn since."""
    current = _round.one(dialog.pk, dialog.round_number)
    opening = _opening_prompt(current.has_package)
    version = opening.version if opening else ""
    start = (dialog.pk, dialog.round_number, current.standing_run, version, *current.carried)
    head = _heads.get(start) or _open_view(dialog.pk, dialog.round_number, current, opening)
    head = head.followed_by(_TURNS_SINCE(dialog.pk, dialog.round_number, head.position))
    if not connection.in_atomic_block:  # what a transaction under way has read may be rolled back
        _heads.put(start, head, head.weight)
    waiting = group(_without_cut_off(head.open_rows) if dialog.answering_seq is not None else head.open_rows)
    if len(waiting) == 1 and waiting[0].role is UnitRole.TOOL:
        # A call that still waits for results, with nothing behind it. No rewrite may part it from them.
        waiting = [replace(waiting[0], pinned=True)]
    unsettled = messages_of(waiting)
    return View(
        units=_pin(dialog, (*head.settled, *waiting)),
        messages=(*head.messages, *unsettled),
        chars=head.chars + chars_of(unsettled),
        base=f"{dialog.round_number}:{current.standing_run or 0}",
        position=head.position,
        summary_chars=head.summary_chars,
        result_chars=head.result_chars,
        is_plain=head.is_plain and are_plain(unsettled),
        base_position=head.base_position,
        by_value=head.by_value,
        interrupted=head.interrupted,
        carried=frozenset(current.carried),
    )


def _without_cut_off(rows: Sequence[Any]) -> Sequence[Any]:
    """Leave out answers at the end that were cut off. Their message is answered again, and a model would go on from
    such a beginning, or refuse it.
    """
    end = len(rows)
    while end and is_cut_off(rows[end - 1]):
        end -= 1
    return rows[:end]


def view_of_turns(dialog: Dialog, turns: Sequence[Turn]) -> View:
    """Return the first view of a dialog that is not stored yet."""
    units = tuple(group(turns))
    messages = messages_of(units)
    return View(_pin(dialog, units), messages, chars_of(messages), base=WHOLE)


def units_at(dialog_id: UUID, base: str, position: int) -> Units:
    """Return the view of ``base`` as it was when the turn at ``position`` was the last one."""
    number, run = map(int, base.split(":"))
    carried, package = Round.objects.values_list("carried", "package").get(dialog_id=dialog_id, number=number)
    head = _open_view(dialog_id, number, _Opening(carried, run or None), _opening_prompt(bool(package)))
    head = head.followed_by(_turns_until(dialog_id, number, head.position, position))
    return (*head.settled, *group(head.open_rows))


def items_before(dialog: Dialog) -> list[dict[str, Any]]:
    """Return the units of the round before the last clear, and of the turns since, in the form of a stored rewrite."""
    number = dialog.round_number - 1
    former = _round.one(dialog.pk, number)
    run = _runs().get(pk=former.standing_run) if former.standing_run else None
    items = list(run.view) if run else []
    opening = () if run else _opening_units(dialog.pk, number, _opening_prompt(former.has_package))
    items += [unit_to_json(unit, original=False) for unit in opening]
    # The newest unit of the rewrite is read anew, since results of its calls may have come after the rewrite.
    begun = items.pop()["turns"] if items and "turns" in items[-1] else []
    named = _named_turns(dialog.pk, [*begun, *([] if run else former.carried)])
    since = _TURNS_SINCE(dialog.pk, number, run.base_position if run else 0)
    rows = {row.seq: row for row in (*named, *since, *_TURNS_SINCE(dialog.pk, dialog.round_number, 0))}
    units = group(sorted(rows.values(), key=attrgetter("position")))
    return [*items, *(unit_to_json(unit, original=True) for unit in units)]


def standing_run(dialog: Dialog) -> RemediationRun | None:
    return _STANDING.first(dialog.pk, dialog.round_number)


@Select
def _round(dialog_id: UUID, number: int) -> QuerySet[Round, Any]:
    columns: dict[str, Any] = {
        "standing_run": Subquery(_run_in_force(dialog_id, number).values("pk")),
        "has_package": ExpressionWrapper(~Q(package=""), BooleanField()),
    }
    rounds = Round.objects.filter(dialog_id=dialog_id, number=number).annotate(**columns)
    return rounds.values_list(*_OPENING, named=True)


def _run_in_force(dialog_id: UUID, round_number: int) -> QuerySet[RemediationRun]:
    return standing_runs(dialog_id, round_number)


def standing_runs(dialog_id: Any, round_number: Any) -> QuerySet[RemediationRun]:
    """Return the rewrite in force, if there is one. Both arguments may be columns of an outer query."""
    return _runs().filter(dialog_id=dialog_id, round_number=round_number, undone_at__isnull=True).order_by("-id")[:1]


def _runs() -> QuerySet[RemediationRun]:
    return RemediationRun.objects.defer("removed")  # the archive's copy can be long, and is not part of the view


class _Opening(NamedTuple):
    carried: list[int]
    standing_run: int | None


def _opening_prompt(has_package: bool) -> Prompt | None:
    """Return the prompt that presents the re-entry package to the model; None if the round begins without one."""
    return load("re_entry_package", prompts_folder()) if has_package else None


def _open_view(dialog_id: UUID, number: int, current: Any, opening: Prompt | None) -> Head:
    """Return the head of a view without the round's own turns: the rewrite that stands, or else the package and the
    messages that were carried over."""
    if current.standing_run is None:
        carried = _named_turns(dialog_id, current.carried)
        return Head.of(0, _opening_units(dialog_id, number, opening)).followed_by(carried)
    run = _run.one(current.standing_run)
    units, open_rows = _standing_view(dialog_id, run.view)
    return Head.of(
        run.base_position,
        units,
        open_rows=open_rows,
        interrupted=_ends_in_a_cut_answer(dialog_id, run),
        base_position=run.base_position,
        by_value=frozenset(item["id"] for item in run.view if "id" in item),
    )


@Select
def _run(run_id: int) -> QuerySet[RemediationRun]:
    return _runs().filter(pk=run_id)


def _ends_in_a_cut_answer(dialog_id: UUID, run: RemediationRun) -> bool:
    """Check whether the rewrite ends in an answer cut for compaction, even if only its tail fitted (by value)."""
    last = run.view[-1] if run.view else {}
    seqs = last.get("turns") or last.get("sources") or [0]
    return bool(_cut_answer(dialog_id, seqs[-1]))


@Select
def _cut_answer(dialog_id: UUID, seq: int) -> QuerySet[Turn, int]:
    cut = Turn.objects.filter(dialog_id=dialog_id, seq=seq, status=Turn.Status.INTERRUPTED)
    return cut.values_list("pk", flat=True)


def _named_turns(dialog_id: UUID, seqs: list[int]) -> list[Any]:
    return list(_shown_turns(Turn.objects.filter(dialog_id=dialog_id, seq__in=seqs))) if seqs else []


def _turns_since(dialog_id: UUID, round_number: int, position: int) -> QuerySet[Turn, Any]:
    return _shown_turns(Turn.objects.filter(dialog_id=dialog_id, round_number=round_number, position__gt=position))


def _turns_until(dialog_id: UUID, round_number: int, position: int, most: int) -> list[Any]:
    """Return turns after one position, up to another."""
    return list(_turns_since(dialog_id, round_number, position).filter(position__lte=most))


def _shown_turns(turns: QuerySet[Turn]) -> QuerySet[Turn, Any]:
    placed = turns.filter(position__isnull=False).exclude(role=Turn.Role.NOTICE)
    return placed.order_by("position").values_list(*_TURN_COLUMNS, named=True)


_STANDING, _TURNS_SINCE = Select(_run_in_force), Select(_turns_since)


def _opening_units(dialog_id: UUID, number: int, opening: Prompt | None) -> Units:
    if opening is None:
        return ()
    package = Round.objects.values_list("package", flat=True).get(dialog_id=dialog_id, number=number)
    text = render(opening, package=package)
    return (
        Unit(
            id=f"{PACKAGE_ID}{number}",
            kind=UnitKind.SUMMARY,
            role=UnitRole.USER,
            messages=(Message(Role.USER, text),),
            priority=1,
            pinned=True,
        ),
    )


def units_of_view(dialog_id: UUID, items: Sequence[Mapping[str, Any]]) -> Units:
    """Return units as a rewrite stored them, by value or by their turns."""
    units, open_rows = _standing_view(dialog_id, items)
    return (*units, *group(open_rows))


def _standing_view(dialog_id: UUID, items: Sequence[Mapping[str, Any]]) -> tuple[Units, tuple[Any, ...]]:
    """Return the units of a stored rewrite, and separately the turns of its last unit if a call of that had no result
    yet: the result comes after the rewrite, and belongs to the unit.
    """
    named = _named_turns(dialog_id, [seq for item in items for seq in item.get("turns", ())])
    by_seq = {row.seq: row for row in named}
    units: list[Unit] = []
    open_rows: tuple[Any, ...] = ()
    for item in items:
        units += group(open_rows)  # it was not the last unit, so no results are to come
        open_rows = ()
        if "messages" in item:
            units.append(unit_from_json(item))
            continue
        rows = [by_seq[seq] for seq in item["turns"] if seq in by_seq]
        if count_settled(rows) < len(rows):
            open_rows = tuple(rows)
        else:
            units += group(rows)
    return tuple(units), open_rows


def _pin(drive: Drive, units: Units) -> Units:
    """Pin the newest user message and the one being answered, which no rewrite changes."""
    pinned = list(units)
    answering = f"turn-{drive.answering_seq}"
    backwards = range(len(units) - 1, -1, -1)  # both are near the end
    newest = (place for place in backwards if units[place].role is UnitRole.USER and units[place].source)
    answered = (place for place in backwards if units[place].id == answering)
    for place in (next(newest, None), next(answered, None)):
        if place is not None:
            pinned[place] = replace(units[place], pinned=True)
    return tuple(pinned)


def visible_turns(dialog: Dialog, before_position: int | None = None, limit: int = 40) -> list[Turn]:
    """Return the newest turns of the conversation before a place in it, oldest first."""
    turns = dialog.turns.filter(position__isnull=False).select_related("generation__snapshot", "author")
    if before_position is not None:
        turns = turns.filter(position__lt=before_position)
    return list(turns.order_by("-position")[:limit])[::-1]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the newest reply that has no result yet. ``siblings`` are the ids of all calls of that reply.

    ``position`` is that of the reply: only later results count, since some servers reuse an id once the model no longer
    sees it.
    """

    id: str
    name: str
    arguments: str
    siblings: tuple[str, ...] = field(repr=False)
    position: int = 0
    allowed_by: int | None = None  # the person who allowed it, if one was asked


def unresolved_calls(dialog: Dialog) -> tuple[Call, ...]:
    """Return the calls that the newest reply of the round still waits for, in the model's order."""
    newest = _newest_reply.first(dialog.pk, dialog.round_number)
    if newest is None or not newest[1]:
        return ()
    position, calls = newest[0], list(newest[1])
    return without_results(calls, set(_answered_calls(dialog.pk, position)), position)


def without_results(calls: Sequence[Mapping[str, str]], answered: Set[str], position: int = 0) -> tuple[Call, ...]:
    """Return those of a reply's calls whose ids are not ``answered``, in the model's order."""
    ids = tuple(call["id"] for call in calls)
    open_calls = (call for call in calls if call["id"] not in answered)
    return tuple(Call(call["id"], call["name"], call["arguments"], ids, position) for call in open_calls)


@Select
def _answered_calls(dialog_id: UUID, position: int) -> QuerySet[Turn, str]:
    results = Turn.objects.filter(dialog_id=dialog_id, role=Turn.Role.TOOL, position__gt=position)
    return results.values_list("tool_call_id", flat=True)


@Select
def _newest_reply(dialog_id: UUID, round_number: int) -> QuerySet[Turn, Any]:
    replies = Turn.objects.filter(
        dialog_id=dialog_id, round_number=round_number, role=Turn.Role.ASSISTANT, status=Turn.Status.COMPLETE
    )
    # ``seq`` has an index, and for answers it is the order of positions.
    return replies.order_by("-seq").values_list("position", "tool_calls")[:1]
