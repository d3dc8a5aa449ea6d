"""Two groups on one server, asked by programs: every tool of ``/mcp``, every call of ``/api``,
statistics and notices."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client

from dialogs.accounts.api_keys import create_key
from dialogs.api.application import api
from dialogs.extras.notices import deliveries
from dialogs.extras.v1.mcp.server import READS, TOOLS
from dialogs.models import Delivery, Dialog, Generation, PushSubscription, Question, SiteSettings, Turn
from remediation.models import RemediationRun
from tests.dialogs.browsing import browser_of
from tests.security.conftest import Camp

pytestmark = pytest.mark.django_db(transaction=True)

NOTHING = "There is no such thing, or it is not yours."
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}


def stored_of(one: Camp) -> list[Any]:
    """All rows that a call could change."""
    rows: tuple[type[Model], ...] = (Turn, Generation, Delivery, RemediationRun)
    return [
        Dialog.objects.filter(pk=one.dialog.pk).values().get(),
        list(one.dialog.questions.values()),
        list(one.dialog.reminders.values()),
        [list(model._default_manager.order_by("pk").values()) for model in rows],
        Dialog.objects.count(),
    ]


# -- /mcp --------------------------------------------------------------------------------------------------------------


# What each tool is asked about a camp, once or more. A new tool has to stand here, or the first test fails.
ASKED: dict[str, Callable[[Camp], list[dict[str, Any]]]] = {
    "list_dialogs": lambda one: [{"limit": 50}],
    "read_health": lambda one: [{"dialog": str(one.dialog.pk)}],
    "search_dialogs": lambda one: [
        {"query": one.word},
        {"query": one.word, "everything": True},
        {"query": one.word, "dialog": str(one.dialog.pk)},
    ],
    "read_turns": lambda one: [{"dialog": str(one.dialog.pk)}],
    "search_archive": lambda one: [{"dialog": str(one.dialog.pk)}, {"dialog": str(one.dialog.pk), "query": one.word}],
    "read_archived_unit": lambda one: [{"dialog": str(one.dialog.pk), "unit": one.unit.pk}],
    "list_questions": lambda one: [{}, {"state": None}],
    "read_question": lambda one: [{"question": str(one.question.pk)}],
    "list_reminders": lambda one: [{"dialog": str(one.dialog.pk)}],
    "answer_question": lambda one: [{"question": str(one.question.pk), "text": "EUR"}],
    "resolve_question": lambda one: [{"question": str(one.question.pk), "way": {"action": "close"}}],
    "ask_human": lambda one: [{"text": "Which?", "dialog": str(one.dialog.pk)}],
    "add_reminder": lambda one: [{"dialog": str(one.dialog.pk), "text": "Psst"}],
    "remove_reminder": lambda one: [{"dialog": str(one.dialog.pk), "reminder": one.reminder.pk}],
}


def call(key: str, tool: str, arguments: dict[str, Any]) -> tuple[bool, str]:
    """Whether it succeeded, and its text."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {**MCP_HEADERS, "Authorization": f"Bearer {key}"}
    answer = Client().post("/mcp", orjson.dumps(body), "application/json", headers=headers)
    result = answer.json()["result"]
    return not result["isError"], result["content"][0]["text"]


def test_every_tool_is_asked() -> None:
    assert set(ASKED) == set(TOOLS)


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_a_tool_knows_nothing_of_the_other_group(camps: tuple[Camp, Camp], tool: str) -> None:
    for own, other in (camps, camps[::-1]):
        before = stored_of(other)
        for arguments in ASKED[tool](other):
            names_something = {"dialog", "question"} & set(arguments)
            for person in (own.owner, own.member):
                answer, text = call(create_key(person), tool, arguments)
                assert not [mark for mark in other.marks if mark in text], text
                assert (answer, text) == (False, NOTHING) if names_something else answer, text
                if tool in READS:
                    assert call(create_key(person, scope="read"), tool, arguments) == (answer, text)
        assert stored_of(other) == before


@pytest.mark.parametrize("tool", sorted(READS))
def test_a_tool_tells_members_of_their_own_group(camps: tuple[Camp, Camp], tool: str) -> None:
    own, _ = camps
    for arguments in ASKED[tool](own):
        answer, text = call(create_key(own.member), tool, arguments)
        assert answer
        assert [mark for mark in own.marks if mark in text], text


# -- /api --------------------------------------------------------------------------------------------------------------


def calls_of_api() -> Iterator[tuple[str, str]]:
    for prefix, router in api._routers:
        for path, view in router.path_operations.items():
            for operation in view.operations:
                for method in operation.methods:
                    yield method, prefix + path


CALLS = sorted(calls_of_api())
READING_CALLS = [path for method, path in CALLS if method == "GET"]


def test_no_call_of_the_api_knows_anything_of_the_other_group(camps: tuple[Camp, Camp]) -> None:
    for own, other in (camps, camps[::-1]):
        named = {"dialog_id": other.dialog.pk, "question_id": other.question.pk, "run_id": other.unit.run_id}
        named |= {"seq": 1, "sha256": "0" * 64, "generation_id": other.dialog.generations.get().pk, "reminder_id": 1}
        keys = [create_key(person, scope=scope) for person in (own.owner, own.member) for scope in ("all", "read")]
        for path in READING_CALLS:
            address = "/api" + re.sub(r"{(?:\w+:)?(\w+)}", lambda value: str(named[value[1]]), path)  # noqa: B023
            for query in (f"?q={other.word}&with=1", f"?q={other.word}&all=true&state=open&limit=50&with=1"):
                for key in keys:
                    answer = Client().get(address + query, headers={"Authorization": f"Bearer {key}"})
                    assert answer.status_code == (404 if "{" in path else 200), answer.content
                    text = answer.content.decode()
                    assert not [mark for mark in other.marks if mark in text], text


