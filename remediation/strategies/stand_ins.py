"""Stand-ins: units that stand where others stood, such as summaries and placeholders. Ids depend on content alone."""

import re
from collections.abc import Callable, Sequence
from hashlib import sha256

from dominds.llm.messages import Message, Role
from remediation.context import Toolbox, Unit, UnitKind, UnitRole
from remediation.strategies.outcome import is_ledger

SUMMARY_HEADING = "[Summary of earlier turns]\n"  # if their numbers are not known
HANDOVER_OPENING = "Resuming from overflow: "
HANDOVER_CLOSING = "\nContinue task: "
TASK_BEGAN = " – begun with: "  # before the first request, at the end of a handover
SUMMARY_LINE = re.compile(r"\[Summary of (?:earlier turns|turns (\d{1,9})-(\d{1,9}))\]\n?")
BEFORE_HEADING = re.compile(rf"{HANDOVER_OPENING}|[^\n]*\n")  # a handover's opening, or the line of counts
# The line of counts, as ``importance.describe`` writes it.
COUNTS_LINE = re.compile(
    r"Previous \d{1,9} turns?: (\d{1,9}) user messages?, (\d{1,9}) model responses?, (\d{1,9}) tool calls?"
)
BRIEF_PLACEHOLDER = "[Omitted low-relevance prior context]"


def stand_in(
    kind: UnitKind, text: str, replaced: Sequence[Unit], toolbox: Toolbox, taken: Sequence[Unit], prefix: str = ""
) -> Unit:
    """Return a user's unit of ``text`` in place of ``replaced``, with an id that no unit of ``taken`` has."""
    messages = (Message(role=Role.USER, text=text),)
    return Unit(
        id=_free_id(prefix or f"{kind.value}-", text, replaced, {unit.id for unit in taken}),
        kind=kind,
        role=UnitRole.USER,
        messages=messages,
        source=sources_of(replaced),
        priority=min((unit.priority for unit in replaced), default=3),
        area=next((unit.area for unit in replaced if unit.area), ""),
        est_tokens=toolbox.count(messages),
    )


def _free_id(prefix: str, text: str, replaced: Sequence[Unit], taken: set[str]) -> str:
    digest = sha256("\0".join([text, *(unit.id for unit in replaced)]).encode(errors="replace")).hexdigest()[:16]
    name, attempt = f"{prefix}{digest}", 2
    while name in taken:
        name, attempt = f"{prefix}{digest}-{attempt}", attempt + 1
    return name


def summary_heading(replaced: Sequence[Unit]) -> str:
    """Return a summary's heading, which names the replaced turns in the form that the tool read_archive takes."""
    source = sources_of(replaced)
    return f"[Summary of turns {source[0]}-{source[-1]}]\n" if source else SUMMARY_HEADING


def turns_of_summary(text: str) -> tuple[int, int] | None:
    """Return the first and the last turn that a summary's heading names, or None if it names none."""
    result = _heading_of(text)
    return (int(result[1]), int(result[2])) if result and result[1] else None


def heading_tokens(replaced: Sequence[Unit], toolbox: Toolbox, opening: str = "") -> int:
    """Return the tokens that a summary's message takes without the summary itself."""
    return toolbox.count((Message(role=Role.USER, text=opening + summary_heading(replaced)),))


def _heading_of(text: str) -> re.Match[str] | None:
    before = BEFORE_HEADING.match(text)
    return SUMMARY_LINE.match(text) or (SUMMARY_LINE.match(text, before.end()) if before else None)


def sources_of(units: Sequence[Unit]) -> tuple[int, ...]:
    return tuple(sorted({seq for unit in units for seq in unit.source}))


def placeholder(replaced: Sequence[Unit], detail: str, toolbox: Toolbox, taken: Sequence[Unit]) -> Unit:
    """Return a unit that says that others stood here. Unless ``detail`` is "brief", it names their turns."""
    source = sources_of(replaced)
    turns = f", turns {source[0]}-{source[-1]}" if source else ""
    text = BRIEF_PLACEHOLDER if detail == "brief" else f"[Omitted – see archive{turns}]"
    return stand_in(UnitKind.PLACEHOLDER, text, replaced, toolbox, taken)


def own_text(unit: Unit) -> str:
    """Return what a unit says. Of a summary that is its text alone, so that the frames of summaries never nest.

    Placeholders, ledgers and lines of counts say nothing.
    """
    if unit.kind is UnitKind.PLACEHOLDER or is_ledger(unit):
        return ""
    text = unit.text
    if unit.kind is UnitKind.SUMMARY:
        text = without_heading(COUNTS_LINE.sub("", text.partition(HANDOVER_CLOSING)[0]).strip()).strip()
    return text


def without_heading(text: str) -> str:
    """Return a summary's text without its heading and the line before that."""
    named = _heading_of(text)
    return text[named.end() :] if named else text


def text_counter(toolbox: Toolbox) -> Callable[[str], int]:
    """Return a function that counts a text's tokens, without those of a message around it."""
    overhead = toolbox.count((Message(role=Role.USER, text=""),))
    return lambda text: max(0, toolbox.count((Message(role=Role.USER, text=text),)) - overhead)
