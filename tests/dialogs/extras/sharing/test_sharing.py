"""The page that whoever has a dialog's link reads."""

from uuid import uuid4

import pytest
from django.core.signing import Signer
from django.test import Client
from django.urls import reverse

from dialogs.actions import messages, questions, reminders, sharing
from dialogs.actions.attachments import check_files
from dialogs.actions.questions import ASK_HUMAN
from dialogs.models import Dialog, Question
from dialogs.runtime.driver import drive
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send
from tests.pixels import picture

pytestmark = pytest.mark.django_db(transaction=True)

HOSTILE = "<script>alert(1)</script> **bold** [go](javascript:alert(1)) ![x](http://evil.example/x.png)"
STEPS = (
    {"tool_calls": [{"name": "add_reminder", "arguments": {"content": "a reminder"}}]},
    {"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "EUR or *USD*?"}}]},
    {"text": HOSTILE, "reasoning": "a thought"},
)


def path_of(dialog: Dialog) -> str:
    dialog.refresh_from_db()
    return reverse("shared", args=[sharing.token_of(dialog)])


@pytest.fixture
def dialog(script: Script) -> Dialog:
    script(*STEPS)
    result = make_dialog()
    files = check_files([("plan.png", picture()), ("notes.txt", b"tea at four")])
    messages.post_message(result.pk, "Import it", attached=files)
    drive(result.pk)
    questions.answer(Question.objects.get(dialog=result).pk, result.owner, "EUR, please")
    drive(result.pk)
    reminders.add(result.pk, "another reminder")
    browser_of(result.owner).post(f"/d/{result.pk}/sharing/", {"action": "link"})
    return result


def test_whoever_has_the_link_reads_what_was_said_and_nothing_else(dialog: Dialog) -> None:
    answer = Client().get(path_of(dialog))
    page = answer.content.decode()
    for text in ("Import it", "tea at four", "EUR or <em>USD</em>?", "EUR, please", "<strong>bold</strong>"):
        assert text in page, text
    own = (dialog.owner.username, str(dialog.pk), "a reminder", "another reminder", "a thought", "add_reminder")
    for hidden in (
        *own,
        "<script>alert",
        'href="javascript',
        'evil.example/x.png" alt',
        "<form",
        "<nav",
        "data-person",
    ):
        assert hidden not in page, hidden
    assert answer["X-Robots-Tag"] == "noindex, nofollow"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cache-Control"] == "no-store"
    image = Client().get(reverse("shared-image", args=[sharing.token_of(dialog), dialog.attachments.get().sha256]))
    assert (image.status_code, image["Content-Type"]) == (200, "image/png")
    assert image["Cache-Control"] == "no-store"


def test_it_looks_the_same_to_its_owner_and_answers_no_post(dialog: Dialog) -> None:
    client = browser_of(dialog.owner)
    page = client.get(path_of(dialog)).content.decode()
    assert "data-person" not in page
    assert "<form" not in page
    assert client.post(path_of(dialog)).status_code == 405


def test_a_link_that_was_taken_back_or_replaced_shows_nothing(dialog: Dialog) -> None:
    client, first = browser_of(dialog.owner), path_of(dialog)
    client.post(f"/d/{dialog.pk}/sharing/", {"action": "link"})
    second = path_of(dialog)
    assert [Client().get(path).status_code for path in (first, second)] == [404, 200]
    client.post(f"/d/{dialog.pk}/sharing/", {"action": "revoke"})
    gone = Client().get(second).content.decode()
    assert "This link shows nothing" in gone and 'href="/"' not in gone  # whoever has no account is led nowhere
    image = f"{second}images/{dialog.attachments.get().sha256}/"
    assert [Client().get(path).status_code for path in (first, second, image)] == [404, 404, 404]


def test_a_link_cannot_be_guessed_from_the_database(dialog: Dialog) -> None:
    dialog.refresh_from_db()
    assert dialog.link is not None
    for token in (
        dialog.link.hex,
        f"{dialog.link.hex}.x",
        Signer(sep=".").sign(dialog.link.hex),
        uuid4().hex,
        "💥",
        ".",
    ):
        assert Client().get(reverse("shared", args=[token])).status_code == 404, token


def test_an_older_page_of_a_long_dialog_is_a_link_away(script: Script) -> None:
    script({"text": "Noted."})
    dialog = make_dialog()
    for number in range(22):
        send(dialog, f"message {number}.")
    sharing.make_link(dialog.pk, dialog.owner)
    page = Client().get(path_of(dialog)).content.decode()
    assert "message 21." in page
    assert "message 1." not in page
    assert "message 1." in Client().get(f"{path_of(dialog)}?before=5").content.decode()
    assert Client().get(f"{path_of(dialog)}?before=x").content.decode().count("<article") == page.count("<article")
