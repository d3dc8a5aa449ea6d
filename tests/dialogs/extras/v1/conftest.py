"""A key of a program, and an agent that repeats what it is told."""

import pytest

from dialogs.accounts import api_keys
from dialogs.models import ApiKey
from tests.dialogs.conftest import Script
from tests.dialogs.extras.v1.conversing import ANSWER
from tests.dialogs.factories import AgentFactory, UserFactory


@pytest.fixture
def key() -> ApiKey:
    user = UserFactory.create()
    api_keys.create_key(user)
    return ApiKey.objects.get(owner=user)


@pytest.fixture
def agent(script: Script) -> str:
    script(ANSWER)
    return str(AgentFactory.create().pk)
