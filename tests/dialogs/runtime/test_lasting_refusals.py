"""What a provider refuses for good, or twice in the same words: a person is asked,
and nothing is sent until they act."""

from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.test import Client

from dialogs.accounts import api_keys
from dialogs.actions import messages, questions
from dialogs.errors import Conflict, Invalid
from dialogs.extras.v1.conversations import begin
from dialogs.extras.v1.ending import ended_by
from dialogs.extras.v1.errors import ApiError
from dialogs.extras.v1.history import ClientMessage
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.extras.v1.relay import _read
from dialogs.models import ApiKey, Dialog, Question
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, make_operator
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)

GONE = {"error": {"kind": "refused_for_good", "message": "The model is retired."}}
NO_BETA = {"error": {"kind": "refused", "message": "No such beta."}}
NO_FIELD = {"error": {"kind": "refused", "message": "No such field."}}
WELL = {"text": "Well."}


@pytest.fixture
def operator() -> User:
    return make_operator()


def say(dialog: Dialog, *texts: str) -> Dialog:
    for text in texts:
        messages.post_message(dialog.pk, text)
    drive(dialog.pk)
    dialog.refresh_from_db()
    return dialog


def take(dialog: Dialog, operator: User, action: str, **options: str) -> Dialog:
    questions.resolve(open_question(dialog).pk, operator, action, **options)
    drive(dialog.pk)
    dialog.refresh_from_db()
    return dialog


def open_question(dialog: Dialog) -> Question:
    return dialog.questions.get(state="open")


def statuses(dialog: Dialog) -> dict[str, str]:
    return dict(dialog.turns.filter(role="user").values_list("text", "status"))


def test_a_refusal_for_good_suspends_and_says_what_to_do(script: Script) -> None:
    script(GONE)
    dialog = say(make_dialog(), "one", "two")
    assert (dialog.state, dialog.failure, dialog.lease_owner) == ("suspended", "", "")
    question = open_question(dialog)
    assert question.kind == "provider_refused"
    assert question.text == "The model is retired. Message 1 (3 characters) still waits for its answer."
    assert statuses(dialog) == {"one": "suspended", "two": "queued"}
    drive(dialog.pk)
    assert dialog.generations.count() == 1, "nothing is sent until a person acts"
    with pytest.raises(Conflict, match="suspended"):
        messages.post_message(dialog.pk, "three")


def test_pages_offer_the_exits_that_help(script: Script, operator: User) -> None:
    script(GONE)
    dialog = say(make_dialog(), "one")
    question = open_question(dialog)
    client = Client()
    client.force_login(operator)
    assert "Suspended: the model cannot answer" in in_one_line(client.get(f"/d/{dialog.pk}/").content.decode())
    for address in (f"/q4h/{question.pk}/", f"/admin/dialogs/question/{question.pk}/change/"):
        page = in_one_line(client.get(address).content.decode())
        assert "The model cannot answer" in page
        offered = [name for name in ("retry", "switch_model", "give_up", "close") if f'value="{name}"' in page]
        assert offered == ["retry", "switch_model", "give_up", "close"]
        assert not [name for name in ("clear", "accept_draft", "raise_budget") if f'value="{name}"' in page]
    with pytest.raises(Invalid, match="no exit of a question about a refusal"):
        questions.resolve(question.pk, operator, "clear", reminder_content="Go on")
    taken = client.post(f"/q4h/{question.pk}/resolve/", {"action": "retry"})
    assert taken.status_code == 302
    assert dialog.questions.get().action == "retry"


def test_a_retry_refused_again_asks_once_more(script: Script, operator: User) -> None:
    script(GONE)
    dialog = say(make_dialog(), "one", "two")
    for asked in (2, 3):
        take(dialog, operator, "retry")
        assert (dialog.state, dialog.questions.count(), dialog.generations.count()) == ("suspended", asked, asked)
    script(WELL)
    take(dialog, operator, "retry")
    assert (dialog.state, statuses(dialog)) == ("idle", {"one": "answered", "two": "answered"})


def test_the_message_goes_on_with_another_model(script: Script, operator: User, settings: Any) -> None:
    script(GONE)
    llm = settings.MINDS_DIR / "llm.yaml"
    known = yaml.safe_load(llm.read_text())
    model = known["providers"]["test"]["models"]["model"]
    known["providers"]["test"]["models"]["other"] = {**model, "script": "other.yaml"}
    (settings.MINDS_DIR / "other.yaml").write_text(yaml.safe_dump({"steps": [WELL]}))
    llm.write_text(yaml.safe_dump(known))
    dialog = say(make_dialog(), "one")
    client = Client(headers={"Authorization": f"Bearer {api_keys.create_key(operator)}"})
    page = Client()
    page.force_login(operator)
    shown = in_one_line(page.get(f"/q4h/{open_question(dialog).pk}/").content.decode())
    assert 'value="test/other"' in shown and 'value="test/model"' not in shown
    given = {"action": "switch_model", "provider": "test", "model": "other"}
    moved = client.post(f"/api/questions/{open_question(dialog).pk}/resolve", given, content_type="application/json")
    assert moved.status_code == 200, moved.content
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert (dialog.state, dialog.model, statuses(dialog)) == ("idle", "other", {"one": "answered"})


def test_a_message_given_up_fails_and_the_next_is_sent(script: Script, operator: User) -> None:
    script({"match": "one$", **GONE}, WELL)
    dialog = say(make_dialog(), "one", "two")
    take(dialog, operator, "give_up")
    assert (dialog.state, statuses(dialog)) == ("idle", {"one": "failed", "two": "answered"})
    script(GONE)
    take(say(dialog, "three"), operator, "give_up")
    assert (dialog.state, dialog.failure) == ("failed", "This message was given up. Try again, or send another.")


