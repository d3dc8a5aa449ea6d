"""What a person decides about recalling one turn: always first, never in this dialog, or as the runtime finds it."""

from uuid import UUID

from dialogs.errors import Invalid, NotFound
from dialogs.models import RecallChoice, Turn

MOST_CHOICES = 200  # of one dialog; each is read before each request


def choose(dialog_id: UUID, seq: int, choice: str) -> None:
    """An empty choice takes the decision back."""
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
