"""A person can leave: nothing of theirs remains, nothing of others is lost, and figures stay without a name."""

import json
from contextlib import suppress
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction

from dialogs.accounts import api_keys, erasure
from dialogs.actions import messages
from dialogs.errors import Conflict
from dialogs.extras.teams.models import SideDialog, TaskRevision
from dialogs.models import (
    Delivery,
    Dialog,
    Generation,
    Identity,
    PersonSettings,
    PromptTemplate,
    PushSubscription,
    RequestPart,
    SiteSettings,
    Turn,
)
from dialogs.store.lease import claim
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.every_state import Zoo
from tests.dialogs.factories import AgentFactory, UserFactory, make_dialog, send

pytestmark = pytest.mark.django_db(transaction=True)
MARK = "zebrafinch"  # in all that is theirs


def of(owner: User) -> Dialog:
    dialog = make_dialog()
    Dialog.objects.filter(pk=dialog.pk).update(owner=owner)
    dialog.refresh_from_db()
    return dialog


@pytest.fixture
def admin() -> User:
    return UserFactory.create(username="keeper", is_staff=True, is_superuser=True)


@pytest.fixture
def person(script: Script) -> User:
    script({"text": f"The {MARK} sings."})
    user: User = UserFactory.create(username=MARK, email=f"{MARK}@example.org", first_name=MARK, last_name=MARK)
    user.groups.add(Group.objects.create(name="birds"))
    dialog = of(user)
    Dialog.objects.filter(pk=dialog.pk).update(title=f"About the {MARK}", folder=MARK)
    send(dialog, f"What does the {MARK} do?")
    of(user)
    PersonSettings.objects.create(user=user)
    PromptTemplate.objects.create(owner=user, name=MARK, text=MARK)
    PushSubscription.objects.create(user=user, address=f"https://push/{MARK}", key="k", secret="s", browser=MARK)
    Identity.objects.create(user=user, issuer="https://id", subject=MARK)
    api_keys.create_key(user, name=MARK)
    Delivery.objects.create(channel="mail", event="question.overdue", body=f"{MARK}@example.org")
    Delivery.objects.create(channel="webhook", event="x", body=json.dumps({"dialog": str(dialog.pk), "text": MARK}))
    SiteSettings.objects.create(escalation_address=f"{MARK}@example.org 5\nother@example.org 9")
    kinds = ((User, user), (Dialog, dialog), (PromptTemplate, user))
    for model, row in kinds:
        LogEntry.objects.create(
            user=UserFactory.create(),
            content_type=ContentType.objects.get_for_model(model),
            object_id=str(row.pk),
            object_repr=f"{MARK} of a person",
            action_flag=CHANGE,
            change_message=MARK,
        )
    return user


def where_it_stands(mark: str) -> list[str]:
    """The columns of all tables that hold the word."""
    found: list[str] = []
    for model in apps.get_models(include_auto_created=True):
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {model._meta.db_table}")
            names = [column[0] for column in cursor.description]
            found += [
                f"{model.__name__}.{name}"
                for row in cursor.fetchall()
                for name, value in zip(names, row, strict=True)
                if mark in (bytes(value).decode(errors="ignore") if isinstance(value, memoryview) else str(value))
            ]
    return found


def test_nothing_of_theirs_remains_but_figures(person: User, admin: User) -> None:
    browser, calls = browser_of(person), Generation.objects.count()
    assert len(set(where_it_stands(MARK))) > 12
    answer = browser_of(admin).post(f"/people/{person.pk}/erase/", {"name": MARK})
    assert answer.status_code == 302
    assert where_it_stands(MARK) == []
    assert Generation.objects.filter(dialog__owner=person, prompt_tokens__isnull=False).count() == calls > 0
    assert User.objects.get(pk=person.pk).username == f"erased-{person.pk}"
    assert browser.get("/dialogs/").status_code == 302
    assert SiteSettings.current().escalation_address == "other@example.org 9"


# Of the columns that stay, those which hold no words of people: ids, names of models and policies, digests, versions.
WORDLESS = {
    "Dialog": {"beginning", "calibration_fit", "context_policy", "model", "provider"},
    "Generation": {"base", "cursor", "error_kind", "finish_reason", "frame", "model", "provider"},
    "HealthSnapshot": {"limit_source", "reason"},
    "RemediationRun": {"est_source", "policy", "prompts", "reward_record", "steps"},
    "SideDialog": {"call_id", "traceparent"},
}


