"""Tools that look up text out of the model's sight: older turns of this dialog, text that rewrites removed, and
oversized results."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Left

from dialogs.context.lineage import lineage
from dialogs.context.retrieval.search import Hit, Text, in_removed_units, in_turns, searches_newest, words_of
from dialogs.context.tool_calls import Result
from dialogs.models import Artifact, Dialog, Turn
from dialogs.tools.tool import Invocation, Tool, parameters
from dominds.llm.messages import ToolSpec
from remediation.context import UnitKind
from remediation.models import RemovedUnit
from remediation.strategies.stand_ins import SUMMARY_LINE, turns_of_summary

RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")
MOST_STAND_INS = 3  # hits among texts that rewrites wrote, listed after the turns
MOST_LISTED, BEGINNING_CHARS = 1_000, 120  # turns in a list, and characters of each
PAGE_CHARS, MAX_PAGE_CHARS = 4_000, 16_000


def search_archive(call: Invocation) -> Result:
    """Search the turns before the present message, in all rounds, and removed texts that earlier rewrites wrote."""
    query = str(call.arguments["query"])
    if not words_of(query):
        return Result("The query holds no word to look for. Name what you look for.", failed=True)
    turns = in_turns(call.dialog_id, query, hidden=_not_yet_answered(call.dialog_id))
    units = in_removed_units(call.dialog_id, query, MOST_STAND_INS, hidden=_copies_of_turns(call.dialog_id))
    lines = [*_describe(turns, _labels_of_turns(call, turns)), *_describe(units, _labels_of_units(call, units))]
    if not lines:
        return Result(f"Nothing earlier in this dialog mentions any of: {query[:200]}. Try other words, or fewer.")
    if searches_newest(call.dialog_id):
        lines.append("(The newest that hold one of these words: the whole is searched again in some seconds.)")
    return Result("\n\n".join(lines))


def _not_yet_answered(dialog_id: UUID) -> Collection[int]:
    """Return the seqs from the present message on, since a question must not find itself."""
    answering, last = Dialog.objects.values_list("answering_seq", "last_turn_seq").get(pk=dialog_id)
    return () if answering is None else range(answering, last + 1)


def _copies_of_turns(dialog_id: UUID) -> Collection[int]:
    """Return the removed units that copy a turn, which is found by itself."""
    copies = RemovedUnit.objects.filter(dialog=dialog_id, unit_id__startswith="turn-")
    return list(copies.values_list("pk", flat=True))


def _labels_of_turns(call: Invocation, hits: Sequence[Hit]) -> Mapping[int, str]:
    rows = Turn.objects.filter(dialog=call.dialog_id, seq__in=_numbers(hits))
    turns = rows.values_list("seq", "role", "round_number")
    return {seq: f"seq {seq} ({role}, round {number})" for seq, role, number in turns}


def _labels_of_units(call: Invocation, hits: Sequence[Hit]) -> Mapping[int, str]:
    rows = RemovedUnit.objects.filter(dialog=call.dialog_id, pk__in=_numbers(hits))
    return {pk: _label(pk, kind, text) for pk, kind, text in rows.values_list("pk", "kind", "text")}


def _label(pk: int, kind: str, text: str) -> str:
    turns = turns_of_summary(text) if kind == UnitKind.SUMMARY else None
    return f"unit {pk} ({kind} of turns {turns[0]}-{turns[1]})" if turns else f"unit {pk} ({kind})"


def _numbers(hits: Sequence[Hit]) -> list[int]:
    return [text.number for hit in hits for text in (hit.text, *hit.beside)]


def _describe(hits: Sequence[Hit], labels: Mapping[int, str]) -> list[str]:
    """Describe each hit, with the query's words marked, and the texts just before and after it."""
    lines = []
    for hit in hits:
        beside = [f"  beside it, {labels[text.number]}: {_mark(text)}" for text in hit.beside]
        lines.append("\n".join((f"{labels[hit.text.number]}: {_mark(hit.text)}", *beside)))
    return lines


def _mark(text: Text) -> str:
    return " ".join("".join(f"**{part.text}**" if part.is_match else part.text for part in text.parts).split())


def read_archive(call: Invocation) -> Result:
    """Return an entry that ``search_archive`` named, or the entries that the summary of some turns stands for."""
    named = [name for name in ("seq", "unit", "turns") if name in call.arguments]
    if len(named) != 1:
        return Result("Name one entry, by seq, by unit, or by the turns of a summary.", failed=True)
    value = call.arguments[named[0]]
    text: str | None
    if named[0] == "turns":
        turns = RANGE.fullmatch(value)
        if turns is None:
            return Result("turns: name the first and the last, as in 3-57.", failed=True)
        text = "\n".join(_one_level_down(call.dialog_id, int(turns[1]), int(turns[2]))) or None
    elif named[0] == "seq":
        text = _text_of(Turn.objects.filter(dialog=call.dialog_id, seq=value, position__isnull=False))
    else:
        text = _text_of(RemovedUnit.objects.filter(dialog=call.dialog_id, pk=value))
    return _page(text, f"{named[0]} {value}", call.arguments)


