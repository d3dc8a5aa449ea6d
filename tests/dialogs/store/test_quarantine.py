"""Whatever a JSON column holds, its dialog ends visibly and no other is touched."""

import asyncio
from typing import Any

import orjson
import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import models
from django.test import Client as Browser
from django.urls import reverse

from dialogs.accounts.api_keys import create_key
from dialogs.actions import messages
from dialogs.models import Agent, ApiKey, Client, Dialog
from dialogs.operations import interventions
from dialogs.runtime.driver import drive
from dialogs.state import State
from dialogs.store.lease import MAX_CRASHES
from dialogs.store.quarantine import DAMAGED, quarantine
from dialogs.urls import urlpatterns
from remediation.models import ContextSettings, PreparedRewrite, Proposal
from tests.dialogs.browsing import ONLY_POST
from tests.dialogs.conftest import Script
from tests.dialogs.factories import RewriteFactory, UserFactory, make_dialog, make_operator

pytestmark = pytest.mark.django_db(transaction=True)

OUR_APPS = ("dialogs", "remediation", "health")
JSON_COLUMNS = [
    (model, field.name)
    for model in apps.get_models()
    if model._meta.app_label in OUR_APPS
    for field in model._meta.concrete_fields
    if isinstance(field, models.JSONField)
]
WILD: list[Any] = [7, {"id": []}, [None, {"turns": 5}]]
PAGES = [
    route.name
    for route in urlpatterns
    if list(route.pattern.converters) == ["dialog_id"]
    and route.name not in ONLY_POST
    and not str(route.name).startswith("export")
]
CALLS = (
    "",
    "/turns",
    "/generations",
    "/events",
    "/context",
    "/remediations",
    "/archive",
    "/reminders",
    "/timeline",
    "/search?q=note",
    "/export?format=json",
)


def rows_of_everything(script: Script) -> Dialog:
    """A dialog with a call and its result, a client, a rewrite, and one that is prepared."""
    script(
        {"match": "note", "tool_calls": [{"name": "add_reminder", "arguments": {"content": "milk"}}]},
        {"text": "Noted.", "repeat": 100},
    )
    dialog = make_dialog(context_policy="retention")
    messages.post_message(dialog.pk, "note it")
    drive(dialog.pk)
    create_key(dialog.owner, name="test")
    Client.objects.create(dialog=dialog, key=ApiKey.objects.get(owner=dialog.owner), said="x", tools=[])
    RewriteFactory.create(dialog=dialog, view=[{"turns": [1]}])
    PreparedRewrite.objects.create(dialog=dialog, key="x", covers=1, content={"view": []})
    ContextSettings.objects.create(config={})
    Proposal.objects.create(agent=dialog.agent, kind="limit", change={"context_limit": 6000}, grounds="x")
    return dialog


def test_every_json_column_has_a_row_to_damage(script: Script) -> None:
    rows_of_everything(script)
    assert {model for model, _ in JSON_COLUMNS if not model._default_manager.exists()} == set()


@pytest.mark.parametrize(("model", "column"), JSON_COLUMNS, ids=lambda part: getattr(part, "__name__", part))
def test_a_damaged_row_stops_its_dialog_and_no_other(script: Script, model: type[models.Model], column: str) -> None:
    dialog = rows_of_everything(script)
    bystander = make_dialog()
    boss = UserFactory.create(is_staff=True, is_superuser=True)
    messages.post_message(bystander.pk, "hello")
    drive(bystander.pk)
    names = {field.name for field in model._meta.concrete_fields}
    keys = {Agent: dialog.agent_id, Dialog: dialog.pk}
    mine = {"pk": keys[model]} if model in keys else {"dialog": dialog} if "dialog" in names else {}
    key = create_key(dialog.owner, name="of the test")
    for value in WILD:
        assert model._default_manager.filter(**mine).update(**{column: value})
        look_at_everything(dialog, key, bystander, boss)


def look_at_everything(dialog: Dialog, key: str, bystander: Dialog, boss: User) -> None:
    """Open every page of a damaged dialog, of one beside it, and of an operator's."""
    browser, program = Browser(raise_request_exception=False), Browser(raise_request_exception=False)
    browser.force_login(dialog.owner)
    generation = dialog.generations.latest("pk").pk
    addresses = [reverse(page, args=[dialog.pk]) for page in PAGES]
    for address in (*addresses, reverse("call", args=[dialog.pk, generation]), "/import/", "/dialogs/"):
        answer = browser.get(address)
        assert answer.status_code == 200 or "damaged" in answer.content.decode(), address
    for call in CALLS:
        answer = program.get(f"/api/dialogs/{dialog.pk}{call}", headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 200 or answer.json()["error"]["code"] == "damaged", call
    for export in ("export-json", "export-markdown"):
        answer = browser.get(reverse(export, args=[dialog.pk]))
        assert answer.status_code == 200
    stranger = Browser()
    stranger.force_login(bystander.owner)
    assert stranger.get(reverse("dialog", args=[bystander.pk])).status_code == 200
    stranger.force_login(boss)
    for address in ("/", "/ops/", "/q4h/", "/models/"):
        assert stranger.get(address).status_code == 200, address


def damaged_while_owed(script: Script) -> Dialog:
    """A reply with calls that nobody can read, under a message that is being answered."""
    dialog = rows_of_everything(script)
    messages.post_message(dialog.pk, "again")
    dialog.turns.filter(role="assistant").update(tool_calls=["not a call"])
    return dialog


def test_a_dialog_that_no_worker_can_read_ends_at_the_limit(script: Script) -> None:
    dialog = damaged_while_owed(script)
    runs = 0
    while Dialog.objects.get(pk=dialog.pk).state in (State.QUEUED, State.GENERATING):
        runs += 1
        assert runs <= MAX_CRASHES + 1
        try:
            drive(dialog.pk)
        except TypeError:
            continue
    dialog.refresh_from_db()
    assert (dialog.state, dialog.failure, dialog.is_leased) == (State.FAILED, DAMAGED, False)
    assert dialog.damaged_at is not None
    assert not dialog.turns.filter(status="answering").exists()


def test_an_operator_can_give_such_a_message_up(script: Script) -> None:
    dialog = damaged_while_owed(script)
    interventions.fail(dialog.pk, make_operator())
    dialog.refresh_from_db()
    assert (dialog.state, dialog.failure) == (State.FAILED, DAMAGED)


def test_a_damaged_dialog_has_its_exits(script: Script) -> None:
    dialog = damaged_while_owed(script)
    quarantine(dialog.pk)
    browser = Browser()
    browser.force_login(dialog.owner)
    exported = b"".join(_pieces(browser.get(reverse("export-json", args=[dialog.pk]))))
    assert [turn for turn in orjson.loads(exported)["turns"] if turn.get("damaged")]
    browser.post(reverse("clear", args=[dialog.pk]), {"reminder_content": "Begin anew."})
    assert Dialog.objects.get(pk=dialog.pk).round_number == 2
    messages.post_message(dialog.pk, "hello again")
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert (dialog.state, dialog.damaged_at) == (State.IDLE, None)
    messages.close(dialog.pk, dialog.owner)
    assert Dialog.objects.get(pk=dialog.pk).state == State.CLOSED


def _pieces(answer: Any) -> list[bytes]:
    async def read() -> list[bytes]:
        return [piece async for piece in answer]

    return asyncio.run(read())
