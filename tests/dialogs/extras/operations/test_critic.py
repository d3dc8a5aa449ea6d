"""Milestones, cleanup tasks, loops, the critic, and what operators can export."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from dialogs.actions import rewrite_requests
from dialogs.agents.team_file import synchronise
from dialogs.context.config import current_config
from dialogs.errors import Conflict, Invalid
from dialogs.extras.operations import critic
from dialogs.models import Agent, Dialog
from dialogs.queries import coherence
from dialogs.runtime.driver import drive
from remediation.models import CleanupTask, ContextEvent, Proposal, RemediationRun
from tests.dialogs.conftest import Script
from tests.dialogs.event_lists import event_data
from tests.dialogs.factories import UserFactory, make_dialog, send, talk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def breaking(script: Script) -> Dialog:
    script({"text": "Understood. " * 30, "usage": "estimate"})
    return make_dialog(context_policy="breaking", context_limit=5_000)


def test_three_warnings_in_an_hour_raise_one_cleanup_task(breaking: Dialog) -> None:
    talk(breaking, 40)
    assert ContextEvent.objects.filter(dialog=breaking, code="CONTEXT_WARNING").count() >= 3
    assert CleanupTask.objects.get(dialog=breaking).state == "open"


def test_a_priority_one_over_hit_raises_the_task_at_once(script: Script) -> None:
    script({"text": "ok", "usage": "estimate"})
    dialog = make_dialog(context_policy="breaking", context_limit=3_500, priority=1)
    send(dialog, "first " * 400)
    send(dialog, "second " * 3_400)
    assert CleanupTask.objects.get(dialog=dialog).reason.startswith("A priority-1 agent")


def test_a_milestone_of_the_agent_starts_afresh_with_a_handover(script: Script) -> None:
    script(
        {
            "match": "milestone now",
            "tool_calls": [{"name": "complete_milestone", "arguments": {"summary": "Import done"}}],
        },
        {"match": "Milestone recorded|Resuming", "text": "On to the next."},
        {"text": "Understood. " * 30, "usage": "estimate"},
    )
    dialog = make_dialog(context_policy="breaking", context_limit=6_000)
    talk(dialog, 6)
    send(dialog, "milestone now")
    run = RemediationRun.objects.get(dialog=dialog)
    assert (run.policy, run.reason) == ("fresh_start", "a milestone was reached")
    assert dialog.turns.get(text="milestone now").status == "answered"


def test_a_milestone_by_button_does_the_same(breaking: Dialog) -> None:
    talk(breaking, 5)
    rewrite_requests.complete_milestone(breaking.pk, breaking.owner)
    drive(breaking.pk)
    run = RemediationRun.objects.get(dialog=breaking)
    assert (run.policy, run.reason) == ("fresh_start", "a milestone was reached")
    recoveries = [
        data["message"] for data in event_data(breaking, "contextBreakingUpdate") if data["phase"] == "recovery"
    ]
    assert recoveries == ["Starting fresh conversation"], "nothing has overflowed"


def test_the_same_call_again_and_again_triggers_recovery(script: Script) -> None:
    same = {"tool_calls": [{"name": "search_archive", "arguments": {"query": "orders"}}], "usage": "estimate"}
    script(*[same] * 5, {"text": "I stop looking.", "usage": "estimate"})
    dialog = make_dialog(context_policy="breaking", context_limit=6_000)
    send(dialog, "find the orders " * 60)
    assert RemediationRun.objects.filter(dialog=dialog, policy="fresh_start").count() <= 1
    codes = set(ContextEvent.objects.filter(dialog=dialog).values_list("code", flat=True))
    assert codes & {"LOOP_DETECTED", "RECOVERY_TRIGGERED", "BREAKER_FAILED"}


def test_a_proposal_is_applied_when_accepted_and_decided_once(breaking: Dialog) -> None:
    person = UserFactory.create()
    limit = Proposal.objects.create(
        agent=breaking.agent, kind="limit", change={"context_limit": 6_000}, grounds="tight"
    )
    order = Proposal.objects.create(
        agent=breaking.agent, kind="order", change={"chain_order": ["discard_low_rel", "hybrid"]}, grounds="better"
    )
    critic.accept(limit.pk, person)
    critic.accept(order.pk, person)
    breaking.agent.refresh_from_db()
    assert breaking.agent.context_limit == 6_000
    assert current_config().breaking_strategy.chain_order == ("discard_low_rel", "hybrid")
    with pytest.raises(Conflict, match="accepted before"):
        critic.reject(limit.pk, person)


def test_an_accepted_limit_outlives_a_start_and_a_stated_one_stands(script: Script, settings: Any) -> None:
    script({"text": "ok"})
    team = Path(settings.MINDS_DIR) / "team.yaml"
    team.write_text(
        "members: {anna: {provider: test, model: model}, ben: {provider: test, model: model, context_limit: 5000}}"
    )
    synchronise()
    change, person = {"context_limit": 6_000}, UserFactory.create()
    of_anna, of_ben = (
        Proposal.objects.create(agent_id=name, kind="limit", change=change, grounds="tight") for name in ("anna", "ben")
    )
    critic.accept(of_anna.pk, person)
    with pytest.raises(Invalid, match="states its context_limit"):
        critic.accept(of_ben.pk, person)
    of_ben.refresh_from_db()
    synchronise()
    assert (Agent.objects.get(pk="anna").context_limit, Agent.objects.get(pk="ben").context_limit) == (6_000, 5_000)
    assert of_ben.state == "open"
    team.write_text("members: {anna: {provider: test, model: model, context_limit: 4000}}")
    synchronise()
    assert Agent.objects.get(pk="anna").context_limit == 4_000


def test_a_proposal_is_replayed_on_past_dialogs(breaking: Dialog) -> None:
    talk(breaking, 20)
    raised = Proposal(agent=breaking.agent, kind="limit", change={"context_limit": 8_000})
    outcome = {name: (before, after) for name, before, after in critic.replay(raised).rows}
    assert outcome["limit, tokens"] == ("5,000", "8,000")
    assert int(outcome["rewrites"][0]) > int(outcome["rewrites"][1])
    order = list(reversed(current_config().breaking_strategy.chain_order))
    reordered = critic.replay(Proposal(agent=breaking.agent, kind="order", change={"chain_order": order}))
    assert reordered.before.result.requests == reordered.after.result.requests
    assert reordered.before.result.tokens_sent != reordered.after.result.tokens_sent
    breaking.agent.refresh_from_db()
    assert breaking.agent.context_limit == 5_000


def test_the_critic_proposes_once_what_recoveries_suggest(breaking: Dialog) -> None:
    talk(breaking, 20)
    run = RemediationRun.objects.filter(dialog=breaking).latest("id")
    for _ in range(6):
        run.pk, run.recovered = None, True
        run.save()
    assert critic.review() >= 1
    assert critic.review() == 0
    assert Proposal.objects.filter(kind="limit", state="open").count() == 1


def test_rewards_are_exported_as_json_lines(breaking: Dialog, tmp_path: Path) -> None:
    talk(breaking, 20)
    run = RemediationRun.objects.filter(dialog=breaking).latest("id")
    run.pk, run.rejected = None, "The rewrite would not be smaller."
    run.save()
    call_command("export_rewards", tmp_path / "rewards.jsonl")
    records = [json.loads(line) for line in (tmp_path / "rewards.jsonl").read_text().splitlines()]
    assert len(records) == RemediationRun.attempts.count() > RemediationRun.objects.count()
    assert {"stateBefore", "action", "reward", "stateAfter"} <= set(records[0])
    assert all(-2 <= record["reward"] <= 2 for record in records)


def test_coherence_is_measured_when_somebody_asks(breaking: Dialog) -> None:
    talk(breaking, 40)
    run = RemediationRun.objects.filter(dialog=breaking).latest("id")
    assert run.coherence is None
    measured = coherence.measure(run.pk)
    assert 0.5 < measured < 1
    stored = RemediationRun.objects.get(pk=run.pk)
    assert stored.coherence == coherence.measure(run.pk) == measured
    assert stored.reward_record is not None and run.reward is not None
    assert stored.reward == stored.reward_record["reward"] == pytest.approx(run.reward - (1 - measured) / 2)


def test_the_text_before_a_rewrite_is_put_together_again(breaking: Dialog) -> None:
    talk(breaking, 40)
    run = RemediationRun.objects.filter(dialog=breaking).earliest("id")
    text = breaking.turns.filter(position__lte=run.base_position, role__in=("user", "assistant")).order_by("position")
    assert coherence.text_before(run) == "\n\n".join(text.values_list("text", flat=True))


def test_overflowing_dialogs_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        call_command("overflowing_dialogs", tmp_path / name, seed=7, number=2)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