def _text_of(rows: QuerySet[Any]) -> str | None:
    return rows.values_list("text", flat=True).first()


def _one_level_down(dialog_id: UUID, first: int, last: int) -> list[str]:
    """Return the beginnings of the largest summaries of parts of these turns, and of the turns in none of them."""
    summaries = _summaries_within(dialog_id, first, last)
    entries = [
        (begin, f"{_label(pk, UnitKind.SUMMARY, text)}: {_beginning(SUMMARY_LINE.sub('', text, count=1))}")
        for (begin, _), (pk, text) in summaries.items()
    ]
    turns = Turn.objects.filter(dialog=dialog_id, seq__range=(first, last), position__isnull=False)
    shown = turns.exclude(role=Turn.Role.NOTICE).annotate(start=Left("text", BEGINNING_CHARS + 1))
    for seq, role, start in shown.order_by("seq").values_list("seq", "role", "start")[:MOST_LISTED]:
        if not any(begin <= seq <= end for begin, end in summaries):
            entries.append((seq, f"seq {seq} ({role}): {_beginning(start)}"))
    return [line for _, line in sorted(entries)]


def _summaries_within(dialog_id: UUID, first: int, last: int) -> dict[tuple[int, int], tuple[int, str]]:
    """Return the summaries of parts of these turns, by their turns, without those that lie within another one."""
    units = RemovedUnit.objects.filter(dialog=dialog_id, kind=UnitKind.SUMMARY.value).order_by("pk")
    by_turns = {turns_of_summary(text): (pk, text) for pk, text in units.values_list("pk", "text")}
    parts = {turns: entry for turns, entry in by_turns.items() if turns and _is_part(turns, (first, last))}
    return {turns: entry for turns, entry in parts.items() if not any(_is_part(turns, other) for other in parts)}


def _is_part(turns: tuple[int, int], whole: tuple[int, int]) -> bool:
    return turns != whole and whole[0] <= turns[0] and turns[1] <= whole[1]


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= BEGINNING_CHARS else f"{line[:BEGINNING_CHARS]}…"


def read_artifact(call: Invocation) -> Result:
    """Return a part of an oversized tool result."""
    number = call.arguments["id"]
    here, *origins = lineage(Dialog.objects.get(pk=call.dialog_id))
    copied = Q(dialog__in=origins, tool_call_id__in=here.turns.values("tool_call_id"))
    artifacts = Artifact.objects.filter(Q(dialog=here) | copied, pk=number)
    return _page(_text_of(artifacts), f"artifact {number}", call.arguments)


def _page(text: str | None, named: str, arguments: Mapping[str, Any]) -> Result:
    if text is None:
        return Result(f"There is no {named} in this dialog.", failed=True)
    start = int(arguments.get("offset", 0))
    if start and start >= len(text):
        return Result(f"{named} has {len(text):,} characters; {start:,} lies behind its end.", failed=True)
    end = start + int(arguments.get("limit", PAGE_CHARS))
    piece = text[start:end]
    if end >= len(text):
        return Result(piece or f"[{named} is empty]")
    return Result(f"{piece}\n[{len(text) - end:,} of {len(text):,} characters follow: read on with offset={end}]")


_NUMBER = {"type": "integer", "minimum": 1, "maximum": 2_000_000_000}
_TURNS = {"type": "string"}  # the form of a summary's heading; a description here would cost tokens in each request
_PAGING = {
    "offset": {"type": "integer", "minimum": 0, "description": "in characters"},
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_CHARS},
}

TOOLS = (
    Tool(
        ToolSpec(
            "search_archive",
            "Search what was said earlier in this dialog, in all rounds, also what is no longer in your sight.",
            parameters(["query"], query={"type": "string", "minLength": 2, "description": "a few words"}),
        ),
        outside=search_archive,
        always=True,
    ),
    Tool(
        ToolSpec(
            "read_archive",
            "Read what search_archive found, or list the turns of a summary.",
            parameters([], seq=_NUMBER, unit=_NUMBER, turns=_TURNS, **_PAGING),
        ),
        outside=read_archive,
        always=True,
    ),
    Tool(
        ToolSpec(
            "read_artifact",
            "Read a part of a tool result that was too large to be shown.",
            parameters(["id"], id=_NUMBER, **_PAGING),
        ),
        outside=read_artifact,
        always=True,
    ),
)
