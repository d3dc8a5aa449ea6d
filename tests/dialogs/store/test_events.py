"""Events keep their numbers, data and times, however many of them share a row."""

import itertools
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialogs.actions import messages
from dialogs.context.limits import health_of
from dialogs.models import Dialog, Event
from dialogs.store import events, json_shapes
from dialogs.store.change import open_change
from tests.dialogs.conftest import Script
from tests.dialogs.event_lists import event_data, events_of
from tests.dialogs.factories import AgentFactory, UserFactory, make_dialog, send

pytestmark = pytest.mark.django_db

NewEvent = tuple[str, dict[str, Any]]


def store(dialog: Dialog, *drafts: NewEvent) -> None:
    """One change to the dialog, with these events."""
    with open_change(dialog.pk) as change:
        change.keeps_state = True
        for kind, data in drafts:
            change.event(kind, **data)


def notices(count: int, first: int = 1, chars: int = 3) -> list[NewEvent]:
    return [("notice", {"text": f"{number}".ljust(chars, ".")}) for number in range(first, first + count)]


def texts(rows: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(event["seq"], event["data"]["text"].rstrip(".")) for event in rows]


@pytest.fixture
def dialog() -> Dialog:
    return make_dialog()


def test_several_changes_share_a_row(dialog: Dialog) -> None:
    for first in (1, 4, 7):
        store(dialog, *notices(3, first))
    assert Event.objects.filter(dialog=dialog).count() == 1
    assert texts(events_of(dialog)) == [(number, str(number)) for number in range(1, 10)]


