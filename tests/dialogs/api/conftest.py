"""A program with a key, an agent and a dialog."""

import pytest

from dialogs.actions import messages
from dialogs.models import Agent, Dialog
from tests.dialogs.api.caller import Caller
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory


@pytest.fixture
def caller(script: Script) -> Caller:
    return Caller(UserFactory.create())


@pytest.fixture
def agent() -> Agent:
    return AgentFactory.create(id="coder")


@pytest.fixture
def dialog(caller: Caller, agent: Agent) -> Dialog:
    return messages.create_dialog(caller.owner, agent.pk, "A title")
