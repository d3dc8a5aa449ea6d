"""Cursors and pages of before: of an older database, of an older build, and leases of another clock."""

from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from dialogs.live.frames import badges_of, frames_after
from dialogs.models import Dialog, SiteSettings
from dialogs.runtime.sweeping import sweep
from dialogs.store.lease import LEASE_SECONDS
from dominds.web.build import BUILD, build_of
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_cursor_of_another_database_is_told_to_start_over(script: Script) -> None:
    dialog = make_dialog()
    SiteSettings.objects.create(generation="before")
    send(dialog, "hello")
    page = browser_of(dialog.owner).get(reverse("dialog", args=[dialog.pk])).content.decode()
    assert 'data-of="before"' in page
    assert frames_after(dialog.pk, dialog.owner_id, 1, "before") != []
    SiteSettings.objects.update(generation="after")  # restored, and gone on to beyond the cursor
    result = frames_after(dialog.pk, dialog.owner_id, 1, "before") or []
    assert [frame["type"] for frame in result] == ["resync"]
    polled = browser_of(dialog.owner).get(reverse("frames", args=[dialog.pk]), {"after": "1", "of": "before"}).json()
    assert polled["frames"][0]["type"] == "resync"
    assert (frames_after(dialog.pk, dialog.owner_id, 1) or [])[0]["type"] != "resync"  # a program that says nothing


def test_each_restore_by_other_means_begins_a_generation() -> None:
    generations = [""]
    for _ in range(2):
        call_command("restored", stdout=StringIO())
        generations.append(SiteSettings.current().generation)
    assert len(set(generations)) == 3


def test_pages_and_frames_name_the_build(script: Script, tmp_path: Path) -> None:
    dialog = make_dialog()
    page = browser_of(dialog.owner).get("/").content.decode()
    assert f'data-build="{BUILD}"' in page
    assert f"/scripts.js?v={BUILD}" in page
    badges = badges_of(dialog.owner_id)
    assert badges is not None
    assert badges["en"]["build"] == BUILD
    (tmp_path / "app.js").write_text("1")
    first = build_of([tmp_path])
    (tmp_path / "app.js").write_text("2")
    assert build_of([tmp_path]) != first


def test_a_stamped_address_is_served() -> None:
    assert Client().get(f"/scripts.js?v={BUILD}").status_code == 200


def test_a_clock_set_back_holds_no_dialog_for_an_hour(script: Script) -> None:
    dialog = make_dialog()
    Dialog.objects.filter(pk=dialog.pk).update(
        state="generating", lease_owner="gone", lease_until=Now() + timedelta(hours=1), answering_seq=1
    )
    sweep()
    dialog.refresh_from_db()
    assert dialog.lease_until is not None
    assert dialog.lease_until <= timezone.now() + timedelta(seconds=LEASE_SECONDS + 5)
