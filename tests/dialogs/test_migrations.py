"""What an older version stored reads the same after an upgrade."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from dialogs.api.schemas import EventOut
from dialogs.models import (
    Agent,
    CallTotals,
    Client,
    Dialog,
    EmbeddingUse,
    Event,
    ForcingRefusal,
    PersonSettings,
)
from dialogs.store import events
from dialogs.store.change import open_change
from dominds.db import fresh
from tests.dialogs.event_lists import events_of

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = [("dialogs", "0002_archive_dialogs")]
OLD_EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("turn", {"turn": 1}),
    ("state", {"state": "queued", "failure": ""}),
    ("generation", {"id": 3, "purpose": "reply", "attempt": 1, "outcome": "kept"}),
    (
        "health",
        {
            "level": "unknown",
            "reason": "usage_unavailable",
            "prompt_tokens": None,
            "completion_tokens": None,
            "total_tokens": None,
            "model_context_limit": 8_000,
            "limit_source": None,
            "optimal_max_tokens": 7_000,
            "critical_max_tokens": 7_200,
            "hard_util": None,
            "optimal_util": None,
        },
    ),
    ("notice", {"text": "Grüße,\n\"世界\" 'and' \\others"}),
]


@contextmanager
def upgraded(alias: str) -> Iterator[Any]:
    """A database as the older version left it, with its five events in a dialog titled Old, and that dialog's client,
    after an upgrade. Yields that version's models. To go back and forth takes seven seconds."""
    executor = MigrationExecutor(connections[alias])
    executor.migrate(BEFORE)
    models = executor.loader.project_state(BEFORE).apps
    try:
        owner = User.objects.using(alias).create(username="someone")
        agent = (
            models.get_model("dialogs", "Agent")
            .objects.using(alias)
            .create(id="a", provider="p", model="m", context_policy="retention")
        )
        dialog = (
            models.get_model("dialogs", "Dialog")
            .objects.using(alias)
            .create(owner_id=owner.pk, agent=agent, title="Old", last_event_seq=len(OLD_EVENTS))
        )
        for seq, (kind, data) in enumerate(OLD_EVENTS, 1):
            models.get_model("dialogs", "Event").objects.using(alias).create(
                dialog=dialog, seq=seq, type=kind, data=data
            )
        models.get_model("dialogs", "Client").objects.using(alias).create(dialog=dialog, said="digest")
    finally:
        call_command("migrate", database=alias, interactive=False, verbosity=0)
    yield models


def check_rows_are_kept(alias: str) -> None:
    rows = list(Event.objects.using(alias).order_by("seq"))
    results = [event for row in rows for event in events.events_in(row)]
    assert [(event.seq, event.type, event.data) for event in results] == [
        (seq, *event) for seq, event in enumerate(OLD_EVENTS, 1)
    ]
    assert [event.created_at for event in results] == [row.created_at for row in rows]
    assert Agent.objects.using(alias).get().context_policy == "retention"
    assert Client.objects.using(alias).get().messages_digest == "digest"


def test_rows_are_kept_on_sqlite_too(lite: str) -> None:
    with upgraded(lite):
        check_rows_are_kept(lite)


@pytest.mark.parametrize("alias", ["default", "lite"])
@pytest.mark.parametrize("app", ["dialogs", "remediation"])
def test_names_of_policies_become_free_without_touching_a_table(
    request: pytest.FixtureRequest, alias: str, app: str
) -> None:
    if alias != "default":
        request.getfixturevalue(alias)
    printed = StringIO()
    migration = {"dialogs": "0006_policies_by_name", "remediation": "0003_policies_by_name"}[app]
    call_command("sqlmigrate", app, migration, database=alias, stdout=printed)
    assert {line for line in printed.getvalue().splitlines() if not line.startswith("--")} <= {"BEGIN;", "COMMIT;"}


def test_an_old_dialog_goes_on_and_so_may_the_version_before() -> None:
    """Migrations only add: until its processes are replaced, that version stores events as rows of their own, and ours
    count on."""
    with upgraded("default") as models:
        check_rows_are_kept("default")
        dialog = Dialog.objects.get(title="Old")
        before = events_of(dialog)
        for texts in (["ours"], ["ours too", "and again"]):
            with open_change(dialog.pk) as change:
                for text in texts:
                    change.event("notice", text=text)
        assert events_of(dialog)[:5] == before
        assert [EventOut(**event).seq for event in events.after(dialog.pk, 3, 3)] == [4, 5, 6]
        theirs = models.get_model("dialogs", "Event").objects.create(
            dialog_id=dialog.pk, seq=9, type="title", data={"title": "Theirs"}
        )
        Dialog.objects.filter(pk=dialog.pk).update(last_event_seq=9)
        with open_change(dialog.pk) as change:
            change.event("notice", text="ours at last")
        assert [(event["seq"], *event["data"].values()) for event in events_of(dialog)[5:]] == [
            (6, "ours"),
            (7, "ours too"),
            (8, "and again"),
            (9, "Theirs"),
            (10, "ours at last"),
        ]
        assert models.get_model("dialogs", "Event").objects.get(pk=theirs.pk).data == {"title": "Theirs"}
        models.get_model("dialogs", "Client").objects.filter(pk=dialog.pk).update(said="theirs")
        assert Client.objects.get(pk=dialog.pk).messages_digest == "theirs"


