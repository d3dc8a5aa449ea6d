"""Retry policies from a real ``context.yaml``, for tools inside a transaction and outside of one."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection
from structlog.testing import capture_logs

from dialogs.actions import messages
from dialogs.actions.questions import ASK_HUMAN
from dialogs.models import Dialog, Question
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog

pytestmark = pytest.mark.django_db(transaction=True)

FILE = """
context_config:
  retry_policies:
    default: {max_attempts: 2, backoff_base_seconds: 0.01, max_delay_seconds: 60}
    per_tool:
      askQuestion: {max_attempts: 4, backoff_base_seconds: 0.02}
"""
ASKS = {"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "EUR or USD?"}}]}
REMEMBERS = {"tool_calls": [{"name": "add_reminder", "arguments": {"content": "EUR"}}]}


@contextmanager
def refusing(table: str, times: int) -> Iterator[None]:
    """The database refuses the first rows of a table. A sequence counts: it forgets nothing on a rollback."""
    with connection.cursor() as cursor:
        cursor.execute(f"""
            CREATE SEQUENCE refused;
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF nextval('refused') <= {times} THEN RAISE EXCEPTION 'the desk is closed'; END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER refusing BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse();
        """)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TRIGGER refusing ON {table}; DROP FUNCTION refuse(); DROP SEQUENCE refused")


def run(script: Script, folder: Path, *steps: Mapping[str, object]) -> tuple[Dialog, list[tuple[str, int, float]]]:
    script(*steps, {"text": "Done."})
    (folder / "minds" / "context.yaml").write_text(FILE)
    dialog = make_dialog()
    messages.post_message(dialog.pk, "Begin.")
    with capture_logs() as logged:
        drive(dialog.pk)
    dialog.refresh_from_db()
    tries = [
        (line["tool"], line["attempt"], line["delay_seconds"]) for line in logged if line["event"] == "tool_retried"
    ]
    return dialog, tries


def test_a_question_is_tried_again_as_ask_question_says(script: Script, tmp_path: Path) -> None:
    with refusing("dialogs_question", times=3):
        dialog, tries = run(script, tmp_path, ASKS)
    assert tries == [(ASK_HUMAN, 1, 0.02), (ASK_HUMAN, 2, 0.04), (ASK_HUMAN, 3, 0.08)]
    assert dialog.state == "waiting"
    assert Question.objects.get(dialog=dialog).text == "EUR or USD?"


def test_after_its_last_try_the_failure_is_the_tools_result(script: Script, tmp_path: Path) -> None:
    with refusing("dialogs_question", times=4):
        dialog, tries = run(script, tmp_path, ASKS)
    assert len(tries) == 3
    assert (dialog.state, dialog.crashes) == ("idle", 0)
    result = dialog.turns.get(role="tool")
    assert result.status == "error"
    assert "ask_human failed: the desk is closed" in result.text
    assert not Question.objects.exists()


def test_other_tools_follow_the_default_policy(script: Script, tmp_path: Path) -> None:
    with refusing("dialogs_reminder", times=1):
        dialog, tries = run(script, tmp_path, REMEMBERS)
    assert tries == [("add_reminder", 1, 0.01)]
    assert dialog.turns.get(role="tool").status == "ok"
    assert dialog.reminders.get().text == "EUR"
