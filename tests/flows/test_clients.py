"""Clients of ``/v1`` before a model server: what is counted and asked for them is so before a row is locked."""

from typing import Any
from uuid import UUID

import pytest

from dialogs.accounts import api_keys
from dialogs.errors import TooLarge
from dialogs.extras.v1 import conversations
from dialogs.extras.v1.history import Call as ClientCall
from dialogs.extras.v1.history import ClientMessage
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.models import Agent, ApiKey, Artifact, Turn
from dialogs.runtime.driver import drive
from tests.dialogs.factories import AgentFactory, UserFactory
from tests.doubles.brains import Call, Reply
from tests.flows.conftest import Serve
from tests.harness import transactions

pytestmark = pytest.mark.django_db(transaction=True)

NO_ARGUMENTS = {"type": "object", "properties": {}}
TOOLS: list[dict[str, Any]] = [{"name": "read_log", "description": "", "parameters": NO_ARGUMENTS}]
ASKED = ClientMessage("user", "What is in the log?")
RESULT = "A line of the log, about the weather.\n" * 4_000


def calling(**call: str) -> ClientMessage:
    return ClientMessage("assistant", "Let me look.", (ClientCall(**call),))


def agent_and_key(serve: Serve) -> tuple[Agent, ApiKey]:
    """The agent's policy counts what comes from tools."""
    server = serve(window=8_000, api_type="lmstudio")
    server.brain = lambda prompt: (
        Reply("Let me look.", calls=(Call("read_log", {}),)) if len(prompt.messages) < 4 else Reply("I see.")
    )
    owner = UserFactory.create()
    api_keys.create_key(owner)
    agent = AgentFactory.create(provider="double", model=server.model, context_policy="autocompaction", recall=False)
    return agent, ApiKey.objects.get(owner=owner)


def assert_noted(key: ApiKey, agent: Agent, *words: ClientMessage) -> UUID:
    """The result that ends what is said gets a note in its place, and nothing is counted within a transaction."""
    with transactions.watched() as ended:
        run = conversations.begin(key, ChatRequest(model=agent.pk, messages=words, tools=TOOLS))
    assert ended
    assert not [one for one in ended if one.slow]
    kept = Turn.objects.get(dialog=run.dialog_id, tool_call_id=words[-1].call_id)
    assert (kept.status, len(kept.text) < 1_000) == ("error", True)
    assert "whole context is" in kept.text
    assert Artifact.objects.get(dialog=run.dialog_id).text == RESULT
    return run.dialog_id


def test_a_result_is_judged_before_the_row_is_locked(serve: Serve) -> None:
    """It was counted inside, while all other writers of the embedded default waited."""
    agent, key = agent_and_key(serve)
    run = conversations.begin(key, ChatRequest(model=agent.pk, messages=(ASKED,), tools=TOOLS))
    drive(run.dialog_id)
    call = Turn.objects.get(dialog=run.dialog_id, role=Turn.Role.ASSISTANT).tool_calls[0]  # type: ignore[index]
    texts = (ASKED, calling(**call), ClientMessage("tool", RESULT, call_id=call["id"]))
    assert assert_noted(key, agent, *texts) == run.dialog_id


def test_a_result_of_a_new_conversation_is_judged_alike(serve: Serve) -> None:
    agent, key = agent_and_key(serve)
    assert_noted(
        key,
        agent,
        ASKED,
        calling(id="c1", name="read_log", arguments="{}"),
        ClientMessage("tool", RESULT, call_id="c1"),
    )


def test_a_message_that_is_too_large_is_refused_before_anything_is_locked(serve: Serve) -> None:
    """It was counted inside, in a dialog that had been made for it."""
    agent, key = agent_and_key(serve)
    with transactions.watched() as ended, pytest.raises(TooLarge):
        conversations.begin(key, ChatRequest(model=agent.pk, messages=(ClientMessage("user", RESULT),), tools=TOOLS))
    assert not ended