def test_the_same_refusal_of_the_next_message_suspends(script: Script) -> None:
    script(NO_BETA)
    dialog = say(make_dialog(), "one")
    assert (dialog.state, dialog.failure) == ("failed", "No such beta.")
    say(dialog, "two")
    assert (dialog.state, statuses(dialog)) == ("suspended", {"one": "failed", "two": "suspended"})
    assert open_question(dialog).text.startswith("No such beta. It said the same twice in a row. Message 2 ")


def test_a_key_refused_twice_suspends_under_any_request_id(script: Script) -> None:
    dialog = make_dialog()
    for request_id in ("req_011CT7", "req_9f02ab"):
        script({"error": {"kind": "auth", "message": f"This key is disabled ({request_id})."}})
        say(dialog, "well?")
    assert (dialog.state, open_question(dialog).kind) == ("suspended", "provider_refused")


def test_the_same_refusal_of_a_message_that_is_tried_again_suspends(script: Script, operator: User) -> None:
    script(NO_BETA)
    dialog = say(make_dialog(), "one")
    messages.retry(dialog.pk)
    drive(dialog.pk)
    assert open_question(dialog).kind == "provider_refused"
    take(dialog, operator, "retry")
    assert dialog.questions.count() == 2
    take(dialog, operator, "close")
    assert (dialog.state, statuses(dialog)) == ("closed", {"one": "superseded"})


@pytest.mark.parametrize("between", [WELL, NO_FIELD])
def test_an_answer_or_other_words_in_between_make_no_row(script: Script, between: dict[str, Any]) -> None:
    dialog = make_dialog()
    for step in (NO_BETA, between, NO_BETA):
        script(step)
        say(dialog, "well?")
    assert (dialog.state, dialog.questions.count()) == ("failed", 0)


@pytest.mark.parametrize("message", [GONE, NO_BETA])
def test_a_message_of_a_program_fails_each_time(script: Script, message: dict[str, Any]) -> None:
    """It is told at once, and asks again by itself."""
    script(message)
    origin = make_dialog()
    dialog = messages.create_dialog(origin.owner, origin.agent_id, origin=Dialog.Origin.KEY)
    for text in ("one", "two"):
        assert say(dialog, text).state == "failed"
    assert (dialog.failure, dialog.questions.count()) == (message["error"]["message"], 0)


def test_a_program_is_told_why_a_persons_dialog_gave_no_answer(script: Script) -> None:
    script(GONE)
    dialog = make_dialog()
    api_keys.create_key(dialog.owner)
    texts = (ClientMessage("user", "one"),)
    request = ChatRequest(model=dialog.agent_id, messages=texts, tools=[], dialog_id=dialog.pk)
    run = begin(ApiKey.objects.get(owner=dialog.owner), request)
    drive(dialog.pk)
    with pytest.raises(ApiError, match="The model is retired") as refused:
        ended_by(run, _read(run, 0).status)
    assert (refused.value.status, refused.value.code) == (400, "refused_by_provider")


GONE_FROM_CATALOG = "There is no model of 'test' named 'model'."


def rename_model(minds: Any, before: str, now: str) -> None:
    """What an operator does to llm.yaml while messages wait."""
    known = yaml.safe_load((minds / "llm.yaml").read_text())
    models = known["providers"]["test"]["models"]
    models[now] = models.pop(before)
    (minds / "llm.yaml").write_text(yaml.safe_dump(known))


def test_a_model_that_our_catalog_lost_asks_a_person(script: Script, operator: User, settings: Any) -> None:
    script(WELL)
    dialog = make_dialog()
    for text in ("one", "two"):
        messages.post_message(dialog.pk, text)
    rename_model(settings.MINDS_DIR, "model", "newer")
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert (dialog.state, statuses(dialog)) == ("suspended", {"one": "suspended", "two": "queued"})
    assert open_question(dialog).text.startswith(GONE_FROM_CATALOG)
    client = Client()
    client.force_login(operator)
    assert "Suspended: the model cannot answer" in in_one_line(client.get(f"/d/{dialog.pk}/").content.decode())
    assert 'value="test/newer"' in in_one_line(client.get(f"/q4h/{open_question(dialog).pk}/").content.decode())
    take(dialog, operator, "switch_model", provider="test", model="newer")
    assert (dialog.state, statuses(dialog)) == ("idle", {"one": "answered", "two": "answered"})


def test_a_provider_that_lost_its_key_asks_a_person(
    script: Script, operator: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(WELL)
    known = yaml.safe_load((settings.MINDS_DIR / "llm.yaml").read_text())
    known["providers"]["test"]["apiKeyEnvVar"] = "KEY_OF_TEST"
    (settings.MINDS_DIR / "llm.yaml").write_text(yaml.safe_dump(known))
    dialog = say(make_dialog(), "one")
    assert (dialog.state, dialog.questions.get().kind) == ("suspended", "provider_refused")
    assert "environment variable KEY_OF_TEST is not set" in open_question(dialog).text
    monkeypatch.setenv("KEY_OF_TEST", "sk-test")
    take(dialog, operator, "retry")
    assert (dialog.state, statuses(dialog)) == ("idle", {"one": "answered"})


def test_a_program_is_told_that_our_catalog_lost_the_model(script: Script, settings: Any) -> None:
    script(WELL)
    dialog = make_dialog()
    Dialog.objects.filter(pk=dialog.pk).update(origin=Dialog.Origin.KEY)
    messages.post_message(dialog.pk, "one")
    rename_model(settings.MINDS_DIR, "model", "newer")
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert (dialog.state, dialog.questions.count()) == ("failed", 0)
    assert dialog.failure.startswith(GONE_FROM_CATALOG)
