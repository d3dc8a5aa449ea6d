"""A backup brings everything back, on PostgreSQL by its own tools and as JSON lines, on SQLite,
and from one to the other."""

import json
import os
import stat
import tarfile
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection

from dialogs.actions import messages, reminders
from dialogs.actions.attachments import check_files
from dialogs.extras.backups import backups, pg_dump, portable_dump
from dialogs.extras.backups.backups import BackupFailed, back_up, restore
from dialogs.models import Dialog, SiteSettings
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog
from tests.harness.browser import session_key
from tests.harness.postgres import find_binaries
from tests.pixels import picture

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools of the PostgreSQL that the tests run on."""
    monkeypatch.setenv("PATH", f"{find_binaries()}:{os.environ['PATH']}")


@pytest.fixture
def dialog(script: Script) -> Dialog:
    """One with turns, usage, a reminder, a title that needs care, and its owner logged in."""
    script({"text": "Grüße, 世界 \U0001f600", "usage": {"prompt_tokens": 12, "completion_tokens": 3}})
    dialog = make_dialog()
    reminders.add(dialog.pk, 'keep "this"\n\\and\tthat')
    messages.post_message(dialog.pk, "Hi", attached=check_files([("a.png", picture())]))
    drive(dialog.pk)
    session_key(dialog.owner)
    return dialog


def rows(using: str = "default") -> list[Any]:
    """Everything stored but sessions and the database's generation, table by table,
    in one order whatever the database."""
    lines = StringIO()
    portable_dump.dump(lines, using)
    tables: dict[str, list[str]] = {}
    for line in map(json.loads, lines.getvalue().splitlines()):
        if isinstance(line, dict):
            current = tables.setdefault(line["model"], [])
        else:
            current.append(json.dumps(line))
    tables["dialogs.SiteSettings"] = []  # a restore gives the database another generation
    return sorted((model, sorted(lines)) for model, lines in tables.items())


@pytest.mark.parametrize("prefer_portable", [False, True], ids=["pg_dump", "portable"])
def test_postgresql_comes_back_as_it_was(dialog: Dialog, tmp_path: Path, prefer_portable: bool) -> None:
    before, file = rows(), tmp_path / "backup"
    manifest = back_up(file, using="default", prefer_portable=prefer_portable)
    assert manifest.database == (backups.PORTABLE if prefer_portable else backups.POSTGRES)
    reminders.add(dialog.pk, "written after the backup")
    User.objects.filter(pk=dialog.owner_id).update(username="renamed")
    restore(file, using="default", replace=True)
    assert rows() == before
    assert SiteSettings.current().generation
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_session")
        assert cursor.fetchone() == (0,), "a stolen backup logs nobody in"
    newer = reminders.add(dialog.pk, "numbers go on where they were")
    assert newer.pk not in {row[0] for model, lines in before if model == "dialogs.Reminder" for row in lines}


def test_both_backup_forms_of_sqlite_come_back(dialog: Dialog, tmp_path: Path, lite: str) -> None:
    before = rows()
    across = tmp_path / "across"
    back_up(across, using="default", prefer_portable=True)
    restore(across, using=lite)
    assert rows(lite) == before, "from PostgreSQL to SQLite"

    file = tmp_path / "backup"
    manifest = back_up(file, using=lite)
    assert manifest.database == backups.SQLITE
    Dialog.objects.using(lite).update(title="changed after the backup")
    restore(file, using=lite, replace=True)
    assert rows(lite) == before

    back = tmp_path / "back"
    back_up(back, using=lite, prefer_portable=True)
    Dialog.objects.update(title="changed here")
    restore(back, using="default", replace=True)
    assert rows() == before, "and from SQLite to PostgreSQL"


def test_a_backup_is_unpacked_by_every_python_of_3_11(
    dialog: Dialog, tmp_path: Path, lite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``extractall`` has no ``filter`` before 3.11.4, and Debian 12 brings 3.11.2: each restore failed there."""
    file = tmp_path / "backup.tar"
    back_up(file, using="default", prefer_portable=True)
    monkeypatch.delattr(tarfile.TarFile, "extractall")
    restore(file, using=lite)
    assert Dialog.objects.using(lite).filter(pk=dialog.pk).exists()


