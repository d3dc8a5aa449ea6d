"""What a rewrite or a clear took out of sight comes back when a message asks for it,
and stands in that request alone."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from dialogs.actions import rewrite_requests
from dialogs.models import Agent, Dialog, Event, Generation, PersonSettings, RecallChoice, Turn
from dialogs.queries import export
from remediation.recall.recall import HEADING
from tests.doubles.brains import Prompt, Reply
from tests.doubles.local_servers import LocalDouble
from tests.flows import pruner
from tests.flows.conftest import Serve, dialog_with, go_on, overflows, say
from tests.flows.texts import prose

pytestmark = pytest.mark.django_db(transaction=True)

FACT = "The hives of your aunt stand behind the old mill, next to a willow."  # no rule holds it for important
STORY = "Tell me a story."
QUESTION = "Where do the hives of my aunt stand?"
WINDOW = 8_000


@pytest.fixture
def server(serve: Serve) -> LocalDouble:
    server = serve(window=WINDOW, api_type="lmstudio")
    server.brain = answer
    return server


def answer(prompt: Prompt) -> Reply:
    if pruner.is_asked(prompt.body):
        return pruner.prune(prompt)
    return Reply(FACT if prompt.last.text == STORY else "Understood.")


def compacted(server: LocalDouble, **agent: Any) -> Dialog:
    """A dialog whose fact is no longer in the model's sight."""
    dialog = dialog_with(server, **{"recall": True, **agent})
    for text in ("We plan the winter.", "Good.", STORY, *(prose(number) for number in range(13))):
        say(dialog, text)
    return dialog


def cleared(server: LocalDouble, **agent: Any) -> Dialog:
    dialog = dialog_with(server, **{"recall": True, **agent})
    say(dialog, STORY)
    rewrite_requests.clear(dialog.pk, "Go on with the winter.", dialog.owner)
    go_on(dialog)
    return dialog


def texts(server: LocalDouble, at: int = -1) -> list[str]:
    return [str(message["content"]) for message in server.bodies[at]["messages"]]


def recalled_texts(server: LocalDouble) -> list[str]:
    return [text for text in texts(server) if text.startswith(HEADING)]


def test_a_compacted_fact_comes_back_when_asked_for(server: LocalDouble) -> None:
    dialog = compacted(server)
    assert dialog.remediations.exists()
    kept = [text for text in texts(server) if not text.startswith(HEADING)]
    assert not any(FACT in text for text in kept), "otherwise there is nothing to bring back"
    say(dialog, QUESTION)
    *before, last = texts(server)
    assert QUESTION in before
    assert last.startswith(HEADING) and FACT in last
    assert overflows(server) == 0
    seq = dialog.turns.get(text=FACT).seq
    newest = dialog.generations.latest("pk")
    assert seq in newest.recalled
    assert newest.est_prompt_tokens == pytest.approx(newest.prompt_tokens, rel=0.1), "its size is counted"


def test_what_a_person_has_changed_since_comes_back_with_a_mark(server: LocalDouble) -> None:
    dialog = dialog_with(server, recall=True)
    say(dialog, "The launch date is 2027-03-19 in Bergen.")
    rewrite_requests.clear(dialog.pk, "Go on with the winter.", dialog.owner)
    go_on(dialog)
    say(dialog, "Update: the launch date moved to 2027-08-21.")
    say(dialog, "What was the launch date in Bergen at first?")
    changed = dialog.turns.get(text__startswith="Update").seq
    assert f"The launch date is 2027-03-19 in Bergen (until turn {changed})." in recalled_texts(server)[-1]


