"""Backup of everything that Dominds stores to one file, and its restoration.

A backup is a tar archive: ``manifest.json``, the database in one consistent snapshot, and the YAML files of ``.minds``.
The database is a dump by its own tools (``pg_dump``, or SQLite's online copy), or, where these are missing, the
portable JSON lines of ``dialogs.extras.backups.portable_dump``. A backup has no login sessions, nothing of Redis, no
environment with its keys, and no signing key.
"""

import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder
from django.db.utils import DatabaseError
from django.utils import timezone

from dialogs.extras.backups import pg_dump, portable_dump
from dialogs.models import SiteSettings

FORMAT = 1
POSTGRES, SQLITE, PORTABLE = "database.pgdump", "database.sqlite3", "database.jsonl"
ENGINES = {POSTGRES: "postgresql", SQLITE: "sqlite"}
MANIFEST, MINDS = "manifest.json", "minds"
LARGEST_MINDS_FILE = 256 * 1024  # bytes
LEFT_OUT = "django_session"


class BackupFailed(Exception):
    """Raised when a backup failed. The message tells the operator what went wrong, and the way out."""


@dataclass(frozen=True, slots=True)
class Manifest:
    format: int
    database: str  # the name of the archive's member that holds it
    created_at: str
    migrations: list[str]
    minds: list[str]


# -- Backing up --------------------------------------------------------------------------------------------------------


def back_up(file: Path, *, using: str, prefer_portable: bool = False) -> Manifest:
    """Write the backup. The file appears only when it is complete, and only its owner can read it."""
    if file.exists():
        raise BackupFailed(f"{file} exists already. Choose another name, or remove it first.")
    with tempfile.TemporaryDirectory(prefix=".backup-", dir=file.absolute().parent) as folder:
        database = _write_database(Path(folder), using, prefer_portable=prefer_portable)
        minds = _minds_files()
        manifest = Manifest(
            format=FORMAT,
            database=database.name,
            created_at=timezone.now().isoformat(),
            migrations=_migrations(using),
            minds=[str(path.relative_to(settings.MINDS_DIR)) for path in minds],
        )
        stated = Path(folder) / MANIFEST
        stated.write_text(json.dumps(asdict(manifest), indent=1))
        whole = Path(folder) / "whole"
        whole.touch(mode=0o600)
        with whole.open("wb") as written:
            with tarfile.open(fileobj=written, mode="w:gz", compresslevel=3) as archive:
                archive.add(stated, MANIFEST)
                archive.add(database, database.name)
                for path, name in zip(minds, manifest.minds, strict=True):
                    archive.add(path, f"{MINDS}/{name}")
            written.flush()
            os.fsync(written.fileno())
        whole.rename(file)
    return manifest


def _write_database(folder: Path, using: str, *, prefer_portable: bool) -> Path:
    vendor = connections[using].vendor
    if not prefer_portable and vendor == "sqlite":
        return _copy_sqlite(folder / SQLITE, using)
    if not prefer_portable and vendor == "postgresql" and pg_dump.can_dump(connections[using]):
        return pg_dump.dump(connections[using], folder / POSTGRES, without_rows_of=LEFT_OUT)
    with (folder / PORTABLE).open("w") as lines:
        portable_dump.dump(lines, using)
    return folder / PORTABLE


def _copy_sqlite(target: Path, using: str) -> Path:
    """Make SQLite's online copy, a snapshot while others go on writing."""
    connection = connections[using]
    connection.ensure_connection()
    with closing(sqlite3.connect(target)) as copy:
        connection.connection.backup(copy)
        copy.execute(f"DELETE FROM {LEFT_OUT}")  # nosec B608: a constant
        copy.commit()
        copy.execute("VACUUM")
        copy.execute("PRAGMA journal_mode=DELETE")
        result = copy.execute("PRAGMA quick_check").fetchone()[0]
    if result != "ok":
        raise BackupFailed(f"The copy of the database is damaged: {result}")
    return target


def _minds_files() -> list[Path]:
    folder = settings.MINDS_DIR
    results = sorted(path for suffix in ("yaml", "yml") for path in folder.rglob(f"*.{suffix}"))
    return [path for path in results if not path.is_symlink() and path.stat().st_size <= LARGEST_MINDS_FILE]


def _migrations(using: str) -> list[str]:
    return sorted(".".join(name) for name in MigrationRecorder(connections[using]).applied_migrations())


# -- Restoring ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Restored:
    manifest: Manifest
    minds_written: list[str]
    minds_kept: list[str]  # files that were there already and differ


