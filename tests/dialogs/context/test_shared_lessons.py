"""What one process learned from a model's refusal, the others know, and so do those that start later."""

from collections.abc import Iterator
from typing import Any

import pytest

from dialogs.context import connected
from dominds.llm.models import learned
from dominds.llm.models.model import Echo
from dominds.llm.provider import StaleReasoning
from dominds.llm.providers.openai_chat import OPENAI_COMPATIBLE
from tests.dominds.llm.asking import info

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _another_process(redis_client: Any) -> Iterator[None]:
    yield
    learned.forget()
    connected.forget()


@pytest.mark.parametrize("starts_later", [True, False])
def test_a_lesson_reaches_other_processes(redis_client: Any, starts_later: bool) -> None:
    model = info(OPENAI_COMPATIBLE)
    connected.connected()
    before = connected._known
    learned.learn(model, StaleReasoning("The reasoning_content in the thinking mode must be passed back to the API."))
    connected.share_learned(model)

    learned.forget()
    connected._known = None if starts_later else before
    connected.follow()
    connected.connected()
    assert learned.with_learned(model).echo is Echo.CALLS


def test_damage_in_the_store_ends_nothing(redis_client: Any) -> None:
    redis_client.hset(connected.LEARNED, mapping={b"[1": b"{", b'["p","m"]': b'["x"]'})
    connected.forget()
    connected.connected()
    assert connected._known is not None
