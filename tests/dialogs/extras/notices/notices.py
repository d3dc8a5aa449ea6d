"""Questions whose notices are sent, and time that passes for them."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import F
from django.db.models.functions import Now

from dialogs.actions.questions import ASK_HUMAN
from dialogs.extras.notices import deliveries
from dialogs.models import Delivery, Question
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send

SECRET = "of the site"


def ask(script: Script, question: str = "EUR or USD?", email: str = "ann@example.org") -> Question:
    """A question to a person who can be reached by mail."""
    script({"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": question}}]}, {"text": "Thanks."})
    dialog = make_dialog(name="Importer")
    User.objects.filter(pk=dialog.owner_id).update(email=email)
    send(dialog, "Import it")
    return Question.objects.get(dialog=dialog)


def send_due() -> None:
    """What a worker does, or the sweeper has it do."""
    for pk in list(Delivery.objects.filter(due_at__lte=Now()).values_list("pk", flat=True)):
        deliveries.deliver(pk)


def later(minutes: int) -> None:
    """Let time pass for what waits to be sent, and for open questions."""
    past = timedelta(minutes=minutes)
    Delivery.objects.filter(due_at__isnull=False).update(due_at=F("due_at") - past)
    Question.objects.update(created_at=F("created_at") - past, escalated_at=F("escalated_at") - past)
