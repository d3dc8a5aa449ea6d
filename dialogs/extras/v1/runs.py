"""Messages of programs that are being answered."""

from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User

from dialogs.actions import messages
from dialogs.errors import Conflict
from dialogs.extras.v1.exchanges import answer_key
from dialogs.models import Client
from dominds.db.prepared import update


@dataclass(frozen=True, slots=True)
class Run:
    """A program's message under way.

    Its events come after ``after_event``, its model calls after ``after_generation``, its rewrites after
    ``after_rewrite`` and its clears after the round ``round_number``. ``reads_text_alone`` says that the runtime adds
    no words of its own, and ``outlives_client`` that the answer is made even if nobody waits for it.
    """

    dialog_id: UUID
    agent_id: str
    user_id: int
    seq: int
    queued: bool
    after_event: int
    after_generation: int
    after_rewrite: int = 0
    round_number: int = 1
    reads_text_alone: bool = False
    outlives_client: bool = False


def note_answer(run: Run, answer: str) -> None:
    """Store the key of what the client got as its answer: by that it is found, whatever the client makes of the user's
    words."""
    update(Client, {"dialog_id": run.dialog_id}, {"answer_digest": answer_key(answer)})


def abandon(run: Run) -> None:
    """End a message whose client has gone, whether it still waits for its turn or is under way."""
    try:
        messages.remove_queued(run.dialog_id, run.seq, User.objects.get(pk=run.user_id))
    except Conflict:  # its answer has begun
        messages.stop(run.dialog_id, only=run.seq)
