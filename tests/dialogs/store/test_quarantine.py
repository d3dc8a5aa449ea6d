"""Whatever a JSON column holds, its dialog ends visibly and no other is touched."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import orjson
import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection, models
from django.db.models.expressions import RawSQL
from django.test import Client as Browser
from django.urls import reverse

from dialogs.accounts.api_keys import create_key
from dialogs.actions import interventions, messages
from dialogs.models import Agent, ApiKey, Client, ConnectedProvider, Dialog, Generation, Question, Reminder, Turn
from dialogs.runtime.driver import drive
from dialogs.state import State
from dialogs.store.lease import MAX_CRASHES
from dialogs.store.quarantine import DAMAGED, quarantine
from remediation.models import ContextSettings, PreparedRewrite, Proposal
from tests.dialogs.browsing import ONLY_POST, routes
from tests.dialogs.conftest import Script
from tests.dialogs.factories import RewriteFactory, UserFactory, make_dialog, make_operator, send

pytestmark = pytest.mark.django_db(transaction=True)

OUR_APPS = ("dialogs", "remediation", "health")
JSON_COLUMNS = [
    (model, field.name)
    for model in apps.get_models()
    if model._meta.app_label in OUR_APPS
    for field in model._meta.concrete_fields
    if isinstance(field, models.JSONField)
]
OF_WORKERS = [("PreparedRewrite", "content"), ("PreparedRewrite", "prompts")]  # no request reads these
WILD: list[Any] = [7, {"id": []}, [None, {"turns": 5}]]
PAGES = [
    route.name
    for route in routes()
    if list(route.pattern.converters) == ["dialog_id"]
    and route.name not in {*ONLY_POST, "context-text"}
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
    dialog = send(make_dialog(context_policy="retention"), "note it")
    create_key(dialog.owner, name="test")
    Client.objects.create(dialog=dialog, key=ApiKey.objects.get(owner=dialog.owner), messages_digest="x", tools=[])
    RewriteFactory.create(dialog=dialog, view=[{"turns": [1]}])
    PreparedRewrite.objects.create(dialog=dialog, key="x", covers=1, content={"view": []})
    ContextSettings.objects.create(config={})
    ConnectedProvider.objects.create(
        provider_id="desk", name="Desk", kind="openai-compatible", base_url="http://127.0.0.1:9/v1", model_ids="m"
    )
    Question.objects.create(
        dialog=dialog, kind=Question.Kind.QUESTION, text="Which?", choices=["a"], state=Question.State.ANSWERED
    )
    Proposal.objects.create(agent=dialog.agent, kind="limit", change={"context_limit": 6000}, grounds="x")
    return dialog


def test_every_json_column_has_a_row_to_damage(script: Script) -> None:
    rows_of_everything(script)
    assert {model for model, _ in JSON_COLUMNS if not model._default_manager.exists()} == set()


@pytest.mark.timeout(300)
def test_a_damaged_row_stops_its_dialog_and_no_other(script: Script) -> None:
    """Each column meets every value, and each request that reads the column one of them."""
    dialog = rows_of_everything(script)
    bystander = make_dialog()
    send(bystander, "hello")
    boss = UserFactory.create(is_staff=True, is_superuser=True)
    asked = [(request, statements_of(request)) for request in everywhere(dialog, bystander, boss)]
    unread: list[Any] = []
    for model, column in JSON_COLUMNS:
        row = row_of(model, dialog)
        readers = [request for request, statements in asked if is_read(model, column, statements)]
        unread += [] if readers else [(model.__name__, column)]
        for first, value in enumerate(WILD):
            with damaged(row, column, value):
                for request in readers[first :: len(WILD)]:
                    try:
                        request()
                    except AssertionError as error:
                        error.add_note(f"{model.__name__}.{column} was {value!r}")
                        raise
    assert unread == OF_WORKERS


def row_of(model: type[models.Model], dialog: Dialog) -> models.Model:
    """A row of the dialog, or the only one."""
    keys = {Agent: dialog.agent_id, Dialog: dialog.pk}
    names = {field.name for field in model._meta.concrete_fields}
    mine = {"pk": keys[model]} if model in keys else {"dialog": dialog} if "dialog" in names else {}
    row = model._default_manager.filter(**mine).first()
    assert row is not None, model
    return row


def is_read(model: type[models.Model], column: str, statements: list[str]) -> bool:
    """Whether a statement names the column and its table. Several tables have a ``content``."""
    fields = model._meta.concrete_fields
    name = next(field.column for field in fields if column in (field.name, field.attname))
    return any(f'"{model._meta.db_table}"' in sql and f'"{name}"' in sql for sql in statements)


def statements_of(request: Callable[[], object]) -> list[str]:
    asked: list[str] = []

    def watch(execute: Any, sql: str, *others: Any) -> Any:
        asked.append(sql)
        return execute(sql, *others)

    with connection.execute_wrapper(watch):
        request()
    return asked


def everywhere(dialog: Dialog, bystander: Dialog, boss: User) -> Iterator[Callable[[], None]]:
    """To open each page of a damaged dialog, of one beside it, and of an operator's, and to call the API."""
    browser, program = Browser(raise_request_exception=False), Browser(raise_request_exception=False)
    key, stranger, operator = create_key(dialog.owner, name="of the test"), Browser(), Browser()

    def page(address: str) -> None:
        answer = browser.get(address)
        assert answer.status_code in (200, 302) or "damaged" in answer.content.decode(), address

    def call(path: str) -> None:
        answer = program.get(f"/api/dialogs/{dialog.pk}{path}", headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 200 or answer.json()["error"]["code"] == "damaged", path

    def sound(browser: Browser, address: str) -> None:
        assert browser.get(address).status_code == 200, address

    for client, person in ((browser, dialog.owner), (stranger, bystander.owner), (operator, boss)):
        client.force_login(person)
    generation = dialog.generations.latest("pk").pk
    addresses = [reverse(name, args=[dialog.pk]) for name in PAGES]
    addresses.append(reverse("context-text", args=[dialog.pk]) + "?piece=0")
    for address in (*addresses, reverse("call", args=[dialog.pk, generation]), "/import/", "/dialogs/"):
        yield partial(page, address)
    for path in CALLS:
        yield partial(call, path)
    for export in ("export-json", "export-markdown"):
        yield partial(sound, browser, reverse(export, args=[dialog.pk]))
    yield partial(sound, stranger, reverse("dialog", args=[bystander.pk]))
    for address in ("/", "/ops/", "/q4h/", "/models/", "/models/connected/desk/"):
        yield partial(sound, operator, address)


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
    send(dialog, "hello again")
    assert (dialog.state, dialog.damaged_at) == (State.IDLE, None)
    messages.close(dialog.pk, dialog.owner)
    assert Dialog.objects.get(pk=dialog.pk).state == State.CLOSED


def _pieces(answer: Any) -> list[bytes]:
    async def read() -> list[bytes]:
        return [piece async for piece in answer]

    return asyncio.run(read())


LISTS = ("/dialogs/", "/dialogs/?q=bystander", "/find/?q=bystander", "/q4h/", "/q4h/?tab=answered")
PROGRAMS = ("dialogs", "questions", "agents", "search?q=bystander")
ADMIN = ("dialog", "question", "turn", "generation", "reminder", "agent")
NAN, NEVER = RawSQL("'NaN'::numeric", ()), RawSQL("'infinity'::timestamptz", ())
MISSING = "00000000-0000-4000-8000-000000000000"
DAMAGE: tuple[tuple[type[models.Model], str, Any], ...] = (
    (Dialog, "state", "x"),
    (Dialog, "report", "x"),
    (Dialog, "origin", "x"),
    (Dialog, "context_policy", "x"),
    (Dialog, "cost_usd", NAN),
    (Dialog, "active_at", NEVER),
    (Dialog, "lease_until", NEVER),
    (Dialog, "round_number", 2_000_000_000),
    (Dialog, "last_turn_seq", 2_000_000_000),
    (Dialog, "prompt_tokens", 2_000_000_000),
    (Dialog, "agent_id", "gone"),
    (Dialog, "owner_id", 2_000_000_000),
    (Agent, "priority_areas", 7),
    (Agent, "model", "x"),
    (Question, "kind", "x"),
    (Question, "state", "x"),
    (Question, "choices", 7),
    (Question, "created_at", NEVER),
    (Question, "dialog_id", MISSING),
    (Turn, "tool_calls", ["not a call"]),
    (Turn, "attachments", 7),
    (Turn, "role", "x"),
    (Turn, "dialog_id", MISSING),
    (Reminder, "dialog_id", MISSING),
    (Generation, "outcome", "x"),
    (Generation, "cost_usd", NAN),
    (Generation, "dialog_id", MISSING),
)


@pytest.mark.postgresql  # whose types let fewer values in, and whose foreign keys can be told to look away
def test_lists_show_the_others_beside_a_damaged_row(script: Script) -> None:
    dialog = rows_of_everything(script)
    others = make_dialog()
    Dialog.objects.filter(pk=others.pk).update(owner=dialog.owner, title="bystander")
    send(others, "bystander")
    for one in (others, dialog):  # the damaged one is the newest, which the inbox opens
        Question.objects.create(dialog=one, kind=Question.Kind.QUESTION, text="bystander?", state=Question.State.OPEN)
        Dialog.objects.filter(pk=one.pk).update(state=State.WAITING)
    Question.objects.create(dialog=others, kind="question", text="bystander", state=Question.State.ANSWERED)
    person, boss = Browser(raise_request_exception=False), Browser(raise_request_exception=False)
    person.force_login(dialog.owner)
    boss.force_login(UserFactory.create(is_staff=True, is_superuser=True))
    key = {"Authorization": f"Bearer {create_key(dialog.owner)}"}
    rows: dict[type[models.Model], models.Model] = {
        Dialog: dialog,
        Agent: dialog.agent,
        Question: dialog.questions.get(state=Question.State.OPEN),
        Turn: dialog.turns.filter(role=Turn.Role.ASSISTANT).earliest("seq"),
        Reminder: dialog.reminders.earliest("pk"),
        Generation: dialog.generations.earliest("pk"),
    }
    lists: list[tuple[Browser, str, dict[str, str]]] = [(person, address, {}) for address in LISTS]
    lists += [(person, f"/api/{path}", key) for path in PROGRAMS]
    lists += [(boss, f"/admin/dialogs/{name}/", {}) for name in ADMIN]
    lists += [(boss, "/ops/", {}), (boss, "/dialogs/", {})]
    asked = [(each, statements_of(partial(each[0].get, each[1], headers=each[2]))) for each in lists]
    broken = []
    for model, column, value in DAMAGE:
        readers = [each for each, statements in asked if is_read(model, column, statements)]
        own = f"/admin/dialogs/{model._meta.model_name}/"
        assert own in {address for _, address, _ in readers}, column
        with damaged(rows[model], column, value):
            for browser, address, headers in readers:
                if address.startswith("/admin/") and address != own:
                    continue
                answer = browser.get(address, headers=headers)
                shows = b"bystander" in answer.content or browser is boss or address == "/api/agents"
                if answer.status_code != 200 or not shows:
                    broken.append((model.__name__, column, address, answer.status_code))
    assert broken == [], "\n".join(map(str, broken))


@contextmanager
def damaged(row: models.Model, column: str, value: Any) -> Iterator[None]:
    """Store a value that nothing here would store, and the former one afterwards."""

    def store(value: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")  # foreign keys are not looked after
            type(row)._base_manager.filter(pk=row.pk).update(**{column: value})
            cursor.execute("SET session_replication_role = DEFAULT")

    former = getattr(row, column)
    store(value)
    try:
        yield
    finally:
        store(former)
