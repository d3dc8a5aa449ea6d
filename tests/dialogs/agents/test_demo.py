"""The shipped demo agents tell their stories, by the real driver and without a key."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialogs.actions import questions
from dialogs.actions.messages import create_dialog
from dialogs.agents import team_file
from dialogs.models import Dialog, Question, Turn
from dialogs.runtime.driver import drive
from dominds.llm.providers.scripted import SCRIPTS
from remediation.models import RemediationRun
from tests.dialogs.factories import UserFactory, make_operator, send

pytestmark = pytest.mark.django_db(transaction=True)

Talk = Callable[..., Dialog]


@pytest.fixture
def talk(tmp_path: Path, settings: Any) -> Talk:
    """Send messages to a demo agent until ``until`` holds; fails after ``most`` of them."""
    settings.MINDS_DIR = tmp_path
    for file in SCRIPTS.glob("*.yaml"):  # paced for people; scripts beside llm.yaml come first
        unhurried = re.sub(r"chunk_delay_ms: \d+", "chunk_delay_ms: 0", file.read_text())
        (tmp_path / file.name).write_text(unhurried)
    team_file.synchronise()

    def say(
        agent: str, until: Callable[[Dialog], Any], most: int, text: str = "next", dialog: Dialog | None = None
    ) -> Dialog:
        dialog = dialog or create_dialog(UserFactory.create(), agent)
        for _ in range(most):
            send(dialog, text)
            if until(dialog):
                return dialog
        raise AssertionError(f"not within {most} messages: {story(dialog)}")

    return say


def story(dialog: Dialog) -> list[str]:
    """The levels in the order in which they were shown, each once in a row."""
    levels = dialog.generations.filter(snapshot__isnull=False, purpose="reply").order_by("id")
    results: list[str] = []
    for level in levels.values_list("snapshot__level", flat=True):
        if results[-1:] != [level]:
            results.append(level)
    return results


def clean(dialog: Dialog) -> bool:
    return not dialog.generations.filter(outcome="failed").exists() and not dialog.failure


def test_the_guide_shows_its_features_within_six_messages(talk: Talk) -> None:
    dialog = talk("demo", lambda dialog: dialog.state == "waiting", most=2)
    question = Question.objects.get(dialog=dialog, state="open")
    questions.answer(question.pk, dialog.owner, question.choices[0])
    drive(dialog.pk)
    rewritten = RemediationRun.objects.filter(dialog=dialog)
    dialog = talk("demo", lambda _: rewritten.exists(), most=3, dialog=dialog)
    assert rewritten.get().est_after < rewritten.get().est_before
    dialog = talk("demo", lambda _: True, most=1, text="What did I ask you to remember?", dialog=dialog)
    assert rewritten.count() == 1
    answer = dialog.turns.filter(role="assistant").last()
    assert answer is not None and answer.generation is not None
    assert answer.generation.recalled and f"“{question.choices[0]}”" in answer.text
    reported = dialog.generations.filter(purpose="reply").order_by("-id").values_list("prompt_tokens", flat=True)[0]
    assert f"{reported:,} tokens in all" in answer.text, "its figures are those of the runtime"
    assert clean(dialog)


def test_the_gauge_goes_from_green_over_yellow_to_red_and_back(talk: Talk) -> None:
    dialog = talk("demo-health", lambda dialog: dialog.round_number == 2, most=8)
    assert story(dialog) == ["healthy", "caution", "critical", "healthy"]
    assert dialog.reminders.count() == 1
    assert dialog.generations.filter(outcome="discarded").count() == 0
    assert clean(dialog)


def test_the_gauge_can_be_talked_to_for_long(talk: Talk) -> None:
    dialog = talk("demo-health", lambda dialog: dialog.round_number == 4, most=30)
    assert clean(dialog)
    assert dialog.state == "idle"


def test_the_quiet_one_stays_gray(talk: Talk) -> None:
    dialog = talk("demo-quiet", lambda dialog: dialog.turns.filter(role="user").count() == 5, most=5)
    assert story(dialog) == ["unknown"]


def test_the_mindful_one_clears_its_mind_at_the_first_hint(talk: Talk) -> None:
    dialog = talk("demo-mindful", lambda dialog: dialog.round_number == 2, most=6)
    assert story(dialog)[:2] == ["healthy", "caution"]
    assert "critical" not in story(dialog)
    assert story(dialog)[-1] == "healthy"
    assert "never book without asking" in dialog.rounds.get(number=2).package


def test_the_stubborn_one_ends_in_a_critical_question(talk: Talk) -> None:
    dialog = talk("demo-stubborn", lambda dialog: dialog.state == "suspended", most=6)
    assert story(dialog) == ["healthy", "caution", "critical"]
    assert dialog.generations.filter(purpose="forced_clear", outcome="discarded").count() == 3
    assert Question.objects.get(dialog=dialog).kind == Question.Kind.CRITICAL


def test_a_person_gets_the_stubborn_one_going_again(talk: Talk) -> None:
    dialog = talk("demo-stubborn", lambda dialog: dialog.state == "suspended", most=6)
    question = Question.objects.get(dialog=dialog)
    questions.resolve(question.pk, make_operator(), "accept_draft")
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert (dialog.state, dialog.round_number, story(dialog)[-1]) == ("idle", 2, "healthy")


def test_the_asker_goes_on_with_the_answer(talk: Talk) -> None:
    dialog = talk("demo-asks", lambda dialog: dialog.state == "waiting", most=1)
    questions.answer(Question.objects.get(dialog=dialog).pk, dialog.owner, "Heron, what did you ask me?")
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert (dialog.state, dialog.turns.filter(role="assistant").count()) == ("idle", 2)


def test_the_asker_waits_for_a_person(talk: Talk) -> None:
    dialog = talk("demo-asks", lambda dialog: dialog.state == "waiting", most=1)
    assert Question.objects.get(dialog=dialog, state="open").kind == Question.Kind.QUESTION


@pytest.mark.parametrize(
    ("agent", "policy"),
    [("demo-autocompaction", "autocompaction"), ("demo-breaking", "breaking"), ("demo-retention", "retention")],
)
def test_a_context_is_shortened_and_the_talk_goes_on(talk: Talk, agent: str, policy: str) -> None:
    dialog = talk(agent, lambda dialog: RemediationRun.objects.filter(dialog=dialog).count() >= 2, most=12)
    runs = RemediationRun.objects.filter(dialog=dialog).order_by("id")
    assert runs[0].policy == policy
    assert all(run.est_after < run.est_before for run in runs)
    if policy == "retention":  # rests for some messages after a rewrite, and its window is the smallest
        assert set(story(dialog)) <= {"healthy", "caution"} and story(dialog)[-1] == "healthy"
    else:
        assert story(dialog) == ["healthy"]
    assert clean(dialog)
    assert any(step["strategy"] == "prune" for run in runs for step in run.steps) or policy == "breaking"


def test_the_compactor_compacts_in_the_middle_of_a_long_answer(talk: Talk) -> None:
    dialog = talk("demo-autocompaction", lambda dialog: dialog.turns.filter(role="user").count() == 3, most=3)
    dialog = talk(
        "demo-autocompaction", lambda dialog: dialog.state == "idle", most=1, text="long, please", dialog=dialog
    )
    interrupted = Turn.objects.get(dialog=dialog, status=Turn.Status.INTERRUPTED)
    after = list(dialog.turns.filter(position__gt=interrupted.position).order_by("position"))
    assert [turn.role for turn in after] == ["notice", "notice", "assistant"]
    assert after[-1].text.startswith("… and there I go on")
