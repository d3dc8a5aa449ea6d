"""Feedback on answers: a thumb up or down."""

from uuid import UUID

from dialogs.errors import Invalid, NotFound
from dialogs.models import Turn
from dialogs.store.change import open_change

FEEDBACK = {"up": True, "down": False, "": None}


def rate(dialog_id: UUID, seq: int, feedback: str) -> None:
    """``up`` or ``down``; empty takes it back."""
    if feedback not in FEEDBACK:
        raise Invalid("feedback: it is up, down, or empty.")
    with open_change(dialog_id) as change:
        change.keeps_state = True
        answers = Turn.objects.filter(dialog=dialog_id, seq=seq, role=Turn.Role.ASSISTANT)
        if not answers.update(liked=FEEDBACK[feedback]):
            raise NotFound(f"There is no answer {seq} in this dialog.")
        change.event("turn", turn=seq)
