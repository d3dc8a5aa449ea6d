"""What an older version stored reads the same after an upgrade."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from dialogs.api.schemas import EventOut
from dialogs.models import (
    Agent,
    Client,
    Dialog,
    Event,
)
from dialogs.store import events
from dialogs.store.change import open_change
from dominds.db import fresh
from tests.dialogs.event_lists import events_of

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = [("dialogs", "0001_version_0_1_0")]
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
def upgraded() -> Iterator[Any]:
    """The database as the older version left it, with its five events in a dialog titled Old, and that dialog's client,
    after an upgrade. Yields that version's models. To go back and forth takes seven seconds."""
    executor = MigrationExecutor(connection)
    executor.migrate(BEFORE)
    models = executor.loader.project_state(BEFORE).apps
    try:
        owner = User.objects.create(username="someone")
        agent = models.get_model("dialogs", "Agent").objects.create(
            id="a", provider="p", model="m", context_policy="retention"
        )
        dialog = models.get_model("dialogs", "Dialog").objects.create(
            owner_id=owner.pk, agent=agent, title="Old", last_event_seq=len(OLD_EVENTS)
        )
        for seq, (kind, data) in enumerate(OLD_EVENTS, 1):
            models.get_model("dialogs", "Event").objects.create(dialog=dialog, seq=seq, type=kind, data=data)
        models.get_model("dialogs", "Client").objects.create(dialog=dialog, said="digest")
    finally:
        call_command("migrate", interactive=False, verbosity=0)
    yield models


def check_rows_are_kept() -> None:
    rows = list(Event.objects.order_by("seq"))
    results = [event for row in rows for event in events.events_in(row)]
    assert [(event.seq, event.type, event.data) for event in results] == [
        (seq, *event) for seq, event in enumerate(OLD_EVENTS, 1)
    ]
    assert [event.created_at for event in results] == [row.created_at for row in rows]
    assert Agent.objects.get().context_policy == "retention"
    assert Client.objects.get().messages_digest == "digest"


def test_an_old_dialog_goes_on_and_so_may_the_version_before() -> None:
    """Migrations only add: until its processes are replaced, that version stores events as rows of their own, and ours
    count on."""
    with upgraded() as models:
        check_rows_are_kept()
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
