"""What a key may be used for, how long it holds, and that its use is noted."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dialogs.accounts.api_keys import create_key, key_of
from dialogs.actions import messages
from dialogs.models import ApiKey, Dialog, EmbeddingUse
from tests.dialogs.browsing import browser_of
from tests.dialogs.calls import generation
from tests.dialogs.factories import AgentFactory, UserFactory

pytestmark = pytest.mark.django_db


def asked(key: str, method: str, path: str, body: Any = None) -> tuple[int, str]:
    answer = Client(headers={"Authorization": f"Bearer {key}"}).generic(
        method, path, "" if body is None else body, content_type="application/json"
    )
    error = answer.json().get("error", {}) if isinstance(answer.json(), dict) else {}
    return answer.status_code, error.get("code", "")


@pytest.mark.extras
@pytest.mark.parametrize(
    ("scope", "reads", "opens", "lists_models"),
    [("all", 200, 201, 200), ("read", 200, 403, 403), ("v1", 403, 403, 200)],
)
def test_a_key_is_for_what_its_scope_says(scope: str, reads: int, opens: int, lists_models: int) -> None:
    key = create_key(UserFactory.create(), scope=scope)
    body = f'{{"agent": "{AgentFactory.create().pk}"}}'
    calls = [
        ("GET", "/api/dialogs", None, reads),
        ("POST", "/api/dialogs", body, opens),
        ("GET", "/v1/models", None, lists_models),
    ]
    for method, path, given, status in calls:
        assert asked(key, method, path, given) == (status, "key_scope" if status == 403 else "")


def test_a_key_ends_and_its_use_is_noted_once_a_minute() -> None:
    key = create_key(UserFactory.create(), days=1)
    assert key_of(key) is not None
    assert ApiKey.objects.get().last_used_at is not None
    earlier = timezone.now() - timedelta(seconds=50)
    ApiKey.objects.update(last_used_at=earlier)
    assert key_of(key) is not None
    assert ApiKey.objects.get().last_used_at == earlier
    ApiKey.objects.update(last_used_at=earlier - timedelta(seconds=20))
    assert key_of(key) is not None
    noted_at = ApiKey.objects.get().last_used_at
    assert noted_at is not None and noted_at > earlier
    ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert key_of(key) is None


@pytest.mark.extras
def test_a_key_spends_no_more_in_a_month_than_its_budget() -> None:
    """Its dialogs by /v1 count, and its embeddings; those of other keys do not, nor what was before this month."""
    owner, agent = UserFactory.create(), AgentFactory.create()
    key = create_key(owner, scope="v1", budget_usd=Decimal("0.75"))
    row = key_of(key)
    assert row is not None
    dialog = messages.create_dialog(owner, agent.pk, origin="key")
    generation(dialog, cost_usd=Decimal("0.5"), key=row)
    generation(dialog, cost_usd=Decimal("9"), key=row, ago=timedelta(days=32))
    generation(messages.create_dialog(owner, agent.pk), cost_usd=Decimal("9"))
    used: dict[str, Any] = {
        "person": owner,
        "began_at": timezone.now(),
        "agent": agent.pk,
        "provider": "p",
        "model": "m",
    }
    EmbeddingUse.objects.create(**used, key=key_of(create_key(owner)), cost_usd="9")
    assert asked(key, "POST", "/v1/embeddings", "{}") == (404, "model_not_found")
    EmbeddingUse.objects.create(**used, key=row, cost_usd="0.25")
    for path in ("embeddings", "chat/completions", "responses"):
        assert asked(key, "POST", f"/v1/{path}", "{}") == (429, "budget_exceeded")
    assert asked(key, "GET", "/v1/models")[0] == 200
    browser = Client()
    browser.force_login(owner)
    page = browser.get("/settings/keys/").content.decode()
    assert '<data value="0.75">$0.75</data> <span class="muted">of <data value="0.75">' in " ".join(page.split())
    ApiKey.objects.filter(pk=row.pk).update(budget_usd=Decimal("0.76"))
    assert asked(key, "POST", "/v1/embeddings", "{}") == (404, "model_not_found")


def test_what_a_key_opens_is_a_programs() -> None:
    owner, agent = UserFactory.create(), AgentFactory.create()
    assert asked(create_key(owner), "POST", "/api/dialogs", f'{{"agent": "{agent.pk}"}}')[0] == 201
    browser = Client()
    browser.force_login(owner)
    messages.create_dialog(owner, agent.pk)
    assert list(Dialog.objects.order_by("created_at").values_list("origin", flat=True)) == ["key", "person"]
    Dialog.objects.create(owner=owner, agent=agent, origin="background", title="A title for Rome")
    shown = {
        origin: browser.get("/dialogs/", {"origin": origin}).content.decode().count("data-row")
        for origin in ("", "person", "key", "background")
    }
    assert shown == {"": 2, "person": 1, "key": 1, "background": 1}
    assert "A title for Rome" not in browser.get("/dialogs/").content.decode()


@pytest.mark.parametrize("given", ["-1", "abc", "1e9", "0.001", "NaN"])
def test_a_budget_that_is_none_is_refused_with_what_is_allowed(given: str) -> None:
    page = browser_of(UserFactory.create()).post("/settings/keys/", {"name": "x", "budget_usd": given}).content.decode()
    assert f"found “{given}”. Give an amount in USD from 0 to 1,000,000, such as 2.50." in page
    assert not ApiKey.objects.filter(name="x").exists()