def restore(file: Path, *, using: str, replace: bool = False) -> Restored:
    """Bring back everything in a backup, or nothing, and migrate it to this version."""
    if not replace and not is_empty(using):
        raise BackupFailed(
            "This database holds people or dialogs already. Restore into an empty one, or say --replace: everything in "
            "it is then deleted."
        )
    with tempfile.TemporaryDirectory(prefix="dominds-restore-") as folder:
        manifest = _unpack(file, Path(folder))
        _read_database(Path(folder) / manifest.database, manifest, using)
        SiteSettings.begin_generation(using)
        written, kept = _put_back_minds(Path(folder) / MINDS, manifest.minds)
    return Restored(manifest, written, kept)


def is_empty(using: str) -> bool:
    """Check that a restore loses nothing: the database has no people and no dialogs. Tables and agents may exist."""
    connection = connections[using]
    tables = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        for table in tables & {"auth_user", "dialogs_dialog"}:
            cursor.execute(f"SELECT 1 FROM {table} LIMIT 1")  # nosec B608: one of two constants
            if cursor.fetchone():
                return False
    return True


def _unpack(file: Path, folder: Path) -> Manifest:
    try:
        with tarfile.open(file) as archive:
            _extract(archive, folder)
        stated: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
        manifest = Manifest(**stated)
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0].rstrip(":")  # in further lines, tarfile lists each compression's error
        raise BackupFailed(f"{file} is not a complete backup of Dominds: {reason}") from error
    if manifest.format != FORMAT or manifest.database not in (POSTGRES, SQLITE, PORTABLE):
        raise BackupFailed(f"{file} was made by a newer version of Dominds. Restore it with that version.")
    if not (folder / manifest.database).is_file():
        raise BackupFailed(f"{file} holds no database.")
    return manifest


def _extract(archive: tarfile.TarFile, folder: Path) -> None:
    """Extract only files, each below ``folder``. The Python of Debian 12 lacks the ``filter`` of ``extractall``."""
    for member in archive:
        path = (folder / member.name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ValueError(f"{member.name!r} is no file below its folder")
        if member.isfile() and (content := archive.extractfile(member)) is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with content, path.open("xb") as written:
                shutil.copyfileobj(content, written)
            path.chmod(member.mode & 0o777)


def _read_database(part: Path, manifest: Manifest, using: str) -> None:
    connection = connections[using]
    fitting = ENGINES.get(part.name, connection.vendor)
    if fitting != connection.vendor:
        raise BackupFailed(
            f"This backup is one of {fitting}, and DATABASE_URL names {connection.vendor}. Restore it into {fitting}, "
            "and take a backup with --portable there: that fits either."
        )
    try:
        if part.name == POSTGRES:
            pg_dump.restore(connection, part)
        elif part.name == SQLITE:
            _put_back_sqlite(part, using)
        else:
            call_command("migrate", database=using, interactive=False, verbosity=0)
            _check_migrations(manifest, using)
            with part.open() as lines:
                portable_dump.load(lines, using)
    except (DatabaseError, sqlite3.Error, pg_dump.ToolFailed) as error:
        raise BackupFailed(f"Nothing was restored: {error}") from error
    if part.name != PORTABLE:
        call_command("migrate", database=using, interactive=False, verbosity=0)


def _check_migrations(manifest: Manifest, using: str) -> None:
    if differing := sorted(set(manifest.migrations) ^ set(_migrations(using))):
        raise BackupFailed(
            f"The backup's tables differ from this version's ({', '.join(differing[:5])}). Restore it with the version "
            "of Dominds that made it, then upgrade."
        )


def _put_back_sqlite(part: Path, using: str) -> None:
    connection = connections[using]
    connection.ensure_connection()
    with closing(sqlite3.connect(f"file:{part}?mode=ro", uri=True)) as copy:
        copy.backup(connection.connection)
    connection.close()


def _put_back_minds(folder: Path, names: list[str]) -> tuple[list[str], list[str]]:
    """Put files back, except where one exists, which may be newer than the backup."""
    written, kept = [], []
    for name in names:
        source, target = (folder / name).resolve(), settings.MINDS_DIR / name
        if not source.is_relative_to(folder.resolve()) or not source.is_file():
            continue
        if target.exists():
            if target.read_bytes() != source.read_bytes():
                kept.append(name)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)  # keeps the file's mode, since some files hold secrets
        written.append(name)
    return written, kept
