"""Document C's progress, as it happens: one durable event per phase, in the document's words."""

from dialogs.attempts import commits
from dialogs.estimates import Sizes
from dialogs.leases import Lease

SUMMARY_AIM = 300


def message(phase: str, tokens: int, limit: int, aim: int = SUMMARY_AIM) -> str:
    """The status message of a phase (document C's table). Numbers are estimates."""
    texts = {
        "detection": "Checking context length…",
        "summarize_old": f"Summarizing old context… (est. {_short(tokens)} → {aim:,} tokens)",
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
    """Percent of the limit, at most 100; -1 on recovery, as document C has it."""
    return -1 if phase == "recovery" else min(100, round(tokens * 100 / max(1, limit)))


@commits
def tell(lease: Lease, sizes: Sizes, phase: str, tokens: int, limit: int) -> None:
    urgent = min(sizes.units, key=lambda unit: unit.priority, default=None)
    area = next((unit.area for unit in sizes.units if unit.area), "")
    with lease.change(durable=False) as unit:
        unit.event(
            "contextBreakingUpdate",
            phase=phase,
            progress=progress(phase, tokens, limit),
            message=message(phase, tokens, limit, sizes.config.breaking_strategy.summarize_old.summary_length),
            priority=urgent.priority if urgent and urgent.priority < 3 else None,
            area=area,
            est_tokens=tokens,
            limit=limit,
        )


def _short(tokens: int) -> str:
    return f"{tokens / 1000:.1f}k" if tokens >= 1000 else str(tokens)