@pytest.mark.extras
def test_no_column_that_stays_keeps_what_was_said(script: Script) -> None:
    """Each column of a row of theirs that may hold words is filled, so that a new one is not forgotten."""
    zoo = Zoo(script)
    root, side = zoo.talk("one", "two"), zoo.rewritten()
    SideDialog.objects.create(dialog=side, parent=root, root=root, level=1, name="a", call_id="c", task="b", waits=True)
    TaskRevision.objects.create(root=root, version=1, sections={}, section="", by_dialog=root)
    for model in apps.get_models():
        if any(field.related_model in (Dialog, Generation) for field in model._meta.fields) or model is Dialog:
            for field in model._meta.local_concrete_fields:
                fill(model, field)
    RequestPart.objects.filter(dialog=None).update(text="instructions and tools, which dialogs share")
    expected = {f"{model}.{name}" for model, names in WORDLESS.items() for name in names}
    assert set(where_it_stands(MARK)) > {"Turn.text", "SideDialog.task", "TaskRevision.sections", "Dialog.title"}
    erasure.erase(zoo.owner)
    assert set(where_it_stands(MARK)) <= expected


def fill(model: Any, field: Any) -> None:
    """Store the word in all rows where the column may hold any text."""
    words = isinstance(field, models.TextField | models.CharField) and not field.choices
    if not (words or isinstance(field, models.JSONField)) or field.primary_key or (field.max_length or 99) < 12:
        return
    with suppress(IntegrityError), transaction.atomic():
        model._base_manager.update(**{field.name: MARK if words else [MARK]})


def test_what_they_said_in_dialogs_of_others_stays_there(person: User, admin: User, script: Script) -> None:
    theirs = send(of(admin), "Hello")
    Turn.objects.filter(dialog=theirs, role="user").update(author=person)
    call_command("erase", MARK, "--yes")
    assert theirs.turns.count() == 2
    assert str(theirs.turns.get(role="user").author) == f"erased-{person.pk}"


def test_a_dialog_under_way_is_fenced_out_and_stores_no_more(person: User) -> None:
    dialog = of(person)
    messages.post_message(dialog.pk, MARK)
    with claim(dialog.pk) as lease:
        assert lease is not None
        erasure.erase(person)
        assert Dialog._base_manager.get(pk=dialog.pk).epoch > lease.epoch
    assert where_it_stands(MARK) == []


def test_a_dialog_that_an_agent_opens_meanwhile_goes_too(person: User) -> None:
    opened: list[Dialog] = []

    def open_one(execute: Any, sql: str, *given: Any) -> Any:
        if sql.startswith("UPDATE") and "lease_until" in sql and not opened:
            opened.append(Dialog.objects.create(owner=person, agent=AgentFactory.create(), title=MARK))
        return execute(sql, *given)

    with connection.execute_wrapper(open_one):
        erasure.erase(person)
    assert opened and where_it_stands(MARK) == []


def test_dialogs_in_every_state_go(script: Script, admin: User) -> None:
    zoo = Zoo(script)
    assert len(zoo.dialogs()) > 20
    erasure.erase(zoo.owner, admin)
    assert not Dialog.objects.exists()
    assert not Turn.objects.exists()


def test_some_are_not_erased(person: User, admin: User) -> None:
    client = browser_of(admin)
    client.post(f"/people/{person.pk}/erase/", {"name": "another"})
    client.post(f"/people/{admin.pk}/erase/", {"name": "keeper"})
    with pytest.raises(Conflict):
        erasure.erase(admin)
    assert browser_of(person).post(f"/people/{admin.pk}/erase/", {"name": "keeper"}).status_code == 404
    assert User.objects.filter(username__in=[MARK, "keeper"], is_active=True).count() == 2


def test_the_export_has_all_that_is_theirs_and_no_secret(person: User, admin: User, capsys: Any) -> None:
    own = b"".join(browser_of(person).get("/settings/export/"))
    by_admin = b"".join(browser_of(admin).get(f"/people/{person.pk}/export/"))
    call_command("export_person", MARK)
    for text in (own, by_admin, capsys.readouterr().out):
        content = json.loads(text)
        assert (content["account"]["email"], content["account"]["groups"]) == (f"{MARK}@example.org", ["birds"])
        assert {len(content[name]) for name in ("settings", "templates", "keys", "sign_ins")} == {1}
        said = [turn["text"] for one in content["dialogs"] for turn in one["turns"]]
        assert said == [f"What does the {MARK} do?", f"The {MARK} sings."]
        assert not {"password", "digest", "secret"} & {*content["account"], *content["keys"][0]}
    assert browser_of(UserFactory.create()).get(f"/people/{person.pk}/export/").status_code == 404
