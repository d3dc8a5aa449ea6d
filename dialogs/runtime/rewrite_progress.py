"""Progress of a rewrite as it happens: one durable event per phase, for the bar on the page."""

from dialogs.context.sizes import Sizes
from dialogs.store.db_retry import commits
from dialogs.store.lease import Lease
from remediation.context import UnitRole, Units
from remediation.strategies.outcome import STAND_INS
from remediation.text.classify import has_tag

SUMMARY_AIM = 300

Pill = tuple[int | None, str]  # a priority and its area


def message(phase: str, tokens: int, limit: int, aim: int = SUMMARY_AIM) -> str:
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
    return texts[phase]


def progress(phase: str, tokens: int, limit: int) -> int:
    """Percent of the limit, at most 100; -1 on recovery."""
    return -1 if phase == "recovery" else min(100, round(tokens * 100 / max(1, limit)))


def badge(units: Units) -> Pill:
    """The highest priority that a tag or an area gave to a message, with its area if one did; nothing without either.

    A handover is of priority 1 by rule, and an agent's own priority belongs to all its units: neither is a tag.
    """
    messages = [
        unit for unit in units if unit.kind not in STAND_INS and unit.role in (UnitRole.USER, UnitRole.ASSISTANT)
    ]
    given = [u for u in messages if u.priority < 3 and (u.area or (u.role is UnitRole.USER and has_tag(u.text)))]
    priority = min((unit.priority for unit in given), default=None)
    return priority, next((unit.area for unit in given if unit.priority == priority and unit.area), "")


@commits
def tell(lease: Lease, sizes: Sizes, pill: Pill, phase: str, tokens: int, limit: int) -> None:
    priority, area = pill
    with lease.change(durable=False) as change:
        change.event(
            "contextBreakingUpdate",
            phase=phase,
            progress=progress(phase, tokens, limit),
            message=message(phase, tokens, limit, sizes.config.breaking_strategy.summarize_old.summary_length),
            priority=priority,
            area=area,
            est_tokens=tokens,
            limit=limit,
        )


def short(tokens: int) -> str:
    return f"{tokens / 1000:.1f}k" if tokens >= 1000 else str(tokens)
