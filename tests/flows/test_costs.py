"""What a dialog costs: the sum on its page is the server's own, by its list."""

import re
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from dialogs.accounts.api_keys import create_key
from dialogs.models import Dialog
from tests.doubles.brains import Prompt, Reply
from tests.doubles.serving import Double
from tests.flows.conftest import Minds, say
from tests.flows.doubled import dialog_at, start

pytestmark = pytest.mark.django_db(transaction=True)

OPUS = "anthropic/claude-opus-5-5"  # 4 in, 20 out, 0.20 cached, by the shipped catalog


def asked_for(dialog: Dialog) -> Client:
    client = Client(headers={"Authorization": f"Bearer {create_key(dialog.owner)}"})
    client.force_login(dialog.owner)
    return client


def billed(double: Double) -> Decimal:
    """The server's own sum. A write to its cache costs 1.25 of the input, and no answer here is kept for an hour."""
    total = Decimal(0)
    for usage in (request.usage for request in double.requests if request.usage):
        total += 4 * usage["input_tokens"] + 20 * usage["output_tokens"]
        total += Decimal("0.20") * usage["cache_read_input_tokens"] + 5 * usage["cache_creation_input_tokens"]
    return total / 1_000_000


def talkative(prompt: Prompt) -> Reply:
    return Reply("A long answer that says the same again. " * 60)


def test_the_cost_on_the_page_is_the_servers_own_sum(minds: Minds, monkeypatch: Any) -> None:
    with start(OPUS, talkative) as double:
        dialog = dialog_at(double, minds, monkeypatch, OPUS, instructions="Keep to the log. " * 200)
        for text in ("one", "two", "three"):
            say(dialog, text)
        dialog.refresh_from_db()
        expected = billed(double)
    assert expected > 0
    client = asked_for(dialog)
    page = client.get(f"/d/{dialog.pk}/").content.decode()
    shown = re.search(r'<dt>Cost .*?<data value="([0-9.]+)">', page, re.DOTALL)
    assert shown is not None and Decimal(shown[1]) == expected
    api = client.get(f"/api/dialogs/{dialog.pk}").json()
    assert (Decimal(api["cost_usd"]), api["unpriced_generations"]) == (expected, 0)
    rows = client.get(f"/api/dialogs/{dialog.pk}/generations").json()
    assert sum(Decimal(row["cost_usd"]) for row in rows) == expected
    assert rows[-1]["cache_read_tokens"] > 0 and rows[0]["cache_write_tokens"] > 0
    sums = client.get(f"/api/dialogs/{dialog.pk}/statistics").json()["reported"]
    assert Decimal(sums["cost_usd"]) == expected
