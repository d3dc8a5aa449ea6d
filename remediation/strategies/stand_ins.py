"""Units that stand where others stood: summaries, placeholders, shortened texts. Their ids depend on content alone."""

import re
from collections.abc import Callable, Sequence
from hashlib import sha256

from dominds.llm.messages import Message, Role
from remediation.context import Toolbox, Unit, UnitKind, UnitRole
from remediation.strategies.outcome import is_ledger

SUMMARY_HEADING = "[Summary of earlier turns]\n"  # where it is not known of which
HANDOVER_OPENING = "Resuming from overflow: "
HANDOVER_CLOSING = "\nContinue task: "
TASK_BEGAN = " – begun with: "  # before the first request, in a handover's closing
SUMMARY_LINE = re.compile(r"\[Summary of (?:earlier turns|turns (\d{1,9})-(\d{1,9}))\]\n?")
BEFORE_HEADING = re.compile(rf"{HANDOVER_OPENING}|[^\n]*\n")  # why an agent starts afresh, or how much was said
# The line that ``retention`` writes.
COUNTS_LINE = re.compile(
    r"Previous \d{1,9} turns?: (\d{1,9}) user messages?, (\d{1,9}) model responses?, (\d{1,9}) tool calls?"
)
BRIEF_PLACEHOLDER = "[Omitted low-relevance prior context]"


def stand_in(
    kind: UnitKind, text: str, replaced: Sequence[Unit], toolbox: Toolbox, taken: Sequence[Unit], prefix: str = ""
) -> Unit:
    """Make a user's unit of ``text`` in place of ``replaced``, with an id that is not ``taken``."""
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
    """Name the turns as ``read_archive`` takes them, to show what the summary stands for."""
    source = sources_of(replaced)
    return f"[Summary of turns {source[0]}-{source[-1]}]\n" if source else SUMMARY_HEADING


def turns_of_summary(text: str) -> tuple[int, int] | None:
    """Return the first and last turn that a summary's heading names, or None."""
    result = _heading_of(text)
    return (int(result[1]), int(result[2])) if result and result[1] else None


def heading_tokens(replaced: Sequence[Unit], toolbox: Toolbox, opening: str = "") -> int:
    """Count the tokens that a summary's message takes beside its words."""
    return toolbox.count((Message(role=Role.USER, text=opening + summary_heading(replaced)),))


def _heading_of(text: str) -> re.Match[str] | None:
    before = BEFORE_HEADING.match(text)
    return SUMMARY_LINE.match(text) or (SUMMARY_LINE.match(text, before.end()) if before else None)


def sources_of(units: Sequence[Unit]) -> tuple[int, ...]:
    return tuple(sorted({seq for unit in units for seq in unit.source}))


def placeholder(replaced: Sequence[Unit], detail: str, toolbox: Toolbox, taken: Sequence[Unit]) -> Unit:
    """Write that text stood here. ``linked`` names the turns, so that the agent can read them in the archive."""
    source = sources_of(replaced)
    turns = f", turns {source[0]}-{source[-1]}" if source else ""
    text = BRIEF_PLACEHOLDER if detail == "brief" else f"[Omitted – see archive{turns}]"
    return stand_in(UnitKind.PLACEHOLDER, text, replaced, toolbox, taken)


def own_text(unit: Unit) -> str:
    """Return what a unit itself says, without an earlier summary's frame, so that summaries never nest.

    Placeholders, ledgers and lines of counts say nothing of their own.
    """
    if unit.kind is UnitKind.PLACEHOLDER or is_ledger(unit):
        return ""
    text = unit.text
    if unit.kind is UnitKind.SUMMARY:
        text = without_heading(COUNTS_LINE.sub("", text.partition(HANDOVER_CLOSING)[0]).strip()).strip()
    return text


def without_heading(text: str) -> str:
    """Return a summary without the frame that the model sees."""
    named = _heading_of(text)
    return text[named.end() :] if named else text


def text_counter(toolbox: Toolbox) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text without the overhead of a message."""
    overhead = toolbox.count((Message(role=Role.USER, text=""),))
    return lambda text: max(0, toolbox.count((Message(role=Role.USER, text=text),)) - overhead)