def test_a_reader_who_stands_within_a_row_gets_what_follows(dialog: Dialog) -> None:
    """A limit counts events, not rows. The events are in two rows, and the tenth is the last."""
    store(dialog, *notices(2), *notices(4, 3, chars=events.FULL // 4))
    store(dialog, *notices(4, 7))
    assert list(Event.objects.filter(dialog=dialog).values_list("seq", flat=True)) == [1, 7]
    for after, limit in itertools.product(range(11), (1, 2, 100)):
        wanted = [(number, str(number)) for number in range(after + 1, min(10, after + limit) + 1)]
        assert texts(events.after(dialog.pk, after, limit)) == wanted, (after, limit)


def test_a_dialog_reads_nothing_of_another(dialog: Dialog) -> None:
    other = make_dialog()
    store(other, *notices(4))
    assert events.after(dialog.pk, 0) == []
    store(dialog, *notices(2))
    assert events.after(dialog.pk, 99_999) == []
    assert [len(events_of(one)) for one in (dialog, other)] == [2, 4]


def test_rows_do_not_grow_without_end(dialog: Dialog) -> None:
    for first in range(1, 200, 4):
        store(dialog, *notices(4, first, chars=20))
    rows = list(Event.objects.filter(dialog=dialog).values_list("more", flat=True))
    assert 10 < len(rows) < 40
    assert max(map(len, rows)) < events.FULL + 300
    assert texts(events_of(dialog)) == [(number, str(number)) for number in range(1, 201)]


def test_a_conversation_that_is_taken_over_fills_many_rows_at_once(dialog: Dialog) -> None:
    store(dialog, *notices(2_000))
    assert Event.objects.filter(dialog=dialog).count() > 40
    assert texts(events.after(dialog.pk, 1_234, 3)) == [(1_235, "1235"), (1_236, "1236"), (1_237, "1237")]


def test_what_is_thrown_away_leaves_no_event(dialog: Dialog) -> None:
    store(dialog, *notices(2))
    with pytest.raises(RuntimeError), transaction.atomic():
        store(dialog, *notices(2, 3))
        raise RuntimeError
    store(dialog, *notices(1, 3))
    assert texts(events_of(dialog)) == [(1, "1"), (2, "2"), (3, "3")]


def test_events_of_one_change_share_a_time_before_later_ones(dialog: Dialog) -> None:
    store(dialog, *notices(2))
    Event.objects.filter(dialog=dialog).update(created_at=Event.objects.get().created_at - timedelta(hours=30))
    store(dialog, *notices(2, 3))
    first, second, third, fourth = (event.created_at for event in events.read(dialog.pk, 0, 10)[0])
    assert (first, third) == (second, fourth)
    assert timedelta(0) <= third - first - timedelta(hours=30) < timedelta(seconds=20)
    assert events_of(dialog)[3]["created_at"] == json_shapes.when(fourth)


def test_a_clock_that_was_set_back_makes_no_earlier_event(dialog: Dialog) -> None:
    store(dialog, *notices(1))
    Event.objects.filter(dialog=dialog).update(created_at=Event.objects.get().created_at + timedelta(hours=1))
    store(dialog, *notices(1, 2))
    first, second = (event.created_at for event in events.read(dialog.pk, 0, 10)[0])
    assert first == second


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
DATA = st.dictionaries(WORDS, st.none() | st.booleans() | st.integers(-5, 5) | WORDS)
SHAPED = st.sampled_from(list(events.SHAPES)).flatmap(
    lambda kind: st.tuples(
        st.just(kind),
        st.fixed_dictionaries({name: st.none() | WORDS | st.floats(0, 2) for name in events.SHAPES[kind]}),
    )
)
NEW_EVENTS = st.lists(
    SHAPED.filter(lambda item: item[0] != "turn")
    | st.tuples(st.sampled_from(["state", "generation", "health", "notice", "context:pruned", "5"]), DATA),
    min_size=1,
    max_size=9,
)


@given(changes=st.lists(NEW_EVENTS, min_size=1, max_size=6))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_events_are_read_as_they_were_stored(changes: list[list[NewEvent]]) -> None:
    """Unusual keys, names of our own types with other data, commas and quotes among them."""
    agent = AgentFactory.create()
    dialog = messages.create_dialog(UserFactory.create(), agent.pk)
    for new_events in changes:
        with open_change(dialog.pk) as change:
            change.keeps_state = True
            for kind, data in new_events:
                change.event(kind, **data)
    wanted = [item for new_events in changes for item in new_events]
    assert [(event["type"], event["data"]) for event in events_of(dialog)] == wanted


@pytest.mark.django_db(transaction=True)
def test_health_and_state_events_have_all_keys(script: Script) -> None:
    """All keys of the indicator stand in the event, though they are not stored with it."""
    script({"text": "Hello.", "usage": {"prompt_tokens": 50, "completion_tokens": 5}})
    dialog = send(make_dialog(), "Hi")
    assert event_data(dialog, "health") == [health_of(dialog)]
    assert event_data(dialog, "state") == [{"state": name, "failure": ""} for name in ("queued", "generating", "idle")]
    generation = dialog.generations.get()
    assert event_data(dialog, "generation") == [
        {"id": generation.pk, "purpose": "reply", "attempt": 1, "outcome": outcome} for outcome in ("running", "kept")
    ]
    assert [data["text"] for data in event_data(dialog, "turn")] == ["Hi", "Hello.", "Hi"]


@pytest.mark.django_db(transaction=True)
def test_an_exchange_adds_to_a_row_and_reads_by_one_statement(script: Script) -> None:
    script({"text": "Hello.", "usage": {"prompt_tokens": 50, "completion_tokens": 5}})
    dialog = make_dialog()
    for _ in range(4):
        send(dialog, "Hi")
    last = Dialog.objects.get(pk=dialog.pk).last_event_seq
    assert Event.objects.filter(dialog=dialog).count() <= last / 9
    with CaptureQueriesContext(connection) as queries:
        assert [event.seq for event in events.read(dialog.pk, last - 1, 100)[0]] == [last]
    assert len(queries) == 1


def test_the_admin_finds_rows_by_any_of_their_events(dialog: Dialog, client: Client) -> None:
    store(dialog, ("title", {"title": "<b>One</b>"}), ("state", {"state": "failed", "failure": "Too long."}))
    other = make_dialog()
    store(other, *notices(2))
    client.force_login(UserFactory.create(is_staff=True, is_superuser=True))
    row = Event.objects.get(dialog=dialog)
    page = client.get(reverse("admin:dialogs_event_change", args=[row.pk])).content.decode()
    assert "&lt;b&gt;One&lt;/b&gt;" in page and "<b>state</b>" in page and "Too long." in page
    changelist = reverse("admin:dialogs_event_changelist")
    for kind, rows in (
        ("state", [row]),
        ("title", [row]),
        ("notice", [Event.objects.get(dialog=other)]),
        ("turn", []),
    ):
        assert list(client.get(changelist, {"type": kind}).context["cl"].result_list) == rows
