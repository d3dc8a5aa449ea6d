"""What each permission opens, that ``is_staff`` opens nothing, and that the page says who did what."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from dialogs.accounts.api_keys import create_key
from dialogs.actions import access, interventions, messages
from dialogs.errors import Forbidden
from dialogs.models import Dialog
from dialogs.permissions import ACT_IN_ALL, ALL, OPERATE, VIEW_ALL, VIEW_METRICS, may
from dialogs.runtime.driver import drive
from tests.dialogs.browsing import HTMX, ONLY_POST, asked_dialog, browser_of, routes
from tests.dialogs.conftest import Script
from tests.dialogs.factories import UserFactory, make_dialog, make_operator, send
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)


def somebody_with(*permissions: str, **columns: Any) -> User:
    person = UserFactory.create(**columns)
    person.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return person


CHANGES = [
    route for route in routes() if "dialog_id" in route.pattern.converters and route.name in ONLY_POST - {"intervene"}
]


@pytest.fixture
def dialog(script: Script) -> Dialog:
    return send(make_dialog(), "hello")


def openings(person: User, dialog: Dialog, settings: Any) -> set[str]:
    """Which places open for this person."""
    settings.LOOPBACK_ONLY = False
    client = browser_of(person)
    result = {
        "page": client.get(reverse("dialog", args=[dialog.pk])).status_code == 200,
        "list": str(dialog.pk) in in_one_line(client.get("/dialogs/?whose=all").content.decode()),
        "api": client.get(f"/api/dialogs/{dialog.pk}").status_code == 200,
        "ops": client.get("/ops/").status_code == 200,
        "limits": client.get("/settings/limits/").status_code == 200,
        "metrics": client.get("/metrics").status_code == 200,
        "rows": client.get(reverse("admin:dialogs_turn_changelist")).status_code == 200,
        "act": client.post(reverse("rename", args=[dialog.pk]), {"title": f"by {person}"}).status_code == 302
        and Dialog.objects.filter(pk=dialog.pk, title=f"by {person}").exists(),
    }
    return {name for name, opens in result.items() if opens}


READING = {"page", "list", "api"}


@pytest.mark.parametrize(
    ("permissions", "is_staff", "opens"),
    [
        ([], False, set()),
        ([], True, set()),
        ([VIEW_ALL], False, READING),
        ([VIEW_ALL], True, READING | {"rows"}),
        ([ACT_IN_ALL], True, set()),  # what one may not see is not there to act in
        ([VIEW_ALL, ACT_IN_ALL], False, READING | {"act"}),
        ([OPERATE], True, {"ops", "limits"}),
        ([VIEW_METRICS], True, {"metrics"}),
    ],
)
def test_each_permission_opens_what_it_says(
    dialog: Dialog, settings: Any, permissions: list[str], is_staff: bool, opens: set[str]
) -> None:
    assert openings(somebody_with(*permissions, is_staff=is_staff), dialog, settings) == opens


def test_superusers_have_all_and_inactive_people_none(dialog: Dialog) -> None:
    assert all(may(UserFactory.create(is_superuser=True), permission) for permission in ALL)
    assert not any(may(UserFactory.create(is_superuser=True, is_active=False), permission) for permission in ALL)


def test_no_form_of_a_dialog_is_for_who_may_only_read(dialog: Dialog) -> None:
    reader = browser_of(somebody_with(VIEW_ALL))
    for route in CHANGES:
        given = {"dialog_id": dialog.pk, "side_id": dialog.pk, "kind": "prune"}
        address = reverse(route.name, kwargs={name: given.get(name, 1) for name in route.pattern.converters})
        answer = reader.post(address, {"seq": 1, "choice": "pinned"}, headers=HTMX)
        assert answer.status_code == 403, address
    assert not dialog.recall_choices.exists()


def test_who_may_only_read_changes_nothing(dialog: Dialog, script: Script) -> None:
    reader = somebody_with(VIEW_ALL)
    key, client = create_key(reader, name="test"), Client(headers={})
    for method, path, body in (
        ("post", "messages", {"text": "mine"}),
        ("post", "stop", {}),
        ("post", "retry", {}),
        ("post", "close", {}),
        ("post", "clear", {"reminder_content": "x"}),
        ("post", "reminders", {"text": "x"}),
    ):
        answer = getattr(client, method)(
            f"/api/dialogs/{dialog.pk}/{path}",
            body,
            content_type="application/json",
            headers={"Authorization": f"Bearer {key}"},
        )
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "permission_required"), path
    with pytest.raises(Forbidden):
        access.writable_dialog(dialog.pk, reader)
    _, question = asked_dialog(script)
    answer = client.post(
        f"/api/questions/{question.pk}/answer",
        {"text": "EUR"},
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 403


def test_a_turn_tells_who_wrote_it(dialog: Dialog) -> None:
    operator = make_operator(username="grace")
    browser_of(operator).post(reverse("post-message", args=[dialog.pk]), {"text": "from above"})
    drive(dialog.pk)
    turns = browser_of(dialog.owner).get(f"/api/dialogs/{dialog.pk}/turns").json()
    assert [(turn["role"], turn["author"]) for turn in turns] == [
        ("user", dialog.owner.username),
        ("assistant", None),
        ("user", "grace"),
        ("assistant", None),
    ]
    page = in_one_line(browser_of(dialog.owner).get(reverse("dialog", args=[dialog.pk])).content.decode())
    assert '<h3 class="who"> You </h3>' in page
    assert '<h3 class="who"> grace </h3>' in page


def test_an_operators_act_stands_on_the_page_under_his_name(dialog: Dialog) -> None:
    operator = make_operator(username="grace")
    messages.post_message(dialog.pk, "again")
    interventions.fail(dialog.pk, operator)
    browser_of(operator).post(reverse("retry", args=[dialog.pk]))
    browser_of(operator).post(reverse("rename", args=[dialog.pk]), {"title": "Better"})
    browser_of(operator).post(reverse("close", args=[dialog.pk]))
    page = in_one_line(browser_of(dialog.owner).get(reverse("dialog", args=[dialog.pk])).content.decode())
    for action in ("gave this message up", "asked for message", "called this dialog “Better”", "closed this dialog"):
        assert f"grace {action}" in page


def test_an_owners_own_acts_need_no_line(dialog: Dialog) -> None:
    browser_of(dialog.owner).post(reverse("rename", args=[dialog.pk]), {"title": "Mine"})
    assert not dialog.turns.filter(role="notice").exists()
