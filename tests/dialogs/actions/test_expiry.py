"""Expired dialogs: their words go, their numbers stay, and none goes while it runs."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import PROTECT
from django.utils import timezone

from dialogs.actions import reminders
from dialogs.actions.attachments import check_files
from dialogs.actions.expiry import CONTENT, NUMBERS, remove_expired
from dialogs.actions.messages import post_message
from dialogs.context.spending import spent_this_month
from dialogs.models import Attachment, Dialog, Event, Generation, RequestPart, Turn
from dialogs.runtime.driver import drive
from dialogs.state import State
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send
from tests.pixels import picture

pytestmark = pytest.mark.django_db(transaction=True)


def answered(**columns: Any) -> Dialog:
    dialog = make_dialog()
    post_message(dialog.pk, "A secret: mellon.", attached=check_files([("a.png", picture())]))
    drive(dialog.pk)
    Dialog.objects.filter(pk=dialog.pk).update(**columns)
    dialog.refresh_from_db()
    return dialog


def in_an_hour(hours: int) -> Any:
    return timezone.now() + timedelta(hours=hours)


def test_what_was_said_goes_and_what_it_cost_stays(script: Script) -> None:
    gone, later, kept = answered(expires_at=in_an_hour(-1)), answered(expires_at=in_an_hour(1)), answered()
    Generation.objects.filter(dialog=gone).update(cost_usd=Decimal("0.25"))
    assert remove_expired() == 1
    assert set(Dialog.objects.values_list("pk", flat=True)) == {later.pk, kept.pk}
    assert not Turn.objects.filter(dialog=gone).exists()
    assert not Event.objects.filter(dialog=gone).exists()
    assert set(Attachment.objects.values_list("dialog", flat=True)) == {later.pk, kept.pk}
    row = Dialog._base_manager.get(pk=gone.pk)
    assert (row.title, row.expires_at, row.removed_at is not None) == ("", None, True)
    assert spent_this_month(gone.owner_id) == Decimal("0.25")
    assert remove_expired() == 0


def test_what_its_requests_were_made_of_goes_too(script: Script) -> None:
    dialog = make_dialog(instructions="Be brief.")
    reminders.add(dialog.pk, "A secret: mellon.")
    send(dialog, "hello")
    assert RequestPart.objects.filter(dialog=dialog, text__contains="mellon").exists()
    Dialog.objects.filter(pk=dialog.pk).update(expires_at=in_an_hour(-1))
    assert remove_expired() == 1
    assert not RequestPart.objects.filter(dialog=dialog).exists()
    assert RequestPart.objects.filter(text="Be brief.", dialog=None).exists(), "it is the agent's"
    assert Generation.objects.get(dialog=dialog).sent is None


@pytest.mark.parametrize("state", [State.QUEUED, State.GENERATING, State.WAITING, State.SUSPENDED])
def test_none_goes_while_it_runs_or_a_person_is_asked(script: Script, state: State) -> None:
    dialog = answered(expires_at=in_an_hour(-1), state=state.value)
    assert remove_expired() == 0
    assert Turn.objects.filter(dialog=dialog).exists()


def test_none_goes_while_a_worker_holds_it(script: Script) -> None:
    dialog = answered(expires_at=in_an_hour(-1), lease_owner="a worker")
    assert remove_expired() == 0
    assert Dialog.objects.filter(pk=dialog.pk).exists()


def test_what_a_person_goes_on_with_is_kept(script: Script) -> None:
    dialog = answered(expires_at=in_an_hour(-1))
    post_message(dialog.pk, "I take over.", author=dialog.owner)
    drive(dialog.pk)
    assert remove_expired() == 0
    assert Dialog.objects.get(pk=dialog.pk).expires_at is None


def test_a_wake_up_for_a_removed_dialog_is_no_harm(script: Script) -> None:
    dialog = answered(expires_at=in_an_hour(-1))
    remove_expired()
    drive(dialog.pk)
    assert Generation.objects.filter(dialog=dialog).count() == 1


def test_all_that_belongs_to_a_dialog_is_seen_to() -> None:
    belongs = {each.related_model for each in Dialog._meta.related_objects if each.on_delete is PROTECT}
    assert belongs <= {*CONTENT, *NUMBERS}
