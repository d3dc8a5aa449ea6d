"""Looking up what is no longer in sight: older turns of this dialog, what rewrites took out, and oversized results."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Model, Q

from dialogs.context.lineage import lineage
from dialogs.context.retrieval.search import Hit, Text, in_removed_units, in_turns, words_of
from dialogs.context.tool_calls import Result
from dialogs.models import Artifact, Dialog, Turn
from dialogs.tools.tool import Invocation, Tool, parameters
from dominds.llm.messages import ToolSpec
from remediation.models import RemovedUnit

MOST_STAND_INS = 3  # texts that rewrites once showed, after the turns
PAGE_CHARS, MAX_PAGE_CHARS = 4_000, 16_000


def search_archive(call: Invocation) -> Result:
    """Turns before the message that is being answered, over all rounds, and texts that rewrites once showed in their place."""
    query = str(call.arguments["query"])
    if not words_of(query):
        return Result("The query holds no word to look for. Name what you look for.", failed=True)
    turns = in_turns(call.dialog_id, query, hidden=_not_yet_answered(call.dialog_id))
    units = in_removed_units(call.dialog_id, query, MOST_STAND_INS, hidden=_copies_of_turns(call.dialog_id))
    found = [*_described(turns, _labels_of_turns(call, turns)), *_described(units, _labels_of_units(call, units))]
    if not found:
        return Result(f"Nothing earlier in this dialog mentions any of: {query[:200]}. Try other words, or fewer.")
    return Result("\n\n".join(found))


def _not_yet_answered(dialog_id: UUID) -> Collection[int]:
    """The message that is being answered and what followed it: the question itself is no answer."""
    answering, last = Dialog.objects.values_list("answering_seq", "last_turn_seq").get(pk=dialog_id)
    return () if answering is None else range(answering, last + 1)


def _copies_of_turns(dialog_id: UUID) -> Collection[int]:
    """A unit named after a turn is that turn, which is found as such."""
    copies = RemovedUnit.objects.filter(dialog=dialog_id, unit_id__startswith="turn-")
    return list(copies.values_list("pk", flat=True))


def _labels_of_turns(call: Invocation, hits: Sequence[Hit]) -> Mapping[int, str]:
    rows = Turn.objects.filter(dialog=call.dialog_id, seq__in=_numbers(hits))
    told = rows.values_list("seq", "role", "round_number")
    return {seq: f"seq {seq} ({role}, round {number})" for seq, role, number in told}


def _labels_of_units(call: Invocation, hits: Sequence[Hit]) -> Mapping[int, str]:
    rows = RemovedUnit.objects.filter(dialog=call.dialog_id, pk__in=_numbers(hits))
    return {pk: f"unit {pk} ({kind})" for pk, kind in rows.values_list("pk", "kind")}


def _numbers(hits: Sequence[Hit]) -> list[int]:
    return [text.number for hit in hits for text in (hit.text, *hit.beside)]


def _described(hits: Sequence[Hit], labels: Mapping[int, str]) -> list[str]:
    """A hit with its words marked, and below it what was said just before and after."""
    lines = []
    for hit in hits:
        beside = [f"  beside it, {labels[text.number]}: {_marked(text)}" for text in hit.beside]
        lines.append("\n".join((f"{labels[hit.text.number]}: {_marked(hit.text)}", *beside)))
    return lines


def _marked(text: Text) -> str:
    return " ".join("".join(f"**{part.text}**" if part.is_match else part.text for part in text.parts).split())


def read_archive(call: Invocation) -> Result:
    """One whole entry that ``search_archive`` named."""
    named = [name for name in ("seq", "unit") if name in call.arguments]
    if len(named) != 1:
        return Result("Name one entry, by seq or by unit, as search_archive shows them.", failed=True)
    number = call.arguments[named[0]]
    row: Turn | RemovedUnit | None
    if named[0] == "seq":
        row = Turn.objects.filter(dialog=call.dialog_id, seq=number, position__isnull=False).first()
    else:
        row = RemovedUnit.objects.filter(dialog=call.dialog_id, pk=number).first()
    return _page(row, f"{named[0]} {number}", call.arguments)


def read_artifact(call: Invocation) -> Result:
    """A part of a tool result that was too large to be shown whole."""
    number = call.arguments["id"]
    here, *origins = lineage(Dialog.objects.get(pk=call.dialog_id))
    copied = Q(dialog__in=origins, tool_call_id__in=here.turns.values("tool_call_id"))
    found = Artifact.objects.filter(Q(dialog=here) | copied, pk=number).first()
    return _page(found, f"artifact {number}", call.arguments)


def _page(row: Model | None, named: str, arguments: Mapping[str, Any]) -> Result:
    if row is None:
        return Result(f"There is no {named} in this dialog.", failed=True)
    text: str = row.text  # type: ignore[attr-defined]
    start = int(arguments.get("offset", 0))
    if start and start >= len(text):
        return Result(f"{named} has {len(text):,} characters; {start:,} lies behind its end.", failed=True)
    end = start + int(arguments.get("limit", PAGE_CHARS))
    piece = text[start:end]
    if end >= len(text):
        return Result(piece or f"[{named} is empty]")
    return Result(f"{piece}\n[{len(text) - end:,} of {len(text):,} characters follow: read on with offset={end}]")


_NUMBER = {"type": "integer", "minimum": 1, "maximum": 2_000_000_000}
_PAGING = {
    "offset": {"type": "integer", "minimum": 0, "description": "first character"},
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_CHARS, "description": "how many characters"},
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
            "Read one entry that search_archive found, whole or in parts.",
            parameters([], seq=_NUMBER, unit=_NUMBER, **_PAGING),
        ),
        outside=read_archive,
        always=True,
    ),
    Tool(
        ToolSpec(
            "read_artifact",
            "Read a part of a tool result that was too large to be shown whole.",
            parameters(["id"], id=_NUMBER, **_PAGING),
        ),
        outside=read_artifact,
        always=True,
    ),
)
