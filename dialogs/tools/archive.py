"""Looking up what is no longer in sight: older turns of this dialog, what rewrites took out, and oversized results."""

import re
from collections.abc import Mapping
from typing import Any

from django.db.models import Model, QuerySet

from dialogs.context.search import matching
from dialogs.context.tool_calls import Result
from dialogs.models import Artifact, Dialog, Turn
from dialogs.tools.tool import Invocation, Tool, parameters
from dominds.llm.messages import ToolSpec
from remediation.models import RemovedUnit

MAX_WORDS, MAX_HITS = 8, 10
SNIPPET_CHARS = 160  # on each side of the first word found
PAGE_CHARS, MAX_PAGE_CHARS = 4_000, 16_000


def search_archive(call: Invocation) -> Result:
    """Turns before the message that is being answered, over all rounds, and texts that rewrites once showed in their place."""
    words = list(dict.fromkeys(re.findall(r"[^\s,;\0]{2,}", str(call.arguments["query"]).lower())))[:MAX_WORDS]
    if not words:
        return Result("The query holds no word of two letters or more. Name what you look for.", failed=True)
    turns = matching(_older_turns(call), words)[:MAX_HITS]
    # A unit named after a turn is that turn, which is found as such.
    stand_ins = RemovedUnit.objects.filter(dialog=call.dialog_id).exclude(unit_id__startswith="turn-")
    units = matching(stand_ins, words)[:MAX_HITS]
    hits = [(_merit(row), f"seq {row.seq} ({row.role}, round {row.round_number})", row.text) for row in turns]
    hits += [(_merit(row), f"unit {row.pk} ({row.kind})", row.text) for row in units]
    hits.sort(key=lambda hit: hit[0], reverse=True)
    if not hits:
        return Result(f"Nothing earlier in this dialog mentions {', '.join(words)}. Try other words, or fewer.")
    return Result("\n\n".join(f"{where}: {_snippet(text, words)}" for _, where, text in hits[:MAX_HITS]))


def _older_turns(call: Invocation) -> QuerySet[Turn]:
    turns = Turn.objects.filter(dialog=call.dialog_id, position__isnull=False).exclude(role=Turn.Role.NOTICE)
    answering = Dialog.objects.values_list("answering_seq", flat=True).get(pk=call.dialog_id)
    return turns if answering is None else turns.filter(seq__lt=answering)


def _merit(row: Any) -> tuple[int, float]:
    """How many of the words a row holds, then how well: turns and units are merged by it."""
    return row.matched, row.rank


def _snippet(text: str, words: list[str]) -> str:
    lowered = text.lower()
    first = min((at for at in map(lowered.find, words) if at >= 0), default=0)
    start, end = max(0, first - SNIPPET_CHARS), first + SNIPPET_CHARS
    return ("…" if start else "") + " ".join(text[start:end].split()) + ("…" if end < len(text) else "")


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
    return _page(
        Artifact.objects.filter(dialog=call.dialog_id, pk=number).first(), f"artifact {number}", call.arguments
    )


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
