"""A browser without scripts, and dialogs that wait for a human."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern

from dialogs.actions.questions import ASK_HUMAN
from dialogs.models import Dialog, Question
from dialogs.urls import urlpatterns
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send

HTMX = {"HX-Request": "true"}


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def asked_dialog(script: Script) -> tuple[Dialog, Question]:
    script({"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "EUR or USD?"}}]}, {"text": "Thanks."})
    dialog = send(make_dialog(), "Import it")
    return dialog, Question.objects.get(dialog=dialog)


def suspended_dialog(script: Script) -> tuple[Dialog, Question]:
    script({"text": "No.", "usage": {"prompt_tokens": 950, "completion_tokens": 5}}, context_length=1000)
    dialog = send(make_dialog(), "one", "two")
    return dialog, Question.objects.get(dialog=dialog)


def routes(patterns: Iterable[Any] = urlpatterns) -> Iterator[URLPattern]:
    """Yield every address of the pages, with those of extensions, which are included without a prefix.

    Those without a name are for programs that left out ``/v1``, and say so.
    """
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            if pattern.name:
                yield pattern
        elif not str(pattern.pattern):
            yield from routes(pattern.url_patterns)


# Names of the addresses that only take a POST.
ONLY_POST = set(
    """
    logout save-appearance revoke-key unlink subscribe-push remove-push create-dialog selected-dialogs post-message
    remove-queued stop retry rename pin move close choose-model add-reminder update-reminder delete-reminder clear
    complete-milestone rewrite choose-recall undo undo-clear answer cancel resolve finish-task intervene fork regenerate
    edit-turn rate-turn pin-turn folder undo-act use-model remove-provider preview-agent switch-agent invite person-link
    switch-person erase-person add-group add-tool-server test-tool-server switch-tool-server remove-tool-server
    end-side-dialog answer-by-mail cancel-by-mail resolve-by-mail
    """.split()
)