# -- Statistics --------------------------------------------------------------------------------------------------------


def test_statistics_count_nothing_of_the_other_group(camps: tuple[Camp, Camp], settings: Any) -> None:
    settings.LOOPBACK_ONLY = False
    for own, other in (camps, camps[::-1]):
        of_other = (f"person={other.owner.username}", f"agent={other.dialog.agent_id}", "day=2000-01-01")
        for person, number in ((own.owner, own.dialog.generations.count()), (own.member, 0)):
            client = browser_of(person)
            assert calls_counted(client, "") == number
            for query in (*of_other, "&".join(of_other)):
                assert calls_counted(client, query) == (number if query == of_other[0] else 0), query
            page = client.get("/statistics/")
            assert not [mark for mark in other.marks if mark in page.content.decode()]
            assert other.dialog.pk not in {one.dialog_id for one in page.context["calls"]}
            assert client.get("/ops/").status_code == 404
            key = {"Authorization": f"Bearer {create_key(person)}"}
            assert {client.get("/metrics").status_code, Client().get("/metrics", headers=key).status_code} == {404}


def calls_counted(client: Client, query: str) -> int:
    """In each table of the page the same."""
    tables = client.get(f"/statistics/?{query}").context["tables"]
    (number,) = {sum(cost.calls for _, cost, *_ in lines) for _, lines, _ in tables}
    return int(number)


# -- Notices -----------------------------------------------------------------------------------------------------------


def escalated(one: Camp) -> None:
    SiteSettings.objects.update(question_deadline_minutes=1)
    one.dialog.questions.update(created_at=one.question.created_at - timedelta(hours=1))
    assert deliveries.escalate() == 1


# What makes each event happen in a camp. A new event has to stand here, or the first test fails.
EVENTS: dict[str, Callable[[Camp], object]] = {
    deliveries.OPENED: lambda one: deliveries.question_opened(one.question),
    deliveries.OVERDUE: escalated,
    deliveries.CLOSED: lambda one: deliveries.question_closed(one.question),
    deliveries.LEVEL: lambda one: deliveries.level_changed(one.dialog, "critical"),
    deliveries.REWRITTEN: lambda one: deliveries.rewritten(one.dialog, one.unit.run),
}


def test_every_event_and_channel_is_tried(camps: tuple[Camp, Camp]) -> None:
    assert set(EVENTS) == {
        event for name, event in vars(deliveries).items() if name.isupper() and isinstance(event, str)
    }
    assert set(Delivery.Channel.values) == set(deliveries.SENDERS) == {"mail", "webhook", "push"}


@pytest.mark.parametrize("event", EVENTS)
def test_a_notice_reaches_who_is_asked_and_opens_to_their_group(
    camps: tuple[Camp, Camp], event: str, settings: Any
) -> None:
    settings.MAIL_FROM, settings.PUBLIC_URL = "dominds@example.org", "https://dominds.example.org"
    SiteSettings.objects.create(webhook_url="https://hooks.example.org/dominds")
    for number, person in enumerate(User.objects.all()):
        User.objects.filter(pk=person.pk).update(email=f"{number}@example.org")
        PushSubscription.objects.create(user=person, address=f"https://push.example.org/{number}")
    own, other = camps
    other.dialog.questions.update(state=Question.State.CANCELLED)
    own.dialog = Dialog.objects.whole().get(pk=own.dialog.pk)
    own.question = Question.objects.select_related("dialog__owner", "dialog__agent").get(pk=own.question.pk)
    Delivery.objects.all().delete()
    EVENTS[event](own)
    rows = list(Delivery.objects.select_related("subscription"))
    channels = {"mail", "push", "webhook"} if event in (deliveries.OPENED, deliveries.OVERDUE) else {"webhook"}
    assert {row.channel for row in rows} == channels
    for row in rows:
        assert row.event == event
        if row.channel != "webhook":
            assert row.person == own.owner
            assert row.subscription is None or row.subscription.user == own.owner
            continue
        assert not [mark for mark in other.marks if mark in row.body]
        path = orjson.loads(row.body)["path"]
        statuses = [
            browser_of(person).get(path).status_code for person in (own.owner, own.member, other.owner, other.member)
        ]
        assert statuses == [200, 200, 404, 404], path


def test_nobody_but_operators_reads_or_moves_the_webhook(camps: tuple[Camp, Camp]) -> None:
    address = "https://hooks.example.org/dominds"
    SiteSettings.objects.create(webhook_url=address)
    for one in camps:
        for person in (one.owner, one.member):
            client = browser_of(person)
            assert address not in client.get("/settings/").content.decode()
            client.post("/settings/site/", {"webhook_url": "https://elsewhere.example.org/"})
            assert client.get("/admin/dialogs/delivery/").status_code == 302
    assert SiteSettings.current().webhook_url == address