@pytest.mark.parametrize("alias", ["default", "lite"])
def test_columns_are_renamed_with_their_rows_and_indexes(request: pytest.FixtureRequest, alias: str) -> None:
    if alias != "default":
        request.getfixturevalue(alias)
    before = [("dialogs", "0040_lists_of_any_length")]
    executor = MigrationExecutor(connections[alias])
    executor.migrate(before)
    models = executor.loader.project_state(before).apps
    try:
        owner = User.objects.using(alias).create(username="someone")
        agent = models.get_model("dialogs", "Agent").objects.using(alias).create(id="a", provider="p", model="m")
        dialog = models.get_model("dialogs", "Dialog").objects.using(alias).create(owner_id=owner.pk, agent=agent)
        models.get_model("dialogs", "Client").objects.using(alias).create(dialog=dialog, said="digest", heard="answer")
        models.get_model("dialogs", "ForcingRefusal").objects.using(alias).create(provider="p", model="m", said="No.")
    finally:
        call_command("migrate", database=alias, interactive=False, verbosity=0)
    result = Client.objects.using(alias).get()
    assert (result.messages_digest, result.answer_digest) == ("digest", "answer")
    assert ForcingRefusal.objects.using(alias).get().reason == "No."
    with connections[alias].cursor() as cursor:
        constraints = connections[alias].introspection.get_constraints(cursor, "dialogs_client")
    assert constraints["client_conversation"]["columns"] == ["key_id", "said"]
    assert constraints["client_answer"]["columns"] == ["key_id", "answer_digest"]
    assert "client_heard" not in constraints


@pytest.mark.parametrize("alias", ["default", "lite"])
def test_indexes_of_foreign_keys_give_way_to_others(request: pytest.FixtureRequest, alias: str) -> None:
    if alias != "default":
        request.getfixturevalue(alias)
    MigrationExecutor(connections[alias]).migrate([("dialogs", "0043_steps_of_escalation")])
    call_command("migrate", database=alias, interactive=False, verbosity=0)
    with connections[alias].cursor() as cursor:
        of_tables = [
            connections[alias].introspection.get_constraints(cursor, table)
            for table in ("dialogs_dialog", "dialogs_turn")
        ]
    names = {name for constraints in of_tables for name, each in constraints.items() if each["index"]}
    assert names >= {"dialog_of_agent", "dialog_branched_off", "turn_of_generation"}
    assert not [name for name in names if re.search(r"_[0-9a-f]{8}(_like)?$", name)]


def test_a_new_file_is_laid_as_its_migrations_would_leave_it(lite: str, tmp_path: Path) -> None:
    """Columns, constraints, indexes and rows, all but the order of columns; and nothing is left to migrate."""
    laid = shape_of(Path(connections[lite].settings_dict["NAME"]))
    assert not fresh.lay(lite), "there are tables"
    migrated = tmp_path / "migrated.sqlite3"
    connections[lite].close()
    connections[lite].settings_dict["NAME"] = str(migrated)
    call_command("migrate", database=lite, interactive=False, verbosity=0)
    assert shape_of(migrated) == laid


def shape_of(file: Path) -> dict[str, Any]:
    """Of each table its columns and constraints, as the SQL has them, and how many rows it has; of each index its SQL.

    Content types and permissions come after either, by signals that the tests have switched off.
    """
    shape: dict[str, Any] = {}
    with closing(sqlite3.connect(file)) as database:
        for kind, name, sql in database.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
        ):
            parts = re.split(r', (?="|CONSTRAINT |UNIQUE )', sql.partition("(")[2].removesuffix(")"))
            shape[name] = (kind, sorted(parts) if kind == "table" else sql)
            if kind == "table" and name not in ("django_content_type", "auth_permission"):
                shape[f"{name}, rows"] = database.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()
    return shape


@pytest.mark.parametrize("alias", ["default", "lite"])
def test_days_that_were_summed_up_stay_days_of_utc(request: pytest.FixtureRequest, alias: str) -> None:
    if alias != "default":
        request.getfixturevalue(alias)
    before = [("dialogs", "0043_steps_of_escalation")]
    executor = MigrationExecutor(connections[alias])
    executor.migrate(before)
    models = executor.loader.project_state(before).apps
    day = date(2026, 11, 20)
    try:
        owner = User.objects.using(alias).create(username="someone")
        models.get_model("dialogs", "PersonSettings").objects.using(alias).create(user_id=owner.pk, zone="Asia/Kolkata")
        named = {"person_id": owner.pk, "agent": "a", "provider": "p", "model": "m", "prompt_tokens": 7, "cost_usd": 2}
        counted = {**named, "calls": 3, "unpriced": 1}
        for ago in range(3):
            models.get_model("dialogs", "EmbeddingUse").objects.using(alias).create(
                **counted, day=day - timedelta(days=ago)
            )
            models.get_model("dialogs", "DayOfCalls").objects.using(alias).create(
                **counted, day=day - timedelta(days=ago), cache_read_tokens=0, completion_tokens=1
            )
    finally:
        call_command("migrate", database=alias, interactive=False, verbosity=0)
    own = PersonSettings.objects.using(alias).get()
    assert (own.zone, own.seen_zone) == ("", "Asia/Kolkata")
    for kept in (CallTotals, EmbeddingUse):
        rows = list(kept.objects.using(alias).order_by("began_at"))
        for zone in ("UTC", "Asia/Kolkata", "America/New_York", "Asia/Shanghai"):
            days = [row.began_at.astimezone(ZoneInfo(zone)).date() for row in rows]
            assert days == [day - timedelta(days=2), day - timedelta(days=1), day]
        assert {(row.calls, row.prompt_tokens, row.cost_usd, row.unpriced) for row in rows} == {(3, 7, 2, 1)}
