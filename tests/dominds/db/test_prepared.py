"""Statements made once do what Django's own do, with values that come later. SQLite is covered by the live tests."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, connection, transaction
from django.db.models import (
    BooleanField,
    Case,
    CharField,
    F,
    FloatField,
    IntegerField,
    Model,
    QuerySet,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Now
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dialogs.models import Agent, Dialog, Event, Generation, Turn
from dominds.db import prepared
from dominds.db.prepared import Select
from health.models import HealthSnapshot
from remediation.models import ContextEvent, RemediationRun, RemovedUnit
from tests.dialogs.factories import make_dialog

pytestmark = pytest.mark.django_db


def turns_after(dialog_id: UUID, seq: int, role: str) -> QuerySet[Turn]:
    return Turn.objects.filter(dialog_id=dialog_id, seq__gt=seq, role=role).order_by("-seq")


def turn_rows(dialog_id: UUID, seq: int, role: str) -> QuerySet[Turn, Any]:
    return turns_after(dialog_id, seq, role).values_list("seq", "tool_calls", named=True)


def pairs(dialog_id: UUID, seq: int, role: str) -> QuerySet[Turn, Any]:
    return turns_after(dialog_id, seq, role).values_list("tool_calls", "role")[:2]


def seqs(dialog_id: UUID, seq: int, role: str) -> QuerySet[Turn, int]:
    return turns_after(dialog_id, seq, role).values_list("seq", flat=True)


def with_all(dialog_id: UUID) -> QuerySet[Dialog]:
    titled = Case(When(title="", then=Value(False)), default=Value(True), output_field=BooleanField())
    return Dialog.objects.select_related("agent", "client").filter(pk=dialog_id).annotate(titled=titled)


@pytest.fixture
def dialog() -> Dialog:
    dialog = make_dialog()
    calls = [{"id": "a", "name": "look", "arguments": "{}"}]
    for seq in range(1, 7):
        Turn.objects.create(
            dialog=dialog,
            seq=seq,
            position=seq,
            round_number=1,
            role="user" if seq % 2 else "assistant",
            status="complete",
            text=f"said {seq}",
            tool_calls=None if seq % 2 else calls,
        )
    return dialog


@pytest.mark.parametrize("build", [turns_after, turn_rows, pairs, seqs])
@pytest.mark.parametrize("values", [(0, "user"), (2, "assistant"), (2, "user"), (6, "user")])
def test_rows_are_those_of_the_queryset(dialog: Dialog, build: Any, values: tuple[int, str]) -> None:
    select = Select(build)
    for dialog_id in (uuid4(), dialog.pk):  # made with values that find nothing, then run with others
        assert select(dialog_id, *values) == list(build(dialog_id, *values))
        assert select.first(dialog_id, *values) == build(dialog_id, *values).first()


def test_related_rows_and_annotations_come_along(dialog: Dialog) -> None:
    other = make_dialog(name="Another")
    Dialog.objects.filter(pk=other.pk).update(title="Named")
    select: Select[Any] = Select(with_all)
    result, named = select.one(dialog.pk), select.one(other.pk)
    with CaptureQueriesContext(connection) as queries:
        assert (result.agent.name, named.agent.name, getattr(result, "client", None)) == ("Tester", "Another", None)
        assert (result.titled, named.titled) == (False, True)
    assert not queries.captured_queries
    assert {field.attname: getattr(result, field.attname) for field in Dialog._meta.concrete_fields} == {
        field.attname: getattr(dialog, field.attname) for field in Dialog._meta.concrete_fields
    }


def test_a_column_that_was_left_out_is_read_when_somebody_asks(dialog: Dialog) -> None:
    def without_title(dialog_id: UUID) -> QuerySet[Dialog]:
        return Dialog.objects.filter(pk=dialog_id).defer("title")

    Dialog.objects.filter(pk=dialog.pk).update(title="Left out")
    result = Select(without_title).one(dialog.pk)
    assert result.get_deferred_fields() == {"title"}
    assert result.title == "Left out"


def test_what_is_not_there_is_named() -> None:
    missing = uuid4()
    with pytest.raises(ObjectDoesNotExist, match=f"with_all finds nothing for {missing}"):
        Select(with_all).one(missing)


def test_an_update_sets_values_expressions_and_null(dialog: Dialog) -> None:
    turn = {"dialog_id": dialog.pk, "seq": 2}
    for text, calls in (("one", [{"id": "b"}]), ("two's %s", None)):
        assert prepared.update(Turn, turn, {"text": text, "tool_calls": calls}) == 1
        result = Turn.objects.get(**turn)
        assert (result.text, result.tool_calls) == (text, calls)
    assert Turn.objects.exclude(seq=2).filter(text__startswith="said").count() == 5
    Dialog.objects.filter(pk=dialog.pk).update(active_at=timezone.now() - timedelta(seconds=1))
    before = Dialog.objects.get(pk=dialog.pk)
    changed = {"last_turn_seq": F("last_turn_seq") + 7, "active_at": Now(), "answering_seq": 3}
    for _ in range(2):
        assert prepared.update(Dialog, {"id": dialog.pk}, changed) == 1
    after = Dialog.objects.get(pk=dialog.pk)
    assert (after.last_turn_seq, after.answering_seq) == (before.last_turn_seq + 14, 3)
    assert after.active_at > before.active_at
    assert prepared.update(Dialog, {"id": dialog.pk, "state": "closed"}, {"title": "no"}) == 0


def test_inserted_rows_know_what_the_database_gave_them(dialog: Dialog) -> None:
    for first in (1, 3):  # the second time with SQL that is there
        rows = [Event(dialog=dialog, seq=seq, type="turn", data={"turn": seq}) for seq in (first, first + 1)]
        prepared.insert(*rows)
        assert [row.pk for row in rows] == sorted(row.pk for row in rows)
        for row in rows:
            stored = Event.objects.get(pk=row.pk)
            assert (stored.seq, stored.data, stored.created_at) == (row.seq, {"turn": row.seq}, row.created_at)
            row.type = "health"
            row.save()  # an update: it is known as stored
    assert Event.objects.filter(dialog=dialog, type="health").count() == 4


def test_more_rows_than_one_statement_takes_are_stored_in_their_order(dialog: Dialog) -> None:
    first = dialog.last_event_seq + 1
    seqs = range(first, first + 2 * prepared.BATCH_ROWS + 1)
    prepared.insert_many([Event(dialog=dialog, seq=seq, type="health", data={}) for seq in seqs])
    assert list(dialog.events.filter(type="health").order_by("pk").values_list("seq", flat=True)) == list(seqs)
    prepared.insert_many([])


@pytest.mark.parametrize(
    "model", [Agent, ContextEvent, Dialog, Event, Generation, HealthSnapshot, RemediationRun, RemovedUnit, Turn]
)
def test_the_driver_gets_the_values_that_django_makes(model: type[Model]) -> None:
    usual: dict[Any, list[Any]] = {
        IntegerField: [0, 7],
        BooleanField: [True, False],
        FloatField: [0.5],
        (CharField, TextField): ["", "text"],
    }
    for field in model._meta.concrete_fields:
        values = next((values for kind, values in usual.items() if isinstance(field, kind)), [])
        for value in (None, *values):
            made = prepared._column(connection.vendor, field).value(value, connection)
            own = field.get_db_prep_save(value, connection)
            assert (type(made), made) == (type(own), own), field


def test_a_choice_is_stored_as_its_text(dialog: Dialog) -> None:
    seq = dialog.turns.latest("seq").seq
    prepared.update(Turn, {"dialog_id": dialog.pk, "seq": seq}, {"status": Turn.Status.STOPPED})
    assert dialog.turns.get(seq=seq).status == "stopped"


def test_a_row_that_is_there_is_not_stored_twice(dialog: Dialog) -> None:
    prepared.insert(Event(dialog=dialog, seq=1, type="turn", data={}))
    with pytest.raises(IntegrityError):
        prepared.insert(Event(dialog=dialog, seq=1, type="turn", data={}))


def test_a_transaction_that_has_failed_takes_no_more(dialog: Dialog) -> None:
    select = Select(turns_after)
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            select(dialog.pk, 0, "user")
    assert len(select(dialog.pk, 0, "user")) == 3


def test_whoever_looks_at_what_is_executed_sees_it(dialog: Dialog) -> None:
    seen: list[str] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql.split(maxsplit=1)[0])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        Select(turns_after)(dialog.pk, 0, "user")
        prepared.update(Turn, {"dialog_id": dialog.pk, "seq": 2}, {"text": "seen"})
        prepared.insert(Event(dialog=dialog, seq=1, type="turn", data={}))
    assert seen == ["SELECT", "UPDATE", "INSERT"]
