"""Deleting dialogs: nobody sees them any more, their owner can bring them back,
and after 30 days what was said is gone."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format

from dialogs.actions import folders, forks, messages, sharing
from dialogs.actions.expiry import remove_expired
from dialogs.models import Dialog, Generation, Turn
from dialogs.runtime.driver import drive
from remediation.models import CleanupTask, ContextEvent
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, make_operator, send

pytestmark = pytest.mark.django_db(transaction=True)

SELECTED = "/d/selected/"
admin.autodiscover()  # as the addresses do


@pytest.fixture
def dialog(script: Script) -> Dialog:
    script({"text": "An answer about mellon."})
    dialog = make_dialog()
    send(dialog, "A secret: mellon.")
    return dialog


@pytest.fixture
def owner(dialog: Dialog) -> Client:
    return browser_of(dialog.owner)


def delete(client: Client, *dialogs: Dialog) -> str:
    given = {"action": "delete", "dialog": [str(dialog.pk) for dialog in dialogs]}
    return client.post(SELECTED, given, follow=True).content.decode()


def listed(client: Client, query: str = "") -> str:
    headers = {"HX-Request": "true", "HX-Target": "dialog-rows"}
    return client.get(f"/dialogs/{query}", headers=headers).content.decode()


def statuses(client: Client, *addresses: str) -> list[int]:
    return [client.get(address).status_code for address in addresses]


@pytest.mark.extras
def test_a_deleted_dialog_is_out_of_everybodys_sight(dialog: Dialog, owner: Client) -> None:
    member = UserFactory.create()
    group = Group.objects.create(name="Harbour")
    for person in (dialog.owner, member):
        person.groups.add(group)
    sharing.share(dialog.pk, "Harbour", dialog.owner)
    link = f"/shared/{sharing.token_of(sharing.make_link(dialog.pk, dialog.owner))}/"
    places = (f"/d/{dialog.pk}/", f"/d/{dialog.pk}/export.json", f"/api/dialogs/{dialog.pk}", link)
    assert statuses(owner, *places) == [200] * 4 == statuses(browser_of(member), *places)
    text = delete(owner, dialog)
    assert "1 dialog deleted" in text and "Undo" in text
    for client in (owner, browser_of(member)):
        assert statuses(client, *places) == [404] * 4
        assert "mellon" not in client.get("/find/?q=mellon").content.decode().replace('value="mellon"', "")
        assert str(dialog.pk) not in client.get("/dialogs/").content.decode() + listed(client, "?q=secret")
        assert client.get("/api/dialogs").json() == [] == client.get("/api/search?q=mellon").json()
    assert "A secret" not in listed(browser_of(member), "?state=deleted")
    with pytest.raises(Exception, match="There is no such dialog"):
        messages.post_message(dialog.pk, "Are you there?")


def admin_lists() -> list[str]:
    rows = [model for model in admin.site._registry if model._meta.app_label in ("dialogs", "remediation", "health")]
    return [reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist") for model in rows]


def test_in_the_admin_too_and_superusers_see_when_it_is_purged(dialog: Dialog, owner: Client) -> None:
    turn = dialog.turns.get(seq=1)
    ContextEvent.objects.create(dialog=dialog, code="mellon", message="mellon")
    CleanupTask.objects.create(dialog=dialog, reason="mellon")
    operator, chief = (browser_of(make_operator(is_superuser=superuser)) for superuser in (False, True))
    pages = [f"{address}{query}" for address in admin_lists() for query in ("", f"?q={dialog.pk}")]
    pages += [
        reverse("admin:dialogs_turn_change", args=[turn.pk]),
        reverse("admin:dialogs_dialog_change", args=[dialog.pk]),
    ]
    pages += ["/ops/", "/statistics/", "/q4h/", "/api/search?q=mellon", "/metrics"]

    def telling(client: Client) -> set[str]:
        """The pages that hold its words."""
        return {page for page in pages if b"mellon" in client.get(page).content.replace(b'value="mellon"', b"")}

    assert len(telling(operator)) > 8
    delete(owner, dialog)
    assert telling(operator) == set()
    assert statuses(operator, *pages[-7:-5]) == [302, 302]  # Django's answer to what is not there
    listed_as = chief.get(reverse("admin:dialogs_dialog_changelist")).content.decode()
    expires_at = Dialog.deleted.get(pk=dialog.pk).expires_at
    assert expires_at is not None
    day = date_format(expires_at)
    assert "mellon" in listed_as and f"deleted, purged on {day}" in listed_as
    page = chief.get(reverse("admin:dialogs_dialog_change", args=[dialog.pk])).content.decode()
    assert f"deleted, purged on {day}" in page and f"/d/{dialog.pk}/" not in page
    Dialog.deleted.filter(pk=dialog.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    remove_expired()
    assert telling(chief) == set()
    assert (
        f"{dialog.generations.get().pk}</a>"
        in operator.get(reverse("admin:dialogs_generation_changelist")).content.decode()
    )


def test_it_is_brought_back_as_it_was_and_kept(dialog: Dialog, owner: Client) -> None:
    delete(owner, dialog)
    assert "A secret" in listed(owner, "?state=deleted") and f"/d/{dialog.pk}/" not in listed(owner, "?state=deleted")
    stranger = browser_of(UserFactory.create())
    stranger.post(SELECTED, {"action": "bring_back", "dialog": [str(dialog.pk)]})
    assert owner.get(f"/d/{dialog.pk}/").status_code == 404
    owner.post(SELECTED, {"action": "bring_back", "dialog": [str(dialog.pk)]})
    assert "mellon" in owner.get(f"/d/{dialog.pk}/").content.decode()
    dialog.refresh_from_db()
    assert (dialog.expires_at, dialog.removed_at) == (None, None)
    send(dialog, "Go on")
    assert dialog.turns.count() == 4


def test_undo_brings_it_back(dialog: Dialog) -> None:
    done = folders.delete(dialog.owner, [dialog.pk])
    assert folders.undo(dialog.owner, done.undo) == "Undone, for 1 dialog."
    assert Dialog.objects.filter(pk=dialog.pk).exists()


def test_after_thirty_days_its_words_are_gone_and_its_numbers_stay(dialog: Dialog) -> None:
    folders.delete(dialog.owner, [dialog.pk])
    assert remove_expired() == 0
    expires_at = Dialog.deleted.get(pk=dialog.pk).expires_at
    assert expires_at is not None
    left = expires_at - timezone.now()
    assert timedelta(days=29, hours=23) < left <= timedelta(days=30)
    Dialog.deleted.filter(pk=dialog.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert remove_expired() == 1 and remove_expired() == 0
    assert not Turn.objects.filter(dialog=dialog).exists() and Generation.objects.filter(dialog=dialog).exists()
    assert not Dialog.deleted.filter(pk=dialog.pk).exists()
    assert folders.bring_back(dialog.owner, [dialog.pk]).sentence == "0 dialogs are back."


def test_nothing_that_runs_or_waits_is_deleted(dialog: Dialog, owner: Client) -> None:
    messages.post_message(dialog.pk, "two")
    assert "1 stayed" in delete(owner, dialog)
    answer = owner.delete(f"/api/dialogs/{dialog.pk}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "dialog_busy")
    drive(dialog.pk)
    assert owner.delete(f"/api/dialogs/{dialog.pk}").status_code == 204
    assert owner.get(f"/d/{dialog.pk}/").status_code == 404


def test_the_versions_that_it_replaced_go_along_and_forks_stay(dialog: Dialog) -> None:
    branch = forks.Branch(dialog.pk, 2, dialog.owner)
    second, fork = forks.regenerate(branch), forks.fork(branch)
    drive(second.pk)
    third = forks.regenerate(forks.Branch(second.pk, 2, dialog.owner))
    drive(third.pk)
    folders.archive(dialog.owner, [fork.pk], away=True)
    done = folders.delete(dialog.owner, [third.pk])
    assert set(Dialog.objects.values_list("pk", flat=True)) == {fork.pk}
    assert set(Dialog.deleted.values_list("pk", flat=True)) == {dialog.pk, second.pk, third.pk}
    assert "1 dialog deleted" in done.sentence
    folders.undo(dialog.owner, done.undo)
    assert Dialog.objects.count() == 4


def test_nobody_else_deletes_it(dialog: Dialog, settings: Any) -> None:
    everything = UserFactory.create(is_superuser=True)
    assert "0 dialogs deleted" in delete(browser_of(everything), dialog)
    assert browser_of(everything).delete(f"/api/dialogs/{dialog.pk}").status_code == 403
    assert Dialog.objects.filter(pk=dialog.pk).exists()
