"""Progress of a rewrite as it happens: one durable event per phase, for the bar on the page."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from dialogs.context.sizes import Sizes
from dialogs.store.change import Change
from dialogs.store.db_retry import commits
from dialogs.store.lease import Lease
from dominds.llm.messages import Message
from remediation.context import STAND_INS, Toolbox, UnitRole, Units
from remediation.decisions import AT_MILESTONE, BY_HAND
from remediation.text.classify import tags_of

SUMMARY_AIM = 300
WRITE_SECONDS = 0.05  # how long a phase waits for others that can share its transaction

Pill = tuple[int | None, str]  # a priority and its area


def message(phase: str, tokens: int, limit: int, aim: int = SUMMARY_AIM, reason: str = "") -> str:
    """The status message of a phase. Numbers are estimates."""
    texts = {
        "detection": "Checking context length…",
        "summarize_old": f"Summarizing old context… (est. {short(tokens)} → {aim:,} tokens)",
        "prioritize_recent": "Prioritizing P1 units & recent messages…",
        "content_type_chunking": "Chunking code & plan references…",
        "discard_low_rel": "Removing low-relevance units…",
        "hybrid": "Applying hybrid compression…",
        "success": f"Context reduced to {tokens:,} / {limit:,} tokens",
        "recovery": "Overflow detected – starting fresh conversation",
        "handover": "Resumed from summary. Continuing task…",
    }
    if phase == "recovery" and reason in (BY_HAND, AT_MILESTONE):
        return "Starting fresh conversation"  # nothing has overflowed
    return texts[phase]


def progress(phase: str, tokens: int, limit: int) -> int:
    """Return percent of the limit, at most 100; -1 on recovery."""
    return -1 if phase == "recovery" else min(100, round(tokens * 100 / max(1, limit)))


def badge(units: Units) -> Pill:
    """Return the highest priority that a tag or an area gave to a message, and the area; ``(None, "")`` if none did.

    The fixed priority 1 of a handover does not count, nor does the priority that an agent gives to all its units.
    """
    messages = [
        unit for unit in units if unit.kind not in STAND_INS and unit.role in (UnitRole.USER, UnitRole.ASSISTANT)
    ]
    marked = [u for u in messages if u.priority < 3 and (u.area or (u.role is UnitRole.USER and tags_of(u.text)))]
    priority = min((unit.priority for unit in marked), default=None)
    return priority, next((unit.area for unit in marked if unit.priority == priority and unit.area), "")


Phase = tuple[str, int, int]  # its name, tokens, limit


@dataclass(slots=True)
class Progress:
    """The phases of one rewrite in order. Most last a few milliseconds, so they share a transaction."""

    show: Callable[[Sequence[Phase]], None]
    clock: Callable[[], float] = time.monotonic  # seconds
    waiting: list[Phase] = field(default_factory=list)
    since: float = field(init=False)  # when something was shown last

    def __post_init__(self) -> None:
        self.since = self.clock()

    def add(self, phase: str, tokens: int, limit: int) -> None:
        self.write_if_due()
        self.waiting.append((phase, tokens, limit))

    def write_if_due(self) -> None:
        if self.waiting and self.clock() - self.since >= WRITE_SECONDS:
            self.write()

    def write(self) -> None:
        if self.waiting:
            self.show(tuple(self.waiting))
            self.waiting.clear()
        self.since = self.clock()

    def with_phases_shown(self, toolbox: Toolbox, compares_long: bool) -> Toolbox:
        """Return a toolbox that shows a phase on the page once it has lasted for a moment. If comparisons of texts take
        long (``compares_long``), the phase is shown before each of them.
        """
        count, relevance = toolbox.count, toolbox.relevance

        def counted(messages: Sequence[Message]) -> int:
            self.write_if_due()
            return count(messages)

        def compared(texts: Sequence[str], query: str) -> Sequence[float]:
            (self.write if compares_long else self.write_if_due)()
            return relevance(texts, query)

        return replace(toolbox, count=counted, relevance=compared)


@commits
def tell(lease: Lease, sizes: Sizes, pill: Pill, reason: str, phases: Sequence[Phase]) -> None:
    with lease.change(durable=False) as change:
        for phase in phases:
            tell_within(change, sizes, pill, reason, phase)


def tell_within(change: Change, sizes: Sizes, pill: Pill, reason: str, shown: Phase) -> None:
    phase, tokens, limit = shown
    aim = sizes.config.breaking_strategy.summarize_old.summary_length
    change.event(
        "contextBreakingUpdate",
        phase=phase,
        progress=progress(phase, tokens, limit),
        message=message(phase, tokens, limit, aim, reason),
        priority=pill[0],
        area=pill[1],
        est_tokens=tokens,
        limit=limit,
    )


def short(tokens: int) -> str:
    return f"{tokens / 1000:.1f}k" if tokens >= 1000 else str(tokens)
