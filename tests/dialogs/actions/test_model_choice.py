"""Another model in a dialog: what may be chosen and when, who hears of it, and who answers from then on."""

from typing import Any

import pytest
import yaml
from django.test import Client

from dialogs.actions import forks, messages, model_choice
from dialogs.context.limits import health_of, offered_models
from dialogs.errors import Conflict
from dialogs.models import Dialog, Generation, Turn
from dialogs.runtime.driver import drive
from remediation.tokens.calibration import Calibration
from tests.dialogs.browsing import HTMX, browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.event_lists import event_data
from tests.dialogs.factories import UserFactory, make_dialog, send

pytestmark = pytest.mark.django_db(transaction=True)

REPORTED = {"usage": {"prompt_tokens": 500, "completion_tokens": 5}}


@pytest.fixture
def dialog(script: Script, settings: Any) -> Dialog:
    """Of an agent whose model has a large window; ``small`` has a small one, and nobody has the key of ``locked``."""
    script({"text": "By the large one.", **REPORTED})
    llm = settings.MINDS_DIR / "llm.yaml"
    known = yaml.safe_load(llm.read_text())
    model = known["providers"]["test"]["models"]["model"]
    known["providers"]["test"]["models"]["small"] = {
        **model,
        "name": "The small one",
        "script": "small.yaml",
        "context_length": 1_000,
    }
    locked = {
        "name": "Locked",
        "apiType": "openai",
        "apiKeyEnvVar": "NO_SUCH_KEY",
        "baseUrl": "https://locked.example/v1",
    }
    known["providers"]["locked"] = {**locked, "models": {"far": {"context_length": 8_000}}}
    (settings.MINDS_DIR / "small.yaml").write_text(
        yaml.safe_dump({"steps": [{"text": "By the small one.", **REPORTED}]})
    )
    llm.write_text(yaml.safe_dump(known))
    dialog = make_dialog()
    send(dialog, "one")
    return dialog


@pytest.fixture
def person(dialog: Dialog) -> Client:
    return browser_of(dialog.owner)


def answered_by(dialog: Dialog) -> list[str]:
    return list(Generation.objects.filter(dialog=dialog).order_by("pk").values_list("model", flat=True))


def test_the_chosen_model_answers_and_then_the_agents_own_again(dialog: Dialog, person: Client) -> None:
    address = f"/d/{dialog.pk}/model/"
    answer = person.post(address, {"model": "test/small"}, headers=HTMX).content.decode()
    assert 'id="model-button"' in answer and "Model: The small one" in answer
    assert "500 tok · 50 % of 1,000" in answer  # what was reported, by the limits of the new one
    send(dialog, "two")
    person.post(address, {"model": ""})
    send(dialog, "three")
    assert answered_by(dialog) == ["model", "small", "model"]
    notices = dialog.turns.filter(role=Turn.Role.NOTICE).values_list("text", flat=True)
    chosen = f"{dialog.owner} chose it."
    assert list(notices) == [f"From here on small answers; {chosen}", f"From here on model answers; {chosen}"]
    assert event_data(dialog, "model") == [{"provider": "test", "model": name} for name in ("small", "model")]


def test_models_with_a_key_are_offered_and_the_present_one_marked(dialog: Dialog, person: Client) -> None:
    offered = offered_models()
    assert "far" not in {model.model_id for model in offered}
    assert not {"ollama", "lmstudio", "llamacpp"} & {model.provider_id for model in offered}, "nobody connected them"
    for headers in (HTMX, {}):
        page = person.get(f"/d/{dialog.pk}/models/", headers=headers).content.decode()
        assert 'value="test/small"' in page and "1,000 tokens" in page and "locked/" not in page
        assert page.count('aria-current="true"') == 1 and 'value="" aria-current="true"' in page
    assert "locked/far" not in person.get("/").content.decode()
    assert "locked/far" not in person.get(f"/d/{dialog.pk}/turn/2/actions/").content.decode()


def test_no_model_is_chosen_during_an_answer_or_after_closing(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "two")
    with pytest.raises(Conflict, match="The dialog is queued"):
        model_choice.choose(dialog.pk, "test", "small", dialog.owner)
    drive(dialog.pk)
    with pytest.raises(Conflict, match="gone"):
        model_choice.choose(dialog.pk, "test", "gone", dialog.owner)
    messages.close(dialog.pk, dialog.owner)
    with pytest.raises(Conflict, match="closed"):
        model_choice.choose(dialog.pk, "test", "small", dialog.owner)
    dialog.refresh_from_db()
    assert dialog.model == "" and not event_data(dialog, "model")


def test_a_choice_without_effect_leaves_no_line(dialog: Dialog) -> None:
    model_choice.choose(dialog.pk, "test", "model", dialog.owner)
    fresh = messages.create_dialog(dialog.owner, dialog.agent_id)
    model_choice.choose(fresh.pk, "", "small", dialog.owner)
    fresh.refresh_from_db()
    assert (fresh.provider_id, fresh.model_id) == ("test", "small")
    assert not Turn.objects.filter(role=Turn.Role.NOTICE).exists()
    assert health_of(fresh)["model_context_limit"] == 1_000


@pytest.mark.parametrize(("provider", "model"), [("", ""), ("test", "model"), ("", "model")])
def test_the_same_model_again_keeps_what_its_reports_taught(dialog: Dialog, provider: str, model: str) -> None:
    learnt = Calibration.of_factor(1.2).numbers
    Dialog.objects.filter(pk=dialog.pk).update(overflowed=True, calibration_fit=learnt)
    assert not model_choice.choose(dialog.pk, provider, model, dialog.owner)
    dialog.refresh_from_db()
    assert (dialog.calibration_fit, dialog.overflowed) == (learnt, True)
    answer = dialog.turns.get(role=Turn.Role.ASSISTANT)
    branch = forks.Branch(dialog.pk, answer.seq, dialog.owner, "again")
    assert forks.regenerate(branch, provider, model).calibration_fit == learnt
    model_choice.choose(dialog.pk, "test", "small", dialog.owner)
    dialog.refresh_from_db()
    assert (dialog.calibration_fit, dialog.overflowed) == (None, False)


def test_choosing_what_answers_already_is_said(dialog: Dialog, person: Client) -> None:
    address, text = f"/d/{dialog.pk}/model/", "model answers here already."
    assert text in person.post(address, {"model": ""}, headers=HTMX).headers["HX-Trigger"]
    assert text in person.post(address, {"model": ""}, follow=True).content.decode()
    assert "HX-Trigger" not in person.post(address, {"model": "test/small"}, headers=HTMX).headers


def test_programs_choose_too_and_strangers_do_not(dialog: Dialog, person: Client) -> None:
    address = f"/api/dialogs/{dialog.pk}/model"
    answer = person.put(address, {"model": "small"}, content_type="application/json")
    assert (answer.status_code, answer.json()["model"]) == (200, "small")
    stranger = browser_of(UserFactory.create())
    assert stranger.put(address, {"model": ""}, content_type="application/json").status_code == 404
    assert stranger.get(f"/d/{dialog.pk}/models/").status_code == 404
