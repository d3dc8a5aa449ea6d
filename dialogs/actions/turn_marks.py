"""A person's marks on a turn: a thumb up or down, and whether it is recalled first (pinned) or never (dismissed)."""

from uuid import UUID

from dialogs.errors import Invalid, NotFound
from dialogs.models import RecallChoice, Turn
from dialogs.store.change import open_change

FEEDBACK = {"up": True, "down": False, "": None}
MOST_CHOICES = 200  # per dialog, since every request reads all of them


def rate(dialog_id: UUID, seq: int, feedback: str) -> None:
    """Rate an answer ``up`` or ``down``; an empty value removes the rating."""
    if feedback not in FEEDBACK:
        raise Invalid("feedback: it is up, down, or empty.")
    with open_change(dialog_id) as change:
        change.keeps_state = True
        answers = Turn.objects.filter(dialog=dialog_id, seq=seq, role=Turn.Role.ASSISTANT)
        if not answers.update(liked=FEEDBACK[feedback]):
            raise NotFound(f"There is no answer {seq} in this dialog.")
        change.event("turn", turn=seq)


def choose_recall(dialog_id: UUID, seq: int, choice: str) -> None:
    """Store a person's choice about recalling a turn; an empty one removes it."""
    if not Turn.objects.filter(dialog=dialog_id, seq=seq, position__isnull=False).exists():
        raise NotFound("There is no such turn in this dialog.")
    rows = RecallChoice.objects.filter(dialog=dialog_id)
    if not choice:
        rows.filter(seq=seq).delete()
        return
    if choice not in RecallChoice.Choice.values:
        raise Invalid(f"choice: it is one of {', '.join(RecallChoice.Choice.values)}, or empty.")
    if rows.exclude(seq=seq).count() >= MOST_CHOICES:
        raise Invalid(f"A dialog has at most {MOST_CHOICES} pinned and dismissed turns. Take one back first.")
    RecallChoice.objects.update_or_create(dialog_id=dialog_id, seq=seq, defaults={"choice": choice})