def test_nothing_of_it_is_stored_in_the_conversation_or_exported(server: LocalDouble) -> None:
    dialog = compacted(server)
    say(dialog, QUESTION)
    assert recalled_texts(server)
    say(dialog, "Thanks, that is all for the moment.")
    assert sum(FACT in text for text in texts(server)) == len([text for text in recalled_texts(server) if FACT in text])
    assert not Turn.objects.filter(text__contains=HEADING).exists()
    assert not Event.objects.filter(data__icontains="Recalled by the runtime").exists()
    for whole in ("".join(map(str, export.as_markdown(dialog))), "".join(map(str, export.as_json(dialog)))):
        assert "Recalled by the runtime" not in whole
        assert whole.count(FACT) == 1, "where it was said, and in no copy"


def test_after_a_clear_it_comes_back_under_any_policy(server: LocalDouble) -> None:
    dialog = cleared(server)
    say(dialog, QUESTION)
    assert FACT in recalled_texts(server)[0]


def test_a_dialog_that_nothing_was_taken_from_recalls_nothing(server: LocalDouble) -> None:
    dialog = dialog_with(server, recall=True)
    say(dialog, STORY)
    say(dialog, QUESTION)
    assert recalled_texts(server) == []
    assert list(dialog.generations.values_list("recalled", flat=True)) == [[], []]


def test_agent_and_owner_can_turn_it_off(server: LocalDouble) -> None:
    dialog = cleared(server)
    Agent.objects.filter(pk=dialog.agent_id).update(recall=False)
    say(dialog, QUESTION)
    assert recalled_texts(server) == []
    Agent.objects.filter(pk=dialog.agent_id).update(recall=True)
    PersonSettings.objects.update_or_create(user=dialog.owner, defaults={"recall": False})
    say(dialog, QUESTION)
    assert recalled_texts(server) == []
    PersonSettings.objects.update(recall=True)
    say(dialog, QUESTION)
    assert len(recalled_texts(server)) == 1


def test_what_is_dismissed_never_comes_back_and_what_is_pinned_always(server: LocalDouble) -> None:
    dialog = cleared(server)
    row = dialog.recall_choices.create(seq=2, choice=RecallChoice.Choice.DISMISSED)
    say(dialog, QUESTION)
    assert not any(FACT in text for text in recalled_texts(server))
    row.choice = RecallChoice.Choice.PINNED
    row.save()
    say(dialog, "Zebra xylophone?")
    assert FACT in recalled_texts(server)[0]


def test_a_request_with_recalled_text_leaves_room_for_the_answer(server: LocalDouble) -> None:
    """Every message asks for what was said before, in a dialog that is rewritten again and again."""
    dialog = dialog_with(server, recall=True)
    for number in range(22):
        say(dialog, f"{prose(number)} What of the clerk of office {number // 3} and the wool?")
    prompts = [request.prompt for request in server.requests if request.prompt]
    recalling = [prompt for prompt in prompts if prompt.last.text.startswith(HEADING)]
    assert len(recalling) > 5
    assert max(prompt.prompt_tokens for prompt in recalling) <= WINDOW - 1_024
    assert overflows(server) == 0
    assert dialog.state == "idle"
    assert dialog.remediations.count() < 12


def test_a_forced_clear_recalls_nothing(serve: Serve) -> None:
    server = serve(context_length=128_000, supports_tool_choice=True)
    dialog = cleared(server)
    server.brain = lambda prompt: Reply("No.", usage=(120_000, 20))
    say(dialog, QUESTION)
    say(dialog, QUESTION)
    forced = dialog.generations.filter(purpose=Generation.Purpose.FORCED_CLEAR)
    assert forced.exists()
    assert all(generation.recalled == [] for generation in forced)


def test_the_generations_of_the_api_say_what_came_back(server: LocalDouble, client: Any) -> None:
    dialog = cleared(server)
    say(dialog, QUESTION)
    client.force_login(User.objects.get(pk=dialog.owner_id))
    *_, newest = client.get(f"/api/dialogs/{dialog.pk}/generations").json()
    assert 2 in newest["recalled"]
    assert HEADING not in client.get(f"/api/dialogs/{dialog.pk}/turns").content.decode()
