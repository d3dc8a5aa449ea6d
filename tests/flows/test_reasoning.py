"""What a model thinks: shown while it does, kept beside its answer, and nowhere else."""

import threading
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from dialogs.actions import messages, rewrite_requests
from dialogs.context.package_draft import draft_package
from dialogs.context.request import GO_ON
from dialogs.context.retrieval import search
from dialogs.models import Dialog, Generation, SiteSettings, Turn
from dialogs.runtime.driver import drive
from dialogs.store.wakeups import client, live_text_key
from remediation.models import RemediationRun
from tests.dialogs.factories import AgentFactory
from tests.doubles.brains import Call, Prompt, Reply, Scripted
from tests.flows import pruner
from tests.flows.conftest import Minds, go_on, say
from tests.flows.doubled import dialog_at, start
from tests.flows.texts import prose
from tests.flows.traces import shown_holding, tables_holding
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "quietly-reckoned"
FIRST, SECOND = f"I must look around, {SECRET}.", "Now I know <enough>."
SHOWS = {
    "alibaba/qwen3.8-max": {},
    "anthropic/claude-opus-5-5": {},
    "anthropic/claude-haiku-5-5": {},
    "openai/gpt-5.6-terra": {},
    "moonshot/kimi-k3": {},
    "lmstudio/qwen3-14b": {"reasoning": "think"},
    "llamacpp/default": {"reasoning": "think"},
    "ollama/qwen3": {},
}


def thoughts(dialog: Dialog) -> list[str | None]:
    turns = Turn.objects.filter(dialog=dialog, role="assistant").order_by("seq")
    return [turn.reasoning and turn.reasoning["text"] for turn in turns]


@pytest.mark.parametrize("chunk_chars", [3, 400])  # tags are cut in two, or come whole
@pytest.mark.parametrize("name", SHOWS)
def test_reasoning_is_kept_beside_the_text_of_each_answer(
    name: str, chunk_chars: int, minds: Minds, monkeypatch: Any
) -> None:
    steps = (
        Reply("I look.", (Call("list_files", {"path": "."}),), reasoning=FIRST, chunk_chars=chunk_chars),
        Reply("There is nothing.", reasoning=SECOND, chunk_chars=chunk_chars),
        Reply("Goodbye.", chunk_chars=chunk_chars),
    )
    with start(name, Scripted(*steps), **SHOWS[name]) as double:
        dialog = dialog_at(double, minds, monkeypatch, name, toolsets=["ws_read"])
        say(dialog, "look")
        say(dialog, "goodbye")
        assert [refusal for refusal in double.refusals if refusal.rule != "path"] == []
    assert thoughts(dialog) == [FIRST, SECOND, None]
    answers = Turn.objects.filter(dialog=dialog, role="assistant").order_by("seq")
    assert [turn.text for turn in answers] == ["I look.", "There is nothing.", "Goodbye."]


def test_what_was_thought_is_kept_of_an_answer_that_was_stopped(minds: Minds, monkeypatch: Any) -> None:
    thinks = Reply("Never said.", reasoning=FIRST * 40, chunk_chars=10, chunk_seconds=0.05)
    with start("alibaba/qwen3.8-max", Scripted(thinks)) as double:
        dialog = dialog_at(double, minds, monkeypatch, "alibaba/qwen3.8-max")
        messages.post_message(dialog.pk, "hello")

        def drive_it() -> None:
            drive(dialog.pk)
            connection.close()

        driver = threading.Thread(target=drive_it)
        driver.start()
        eventually(lambda: b"quietly" in (client().get(live_key(dialog)) or b""))
        messages.stop(dialog.pk)
        driver.join()
    (thought,) = thoughts(dialog)
    assert thought is not None and (FIRST * 40).startswith(thought) and "quietly" in thought
    assert Turn.objects.get(dialog=dialog, role="assistant").status == "stopped"


def live_key(dialog: Dialog) -> str:
    running = Generation.objects.filter(dialog=dialog).values_list("pk", flat=True).first()
    return live_text_key(running or 0, reasoning=True)


EFFORTS: dict[str, dict[str, Any]] = {
    "alibaba/qwen3.8-max": {"reasoning_effort": "low"},
    "anthropic/claude-opus-5-5": {"output_config": {"effort": "low"}},
    "anthropic/claude-haiku-4-5": {"thinking": {"type": "enabled", "budget_tokens": 2_048}},
    "openai/gpt-5.6-terra": {"reasoning": {"effort": "low", "summary": "auto"}},
    "ollama/qwen3": {"reasoning_effort": "low"},
}


@pytest.mark.parametrize("name", EFFORTS)
def test_an_agents_settings_are_sent_with_its_answers(name: str, minds: Minds, monkeypatch: Any) -> None:
    with start(name, Scripted(Reply("Well."))) as double:
        settings = {"general": {"effort": "low", "max_tokens": 3_000}}
        dialog = dialog_at(double, minds, monkeypatch, name, model_params=settings)
        say(dialog, "hello")
        assert double.refusals == []
    (body,) = [body for body in double.bodies if "tools" in body]
    assert {name: body[name] for name in EFFORTS[name]} == EFFORTS[name]
    limits = [body[name] for name in ("max_tokens", "max_completion_tokens", "max_output_tokens") if name in body]
    assert limits == [3_000]
    assert dialog.state == "idle"


