"""The page of one rewrite: the context before and after it, side by side in the dialog's order, and why each piece was
removed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models.functions import Left
from django.utils.translation import gettext as _

from dialogs.models import Dialog
from remediation.context import UnitKind, UnitRole
from remediation.models import RemediationRun, RemovedUnit
from remediation.strategies.masking import OPENING
from remediation.strategies.outcome import LEDGER_PREFIX
from remediation.strategies.reasons import HANDOVER, REASONS, TRUNCATED, WRITTEN_ANEW, reasons_of
from remediation.strategies.stand_ins import HANDOVER_CLOSING

ROWS = 50  # a page
SUMMARY_START = 400  # characters by which summaries are told apart

Item = Mapping[str, Any]  # an entry of the columns ``view`` and ``removed`` of a rewrite
Pair = tuple[Item | None, Item | None]  # the item that was removed at a place, and the item that stands there now


@dataclass(frozen=True, slots=True)
class Piece:
    """One place of the context, with at least one of two items: ``gone`` was removed or changed there by the rewrite,
    and ``stands`` is there after it.

    ``stand_in`` is the place of the text that replaces a ``gone`` item, if another place holds it.
    """

    gone: Item | None
    stands: Item | None
    stand_in: int | None = None


@dataclass(frozen=True, slots=True)
class Side:
    role: str
    text: str
    about: str = ""  # kind and size
    turns: tuple[int, ...] = ()
    is_markdown: bool = False
    made_by: int | None = None  # the rewrite that wrote this earlier summary


@dataclass(frozen=True, slots=True)
class Line:
    """A piece as the page shows it."""

    place: int
    before: Side | None
    after: Side | None
    is_new: bool
    why: str
    stand_in: str  # the address of the text that replaces it, or empty
    first_part: str  # the address of the first piece that this new text replaces, or empty


def align(view: Sequence[Item], removed: Sequence[Item]) -> list[Piece]:
    """Return the pieces before and after a rewrite by their oldest turns. A new text comes before what it replaces."""
    rest = {item["id"]: item for item in removed}
    pairs: list[Pair] = [(rest.pop(item["id"], None) if item.get("is_new") else None, item) for item in view]
    pairs += [(item, None) for item in rest.values()]
    pairs.sort(key=_order)
    stand_ins = _stand_ins(pairs)
    return [
        Piece(
            gone,
            stands,
            next((stand_ins[seq] for seq in gone["turns"] if seq in stand_ins), None) if gone and not stands else None,
        )
        for gone, stands in pairs
    ]


def _order(pair: Pair) -> tuple[int, bool]:
    gone, stands = pair
    item = stands or gone or {}
    return min(item.get("turns") or item.get("sources") or (0,)), bool(gone) or not item.get("is_new")


def _stand_ins(pairs: Sequence[Pair]) -> dict[int, int]:
    """Map each replaced turn to the place of the first text that replaces it. A ledger counts only if no other does."""
    places: dict[int, int] = {}
    new = [(place, item) for place, (gone, item) in enumerate(pairs) if item and item.get("is_new") and not gone]
    for place, item in sorted(new, key=lambda entry: (_is_ledger(entry[1]), entry[0])):
        for seq in item["sources"]:
            places.setdefault(seq, place)
    return places


def _is_ledger(item: Item) -> bool:
    return str(item["id"]).startswith(LEDGER_PREFIX)


def lines_of(run: RemediationRun, dialog: Dialog, pieces: Sequence[Piece], page: int) -> list[Line]:
    """Return one page of pieces with their texts, in three queries for a rewrite of any size."""
    start = (page - 1) * ROWS
    shown = pieces[start : start + ROWS]
    units = {
        unit.unit_id: unit
        for unit in RemovedUnit.objects.filter(run=run, unit_id__in=[piece.gone["id"] for piece in shown if piece.gone])
    }
    seqs = {seq for piece in shown if piece.stands for seq in piece.stands.get("turns", ())}
    rows = dialog.turns.filter(seq__in=seqs).values_list("seq", "role", "text")
    turns = {seq: (role, text) for seq, role, text in rows}
    parts = {piece.stand_in: place for place, piece in reversed(list(enumerate(pieces))) if piece.stand_in is not None}
    earlier = makers_of(dialog, [unit.text for unit in units.values() if is_summary(unit)], before=run.pk)
    return [
        Line(
            place=place,
            before=_before(gone, units.get(gone["id"]), earlier) if gone else None,
            after=_after(stands, turns) if stands else None,
            is_new=bool(stands and stands.get("is_new")),
            why=_why(gone, stands, run) if gone else "",
            stand_in=_address(piece.stand_in),
            first_part=_address(parts.get(place)),
        )
        for place, piece in enumerate(shown, start)
        for gone, stands in [(piece.gone, piece.stands)]
    ]


def is_summary(unit: RemovedUnit) -> bool:
    return unit.kind == UnitKind.SUMMARY and not unit.unit_id.startswith(LEDGER_PREFIX)


def is_markdown(unit: RemovedUnit) -> bool:
    """Check whether a model wrote the unit, and so wrote Markdown."""
    return unit.role == UnitRole.ASSISTANT or unit.kind == UnitKind.SUMMARY


def makers_of(dialog: Dialog, summaries: Sequence[str], before: int | None = None) -> dict[str, int]:
    """Map summaries to the newest rewrite that wrote each, which is found by the beginning of their text."""
    if not summaries:
        return {}
    runs = RemediationRun.objects.filter(dialog=dialog).annotate(start=Left("summary", SUMMARY_START)).order_by("pk")
    if before is not None:
        runs = runs.filter(pk__lt=before)
    starts = {text: text[:SUMMARY_START] for text in summaries}
    makers = dict(runs.filter(start__in=starts.values()).values_list("start", "pk"))
    return {text: makers[start] for text, start in starts.items() if start in makers}


def _address(place: int | None) -> str:
    return "" if place is None else f"?page={place // ROWS + 1}#piece-{place}"


def _before(gone: Item, unit: RemovedUnit | None, makers: Mapping[str, int]) -> Side:
    if unit is None:
        return Side("", _("[Not in the archive.]"), turns=tuple(gone["turns"]))
    return Side(unit.role, unit.text, about(unit), tuple(gone["turns"]), is_markdown(unit), makers.get(unit.text))


def about(unit: RemovedUnit) -> str:
    """Return the kind of a unit and its size in words."""
    return _("{kind} · est. {number:,} tok").format(kind=_(unit.kind), number=unit.est_tokens)


def _after(stands: Item, turns: Mapping[int, Any]) -> Side:
    if "turns" not in stands:
        text = "\n".join(message["text"] for message in stands["messages"])
        about = "key facts" if _is_ledger(stands) else stands["kind"]
        return Side(stands["role"], text, about, tuple(stands["sources"]), is_markdown=True)
    messages = [turns.get(seq, ("", "")) for seq in stands["turns"]]
    text, by_model = "\n".join(text for _, text in messages), all(role == UnitRole.ASSISTANT for role, _ in messages)
    return Side(messages[0][0], text, turns=tuple(stands["turns"]), is_markdown=by_model)


def _why(gone: Item, stands: Item | None, run: RemediationRun) -> str:
    """Return why a piece was removed. A masked tool result is known by its text: masking is no step of its own, but the
    beginning of a strategy that chooses among messages.
    """
    if stands and any(message["text"].startswith(OPENING) for message in stands["messages"]):
        return REASONS["mask"]
    if reasons := reasons_of(gone.get("by") or (), run.policy, run.steps):
        return "; ".join(_(reason) for reason in reasons)
    if run.recovered:
        return HANDOVER if HANDOVER_CLOSING in run.summary else TRUNCATED
    return WRITTEN_ANEW if str(gone["id"]).startswith(LEDGER_PREFIX) else run.reason