@pytest.mark.parametrize("name", ["../out", "/tmp/dominds-out"])
def test_nothing_of_a_backup_leaves_its_folder(name: str, tmp_path: Path, lite: str) -> None:
    file = tmp_path / "backup.tar"
    with tarfile.open(file, "w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(BackupFailed, match="no file below its folder"):
        restore(file, using=lite)


def test_a_database_in_use_is_not_replaced_unasked(dialog: Dialog, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    call_command("backup", str(file), portable=True, stdout=StringIO())
    before = rows()
    with pytest.raises(CommandError, match="--replace"):
        call_command("restore", str(file), stdout=StringIO())
    assert rows() == before


def test_a_failed_restore_changes_nothing(dialog: Dialog, tmp_path: Path) -> None:
    file, broken = tmp_path / "backup", tmp_path / "broken"
    back_up(file, using="default", prefer_portable=True)
    before = rows()
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path / "parts", filter="data")
    lines = (tmp_path / "parts" / backups.PORTABLE).read_text().splitlines()
    orphaned = [line for line in lines if not line.startswith(f"[{dialog.owner_id}, ")]  # the owner's row, among others
    (tmp_path / "parts" / backups.PORTABLE).write_text("\n".join(orphaned))
    with tarfile.open(broken, "w:gz") as archive:
        archive.add(tmp_path / "parts", ".")
    with pytest.raises(BackupFailed, match="Nothing was restored"):
        restore(broken, using="default", replace=True)
    assert rows() == before


def test_a_dump_that_the_tools_refuse_changes_nothing(dialog: Dialog, tmp_path: Path) -> None:
    before, dump = rows(), tmp_path / "database.pgdump"
    dump.write_bytes(b"PGDMP but not really")
    with pytest.raises(pg_dump.ToolFailed, match="pg_restore failed"):
        pg_dump.restore(connection, dump)
    assert rows() == before


def test_the_snapshot_is_of_one_moment(dialog: Dialog) -> None:
    """A message that arrives while the dump runs is in none of its tables."""
    with portable_dump._snapshot("default"):
        seen = Dialog.objects.values_list("last_turn_seq", flat=True).get()
        other = connection.copy()
        with other.cursor() as cursor:
            cursor.execute("UPDATE dialogs_dialog SET last_turn_seq = last_turn_seq + 1")
        other.close()
        assert Dialog.objects.values_list("last_turn_seq", flat=True).get() == seen
    assert Dialog.objects.values_list("last_turn_seq", flat=True).get() == seen + 1


def test_without_the_tools_postgresql_is_dumped_as_json_lines(
    dialog: Dialog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert back_up(tmp_path / "backup", using="default").database == backups.PORTABLE


def test_the_file_is_whole_its_owners_alone_and_never_overwritten(dialog: Dialog, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    text = StringIO()
    call_command("backup", str(file), portable=True, stdout=text)
    assert "files of .minds" in text.getvalue()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not list(tmp_path.glob(".backup-*"))
    with pytest.raises(CommandError, match="exists already"):
        call_command("backup", str(file))
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(CommandError, match="not a complete backup"):
        call_command("restore", str(file), replace=True)


def test_files_of_minds_come_back_where_they_are_missing(dialog: Dialog, tmp_path: Path, settings: Any) -> None:
    minds, file = Path(settings.MINDS_DIR), tmp_path / "backup"
    (minds / "more").mkdir()
    (minds / "more" / "script.yaml").write_text("steps: []")
    (minds / "more" / "script.yaml").chmod(0o600)
    (minds / ".env").write_text("OPENAI_API_KEY=canary")
    (minds / "secrets.yaml").symlink_to(minds / ".env")
    written = dict.fromkeys(("llm.yaml", "more/script.yaml", "script.yaml"))
    manifest = back_up(file, using="default", prefer_portable=True)
    assert manifest.minds == sorted(written)
    (minds / "more" / "script.yaml").unlink()
    (minds / "llm.yaml").write_text("# newer\n")
    restored = restore(file, using="default", replace=True)
    assert (restored.minds_written, restored.minds_kept) == (["more/script.yaml"], ["llm.yaml"])
    assert (minds / "llm.yaml").read_text() == "# newer\n"
    assert (minds / "more" / "script.yaml").stat().st_mode & 0o777 == 0o600


def test_a_backup_cannot_write_outside_of_minds(dialog: Dialog, tmp_path: Path, settings: Any) -> None:
    written, kept = backups._put_back_minds(tmp_path / "minds", ["../outside.yaml", "/etc/passwd"])
    assert (written, kept) == ([], [])


def test_a_backup_of_another_database_is_refused_with_advice(dialog: Dialog, tmp_path: Path, lite: str) -> None:
    file = tmp_path / "backup"
    back_up(file, using=lite)
    with pytest.raises(BackupFailed, match="--portable"):
        restore(file, using="default", replace=True)


def test_an_older_portable_backup_is_refused_before_anything_is_deleted(dialog: Dialog, tmp_path: Path) -> None:
    file, before = tmp_path / "backup", rows()
    back_up(file, using="default", prefer_portable=True)
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path / "parts", filter="data")
    stated = json.loads((tmp_path / "parts" / backups.MANIFEST).read_text())
    stated["migrations"].remove("dialogs.0001_initial")
    (tmp_path / "parts" / backups.MANIFEST).write_text(json.dumps(stated))
    with tarfile.open(tmp_path / "older", "w") as archive:
        archive.add(tmp_path / "parts", ".")
    with pytest.raises(BackupFailed, match=r"dialogs\.0001_initial"):
        restore(tmp_path / "older", using="default", replace=True)
    assert rows() == before
