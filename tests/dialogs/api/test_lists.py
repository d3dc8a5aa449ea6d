"""Pages of lists and numbered events."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from dialogs.actions import messages
from dialogs.models import Agent, Dialog, SiteSettings
from tests.dialogs.api.caller import Caller, code_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import send

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("path", ["turns", "generations", "events"])
@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "limit=-1", "after=-1", "after=x", "after=99999999999", "after=1.5"]
)
def test_a_bad_window_is_invalid(caller: Caller, dialog: Dialog, path: str, query: str) -> None:
    answer = caller("GET", f"/dialogs/{dialog.pk}/{path}?{query}")
    assert code_of(answer) == (400, "invalid")
    assert answer[1]["error"]["message"].startswith(query.partition("=")[0])


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
def test_pages_put_together_are_the_list(caller: Caller, agent: Agent, script: Script, limit: int) -> None:
    dialogs = [messages.create_dialog(caller.owner, agent.pk, str(number)) for number in range(5)]
    dialog = dialogs[0]
    send(dialog, *"abc")
    for path, key in (
        (f"/dialogs/{dialog.pk}/turns", "seq"),
        (f"/dialogs/{dialog.pk}/generations", "id"),
        (f"/dialogs/{dialog.pk}/events", "seq"),
        ("/dialogs", "id"),
    ):
        whole, pages, after = caller.get(f"{path}?limit=1000"), [], ""
        while page := caller.get(f"{path}?limit={limit}{after}"):
            assert len(page) <= limit
            pages += page
            after = f"&after={page[-1][key]}"
        assert pages == whole
        assert len(whole) >= 3
    assert {row["title"] for row in caller.get("/dialogs")} == set("01234")


def test_dialogs_of_one_moment_are_paged_each_once(caller: Caller, agent: Agent) -> None:
    """As the clock of SQLite writes it: Django would write the same moment without its thousandths."""
    for number in range(4):
        messages.create_dialog(caller.owner, agent.pk, str(number))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE dialogs_dialog SET created_at = '2026-11-27 12:00:00.000Z'")
    rows, after = list[dict[str, Any]](), ""
    while len(rows) < 9 and (page := caller.get(f"/dialogs?limit=1{after}")):
        rows += page
        after = f"&after={page[-1]['id']}"
    assert sorted(row["title"] for row in rows) == list("0123")


def test_an_after_that_the_list_has_not_is_invalid(caller: Caller) -> None:
    assert code_of(caller("GET", f"/dialogs?after={uuid4()}")) == (400, "invalid")
    assert code_of(caller("GET", "/dialogs?after=7")) == (400, "invalid")


def test_events_are_numbered_without_gaps_and_turns_come_whole(caller: Caller, dialog: Dialog) -> None:
    send(dialog, "Hi")
    result = caller.get(f"/dialogs/{dialog.pk}/events")
    assert [row["seq"] for row in result] == list(range(1, len(result) + 1))
    texts = [row["data"]["text"] for row in result if row["type"] == "turn" and row["data"]["role"] == "assistant"]
    assert texts == ["Hello."]
    assert caller.get(f"/dialogs/{dialog.pk}/events?after={result[-2]['seq']}") == result[-1:]


def test_cursors_of_another_database_are_refused(caller: Caller, dialog: Dialog) -> None:
    """A restored database counts anew: to wait for the next number would skip what happens until then."""
    messages.post_message(dialog.pk, "Hi")
    events = caller.get(f"/dialogs/{dialog.pk}/events")
    last = events[-1]["seq"]
    assert caller.get(f"/dialogs/{dialog.pk}/events?after={last}") == []
    assert code_of(caller("GET", f"/dialogs/{dialog.pk}/events?after={last + 1}")) == (409, "resync")
    assert caller.get(f"/dialogs/{dialog.pk}/turns?after=1") == []
    assert code_of(caller("GET", f"/dialogs/{dialog.pk}/turns?after=2")) == (409, "resync")
    SiteSettings.objects.create(generation="restored")
    assert code_of(caller("GET", f"/dialogs/{dialog.pk}/events?after=1&of=before")) == (409, "resync")
    assert caller.get(f"/dialogs/{dialog.pk}/events?after=0&of=restored") == events