def test_a_summary_is_asked_for_with_the_pruning_agents_settings_alone(minds: Minds, monkeypatch: Any) -> None:
    name = "alibaba/qwen3.8-max"
    with start(name, Scripted(Reply("We spoke of wool. " * 9))) as double:
        dialog = dialog_at(double, minds, monkeypatch, name, model_params={"general": {"effort": "high"}})
        for number in range(3):
            say(dialog, prose(number, 500))
        for pruner_settings in ({}, {"general": {"effort": "low"}}):
            provider, model = name.split("/")
            agent = AgentFactory.create(provider=provider, model=model, model_params=pruner_settings)
            SiteSettings.objects.update_or_create(singleton=True, defaults={"pruning_agent": agent})
            rewrite_requests.request(dialog.pk, "fresh_start", dialog.owner)
            go_on(dialog)
            say(dialog, prose(9, 500))
        assert double.refusals == []
    side = [body.get("reasoning_effort") for body in double.bodies if "tools" not in body]
    own = [body.get("reasoning_effort") for body in double.bodies if "tools" in body]
    assert (None in side, "low" in side, set(own)) == (True, True, {"high"})


class Mind:
    """Thinks of the secret before all it says, as an agent and as whoever prunes or sums up."""

    def __call__(self, prompt: Prompt) -> Reply:
        if pruner.is_asked(prompt.body):
            return replace(pruner.prune(prompt), reasoning=f"Which of them? {SECRET}", chunk_chars=5)
        return Reply("Understood.", reasoning=f"How do I say that? {SECRET}", chunk_chars=5)


def test_reasoning_is_in_no_request_summary_package_index_or_title(minds: Minds, monkeypatch: Any, staff: User) -> None:
    with start("lmstudio/qwen3-14b", Mind(), window=8_000, reasoning="think") as double:
        dialog = dialog_at(double, minds, monkeypatch, "lmstudio/qwen3-14b")
        for number in range(10):
            say(dialog, prose(number, 500))
        rewrite_requests.request(dialog.pk, "fresh_start", dialog.owner)
        go_on(dialog)
        say(dialog, "What was it?")
        package = draft_package(dialog)
        assert [refusal for refusal in double.refusals if refusal.rule != "path"] == []
    policies = set(RemediationRun.objects.filter(dialog=dialog).values_list("policy", flat=True))
    assert len(policies) == 2, "a compaction by the pruning agent, and a fresh start"
    assert any(pruner.is_asked(body) for body in double.bodies)
    assert SECRET in str(thoughts(dialog))
    assert [body for body in double.bodies if SECRET in str(body)] == []
    assert tables_holding(SECRET) == ["dialogs_turn"]
    assert not Turn.objects.filter(text__contains=SECRET).exists()
    assert SECRET not in package + dialog.title
    assert search.in_turns(dialog.pk, SECRET) == search.in_removed_units(dialog.pk, SECRET) == []
    at = f"/api/dialogs/{dialog.pk}"
    shown = shown_holding(dialog, staff, SECRET)
    assert shown == [f"/d/{dialog.pk}/", f"{at}/turns?limit=1000", f"{at}/events?limit=1000", "export.json"]


def test_reasoning_that_fills_the_window_is_begun_anew(minds: Minds, monkeypatch: Any, caplog: Any) -> None:
    """Nothing was said yet that it could go on from."""
    thought, thought_about = prose(500, 6_000), set[str]()

    def mind(prompt: Prompt) -> Reply:
        if pruner.is_asked(prompt.body):
            return pruner.prune(prompt)
        if prompt.last.text == "think long" and prompt.last.text not in thought_about:
            thought_about.add(prompt.last.text)
            return Reply("Never said.", reasoning=thought, chunk_seconds=0.01)
        return Reply("Understood.")

    with start("lmstudio/qwen3-14b", mind, window=8_000) as double:
        dialog = dialog_at(double, minds, monkeypatch, "lmstudio/qwen3-14b")
        for number in range(4):
            say(dialog, prose(number, 500))
        say(dialog, "think long")
        assert [refusal for refusal in double.refusals if refusal.rule != "path"] == []
    assert "stream_interrupted" in caplog.text
    first, last = dialog.turns.filter(role="assistant").order_by("-position")[:2][::-1]
    assert (first.status, first.text) == ("interrupted", "")
    kept = (first.reasoning or {})["text"]
    assert thought.startswith(kept) and len(kept) > 1_000
    assert (last.status, last.text) == ("complete", "Understood.")
    sent = str(double.bodies[-1]["messages"])
    assert "think long" in sent and GO_ON not in sent
    assert RemediationRun.objects.get(dialog=dialog).reason == "the answer filled 90 % of the limit"
