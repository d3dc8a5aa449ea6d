"""Costs of the whole server, by day, model, agent and person."""

from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone

from dialogs.actions.messages import create_dialog
from dialogs.models import EmbeddingUse
from dialogs.operations.costs import Cost, tables
from tests.dialogs.browsing import browser_of
from tests.dialogs.factories import AgentFactory, UserFactory, make_dialog, make_operator
from tests.dialogs.operations.test_dashboard import generation

pytestmark = pytest.mark.django_db


def test_the_same_calls_are_summed_four_times() -> None:
    anna, ben = UserFactory.create(username="anna"), UserFactory.create(username="ben")
    agent = AgentFactory.create()
    first, second = create_dialog(anna, agent.pk), create_dialog(ben, agent.pk)
    generation(first, prompt_tokens=1_000, completion_tokens=10, cache_read_tokens=800, cost_usd=Decimal("0.25"))
    generation(first, prompt_tokens=None, completion_tokens=None)
    generation(first, outcome="failed", prompt_tokens=None, completion_tokens=None)
    generation(second, prompt_tokens=100, completion_tokens=1, cost_usd=Decimal("1.5"))
    today = timezone.now().date()
    EmbeddingUse.objects.create(
        person=ben, day=today, agent=agent.pk, provider="test", model="model", calls=2, prompt_tokens=30, cost_usd="0.5"
    )
    day, model, _, person = tables()
    every = Cost(6, 1_130, 800, 11, Decimal("2.25"), 1)
    assert day.rows == [(timezone.now().date().isoformat(), every)]
    assert model.rows == [("test/model", every)]
    assert person.rows == [
        ("ben", Cost(3, 130, 0, 1, Decimal("2.0"), 0)),
        ("anna", Cost(3, 1_000, 800, 10, Decimal("0.25"), 1)),
    ]


def test_the_page_is_for_operators(client: Client) -> None:
    generation(make_dialog(), cost_usd=Decimal("0.25"))
    page = browser_of(make_operator()).get("/ops/costs/").content.decode()
    assert '<data value="0.25">$0.2500</data>' in page
    client.force_login(UserFactory.create())
    assert client.get("/ops/costs/").status_code == 404
