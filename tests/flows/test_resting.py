"""A pruning model that fails for everybody is not called for a while, as any other;
the compaction goes on without it."""

from collections.abc import Iterator
from typing import Any

import pytest

from dialogs.context.limits import model_of
from dialogs.models import Agent, Dialog, SiteSettings
from dominds.llm.circuit_breaker import FAILURES, circuits
from dominds.llm.provider import Overloaded
from remediation.models import ContextEvent, RemediationRun
from tests.dialogs.factories import AgentFactory
from tests.doubles.brains import Reply
from tests.doubles.local_servers import LMStudioDouble, LocalDouble
from tests.flows.conftest import Minds, Serve, dialog_with, say

pytestmark = pytest.mark.django_db(transaction=True)

DOWN = Reply(error=(503, {"error": {"message": "The pruner is down."}}))


@pytest.fixture
def chat(serve: Serve) -> LocalDouble:
    server = serve(window=8_000, api_type="lmstudio")
    server.brain = lambda _: Reply("Understood.")
    return server


@pytest.fixture
def broken(chat: LocalDouble, minds: Minds) -> Iterator[LocalDouble]:
    """The pruning agent of the settings, whose server is down."""
    with LMStudioDouble(lambda _: DOWN, model="mistral-7b-instruct", window=8_000) as server:
        minds.providers["other"] = {"apiType": "lmstudio", "baseUrl": f"{server.url}/v1", "models": {server.model: {}}}
        minds.write()
        SiteSettings.objects.create(pruning_agent=AgentFactory.create(provider="other", model=server.model))
        yield server


def talked_until_compacted(chat: LocalDouble) -> Dialog:
    line = "The clerk of office {n} wrote that the {k}th cart of wool came late because the bridge was closed again. "
    dialog = dialog_with(chat)
    for number in range(8):
        say(dialog, "".join(line.format(n=number, k=k) for k in range(45)))
        if RemediationRun.objects.filter(dialog=dialog).exists():
            return dialog
    raise AssertionError("eight long messages should have been compacted")


def how_it_went(dialog: Dialog) -> tuple[Any, ...]:
    run = RemediationRun.objects.filter(dialog=dialog).latest("id")
    failed = ContextEvent.objects.filter(dialog=dialog, code=ContextEvent.Code.PRUNER_FAILED).exists()
    answered = set(dialog.turns.filter(role="user").values_list("status", flat=True)) == {"answered"}
    return run.steps[-1]["strategy"], failed, answered, dialog.state


def test_a_pruning_model_that_failed_often_is_not_asked(chat: LocalDouble, broken: LocalDouble) -> None:
    pruning = model_of(Agent.objects.get(provider="other"))
    dialogs = [talked_until_compacted(chat) for _ in range(FAILURES)]
    asked = list(broken.bodies)  # for a pruning and, when it failed, for a summary
    assert len(asked) == FAILURES, "side calls should count for the rest"
    circuits.note(pruning, Overloaded("The pruner is down.", retry_after_seconds=60))  # however slow this test is
    resting = talked_until_compacted(chat)
    assert len(broken.bodies) == len(asked), "a model at rest is not asked"
    assert how_it_went(resting) == how_it_went(dialogs[0]) == ("fallback", True, True, "idle")
    assert not resting.generations.filter(purpose="prune").exists()
    assert "is not called for now" in RemediationRun.objects.get(dialog=resting).steps[-1]["note"]
