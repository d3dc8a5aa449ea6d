"""What is too long is told apart: a call that the output's limit cut off, and a request that a rate does not take."""

from typing import Any

import pytest

from dialogs.accounts import api_keys
from dialogs.context.limits import model_of
from dialogs.extras.v1 import conversations
from dialogs.extras.v1.ending import ended_by
from dialogs.extras.v1.history import ClientMessage
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.models import ApiKey, Turn
from dialogs.runtime.driver import drive
from dominds.llm.circuit_breaker import circuits
from remediation.models import ContextEvent, RemediationRun
from tests.dialogs.factories import AgentFactory, UserFactory
from tests.doubles.brains import Call, Reply, Scripted
from tests.flows.conftest import Serve, dialog_with, say

pytestmark = pytest.mark.django_db(transaction=True)

GREEN = (500, 7)
TOO_LARGE = Reply(
    error=(
        429,
        {
            "error": {
                "message": "Request too large for m on tokens per min (TPM): Limit 10000, Requested 40000. "
                "The input or output tokens must be reduced in order to run successfully.",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
    )
)
LINE = "The clerk of office {n} wrote that the {k}th cart of wool came late because the bridge was closed again. "
CUT = Reply("I read it.", calls=(Call("read_file", '{"path": "notes/lo'),), usage=GREEN, finish="length")


def test_a_call_cut_off_is_told_to_agent_and_person(serve: Serve, client: Any) -> None:
    server = serve(context_length=128_000)
    server.brain = Scripted(CUT, Reply("Then in parts.", usage=GREEN))
    dialog = dialog_with(server, tools=["read_file"])
    say(dialog, "Read my notes")
    assert dialog.state == "idle"
    told = server.bodies[1]["messages"][-1]
    assert told["role"] == "tool"
    assert "the output that you may make ended inside this call, after 18 characters" in told["content"]
    client.force_login(dialog.owner)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    assert "The call of read_file was cut off where the output ended, and was not run." in page


def test_a_call_that_was_cut_off_ends_by_length_over_v1(serve: Serve) -> None:
    server = serve(context_length=128_000)
    server.brain = Scripted(CUT)
    owner = UserFactory.create()
    api_keys.create_key(owner)
    agent = AgentFactory.create(provider="double", model=server.model, recall=False)
    tools = [{"name": "read_file", "description": "", "parameters": {"type": "object", "properties": {}}}]
    asked = ChatRequest(model=agent.pk, messages=(ClientMessage("user", "Read my notes"),), tools=tools)
    run = conversations.begin(ApiKey.objects.get(owner=owner), asked)
    drive(run.dialog_id)
    ended = ended_by(run, Turn.Status.ANSWERED)
    assert (ended.finish_reason, [call.arguments for call in ended.calls]) == ("length", ['{"path": "notes/lo'])


@pytest.mark.parametrize("helps", [True, False])
def test_too_large_for_a_rate_rewrites_once_and_ends(serve: Serve, helps: bool) -> None:
    server = serve(context_length=128_000)
    server.brain = Scripted(*[Reply(f"Noted {number}.", usage=GREEN) for number in range(6)], TOO_LARGE)
    dialog = dialog_with(server, context_policy="breaking")
    for number in range(6):
        say(dialog, "".join(LINE.format(n=number, k=k) for k in range(24)))
    if helps:
        server.brain = Scripted(TOO_LARGE, Reply("ok", usage=GREEN))
    say(dialog, "And now?")
    outcomes = list(dialog.generations.order_by("id").values_list("purpose", "outcome"))[6:]
    assert [one for one in outcomes if one[0] == "reply"] == [
        ("reply", "failed"),
        ("reply", "kept" if helps else "failed"),
    ]
    assert not [one for one in outcomes if one[0] == "forced_clear"]
    assert RemediationRun.objects.filter(dialog=dialog).count() == 1
    assert circuits.open_circuit(model_of(dialog)) is None
    codes = set(ContextEvent.objects.filter(dialog=dialog).values_list("code", flat=True))
    assert codes <= {ContextEvent.Code.RECOVERY_TRIGGERED}  # the rate is a quarter of the request; nothing overflowed
    assert (dialog.state, "Request too large for m" in dialog.failure) == (
        ("idle", False) if helps else ("failed", True)
    )


def test_too_large_for_a_rate_ends_where_nothing_can_be_rewritten(serve: Serve) -> None:
    server = serve(context_length=128_000)
    server.brain = Scripted(TOO_LARGE)
    dialog = dialog_with(server)
    say(dialog, "Hello")
    assert len(server.bodies) == 1
    assert (dialog.state, dialog.overflowed, dialog.wake_at) == ("failed", False, None)
    assert "The request has to become shorter, or the account's quota larger." in dialog.failure
