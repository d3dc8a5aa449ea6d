"""Clients of ``/v1`` before a model server: what is counted and asked for them is so before a row is locked."""

from typing import Any

import pytest

from dialogs.accounts import api_keys
from dialogs.models import ApiKey, Artifact, Turn
from dialogs.openai_api import conversations
from dialogs.openai_api.history import Call as ClientCall
from dialogs.openai_api.history import ClientMessage
from dialogs.openai_api.parsing import ChatRequest
from dialogs.runtime.driver import drive
from tests.dialogs.factories import AgentFactory, UserFactory
from tests.doubles.brains import Call, Reply
from tests.flows.conftest import Serve
from tests.harness import transactions

pytestmark = pytest.mark.django_db(transaction=True)

NO_ARGUMENTS = {"type": "object", "properties": {}}
TOOLS: list[dict[str, Any]] = [{"name": "read_log", "description": "", "parameters": NO_ARGUMENTS}]
ASKED = ClientMessage("user", "What is in the log?")


def test_a_result_is_judged_before_the_row_is_locked(serve: Serve) -> None:
    """It was counted inside, while all other writers of the embedded default waited."""
    server = serve(window=8_000, api_type="lmstudio")
    server.brain = lambda prompt: (
        Reply("Let me look.", calls=(Call("read_log", {}),)) if len(prompt.messages) < 4 else Reply("I see.")
    )
    owner = UserFactory.create()
    agent = AgentFactory.create(provider="double", model=server.model, context_policy="autocompaction", recall=False)
    api_keys.create_key(owner)
    key = ApiKey.objects.get(owner=owner)
    run = conversations.begin(key, ChatRequest(model=agent.pk, messages=(ASKED,), tools=TOOLS))
    drive(run.dialog_id)
    answer = Turn.objects.get(dialog=run.dialog_id, role=Turn.Role.ASSISTANT)
    call = answer.tool_calls[0]
    result = ClientMessage("tool", "A line of the log, about the weather.\n" * 4_000, call_id=call["id"])
    said = (
        ASKED,
        ClientMessage("assistant", answer.text, (ClientCall(call["id"], call["name"], call["arguments"]),)),
        result,
    )
    with transactions.watched() as ended:
        again = conversations.begin(key, ChatRequest(model=agent.pk, messages=said, tools=TOOLS))
    assert again.dialog_id == run.dialog_id
    assert ended
    assert not [one for one in ended if one.slow]
    kept = Turn.objects.get(dialog=run.dialog_id, role=Turn.Role.TOOL)
    assert len(kept.text) < 1_000, "the policy put a note in its place"
    assert Artifact.objects.get(dialog=run.dialog_id).text == result.text
