"""The context panel of document D, and how a rewrite reads in the transcript. Every number here is an estimate."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from dialogs.context.view import standing_run
from dialogs.models import Dialog
from dialogs.queries import context_report
from dominds.llm.catalog.catalog import UnknownModel
from remediation.models import RemediationRun
from remediation.strategies.stand_ins import HANDOVER_OPENING, SUMMARY_HEADING

WARNING_PERCENT = 80
AUTOMATIC = {
    "retention": "Context is automatically pruned before API calls when utilization exceeds 80%",
    "breaking": "Context is broken down before model calls when it nears its budget",
    "autocompaction": "Context is compacted before model calls when it exceeds 80% of the window",
    "none": "Nothing is pruned by itself. Reported usage alone decides when the agent is asked to clear its mind",
}
NAMES = {
    RemediationRun.Policy.AUTOCOMPACTION: "Context compacted",
    RemediationRun.Policy.BREAKING: "Context broken down",
    RemediationRun.Policy.RETENTION: "Context pruned",
    RemediationRun.Policy.FRESH_START: "Fresh start from a handover",
}


@dataclass(frozen=True, slots=True)
class Panel:
    """``utilisation`` is percents of ``limit``; both ``None`` when the limit is unknown."""

    messages: int
    est_tokens: int
    limit: int | None
    utilisation: float | None
    info: str

    @property
    def warns(self) -> bool:
        return self.utilisation is not None and self.utilisation > WARNING_PERCENT

    @property
    def state(self) -> str:
        """Document D's words for the widget."""
        return "warning" if self.warns else ("active" if self.messages else "idle")


def panel_of(dialog: Dialog) -> Panel | None:
    """``None`` while the catalog does not know the dialog's model."""
    try:
        policy, sizes = context_report.sizes_of(dialog)
    except UnknownModel:
        return None
    limit, tokens = sizes.limit, sizes.prompt
    return Panel(
        messages=len(sizes.units),
        est_tokens=tokens,
        limit=limit,
        utilisation=tokens * 100 / limit if limit else None,
        info=AUTOMATIC[policy],
    )


@dataclass(frozen=True, slots=True)
class RunLine:
    """One rewrite as the transcript and the archive show it."""

    run: RemediationRun
    may_undo: bool = False

    @property
    def title(self) -> str:
        return NAMES[RemediationRun.Policy.FRESH_START if self.is_handover else RemediationRun.Policy(self.run.policy)]

    @property
    def is_handover(self) -> bool:
        """Whether the agent went on from a handover, whichever policy led there."""
        return self.run.summary.startswith(HANDOVER_OPENING)

    @property
    def sizes(self) -> str:
        return f"est. {short(self.run.est_before)} → {short(self.run.est_after)} tokens"

    @property
    def summary(self) -> str:
        """What was written in place of what was removed, without the frame that the model sees."""
        return self.run.summary.removeprefix(SUMMARY_HEADING).removeprefix(HANDOVER_OPENING).strip()

    @property
    def strategies(self) -> list[str]:
        """Each strategy once, in words, with how often it ran; and the recovery, if nothing else helped."""
        ran = Counter(step["strategy"] for step in self.run.steps if isinstance(step, dict) and "strategy" in step)
        said = [name.replace("_", " ") + (f" ×{times}" if times > 1 else "") for name, times in ran.items()]
        if self.run.recovered:
            said.append("fresh start" if self.is_handover else "truncation")
        return said

    @property
    def removed(self) -> int:
        return len(self.run.removed)


def short(tokens: int) -> str:
    return f"{tokens / 1000:.1f}k" if tokens >= 1000 else str(tokens)


def run_lines(dialog: Dialog, **chosen: Any) -> list[RunLine]:
    """Rewrites in their order; only the newest that stands can be undone, and only while nothing runs."""
    standing = standing_run(dialog)
    free = dialog.state in ("idle", "failed")
    return [
        RunLine(run, may_undo=free and standing is not None and standing.pk == run.pk)
        for run in RemediationRun.objects.filter(dialog=dialog, **chosen).order_by("pk")
    ]
