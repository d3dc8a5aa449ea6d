"""A re-entry package drafted from stored facts, without a model: for operators, and for the countdown."""

from dialogs.models import Dialog, Turn
from remediation.models import RemediationRun

GOAL_CHARS, PROGRESS_CHARS, FACT_LINES = 2_000, 1_200, 20


def draft_package(dialog: Dialog) -> str:
    """The outline that guidance asks the agent for, filled with what the rows know."""
    turns = dialog.turns.filter(position__isnull=False)
    asked = list(turns.filter(role=Turn.Role.USER).order_by("position").values_list("text", flat=True)[:1])
    newest = turns.filter(role=Turn.Role.USER).order_by("-position").values_list("text", flat=True).first()
    answers = list(
        turns.filter(role=Turn.Role.ASSISTANT).exclude(text="").order_by("-position").values_list("text", flat=True)[:3]
    )
    failures = list(
        turns.filter(role=Turn.Role.TOOL, status=Turn.Status.ERROR)
        .order_by("-position")
        .values_list("text", flat=True)[:3]
    )
    package = dialog.rounds.get(number=dialog.round_number).package
    sections = [
        ("Goal and scope", [_cut(text, GOAL_CHARS) for text in asked]),
        ("Carried over from the round before", [_cut(package, GOAL_CHARS)] if package else []),
        ("Current progress", [_cut(text, PROGRESS_CHARS) for text in reversed(answers)]),
        ("Facts noted", _facts(dialog)),
        ("Failures met", [_cut(text, 300) for text in failures]),
        ("Next step", [f"Answer the newest message: {_cut(newest, GOAL_CHARS)}"] if newest else []),
        ("Open questions and risks", ["This package was drafted by the runtime; check it against the archive."]),
    ]
    return "\n\n".join(f"{title}\n" + "\n".join(f"- {line}" for line in lines) for title, lines in sections if lines)


def _facts(dialog: Dialog) -> list[str]:
    run = RemediationRun.objects.filter(dialog=dialog, undone_at__isnull=True).order_by("-id").first()
    return list(run.ledger[:FACT_LINES]) if run else []


def _cut(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
