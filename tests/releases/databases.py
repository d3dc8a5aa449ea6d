"""A database as a release left it, read without any of our models."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.harness.postgres import PostgresServer
from tests.harness.stack import ROOT

DUMPS = Path(__file__).parent / "dumps"
RELEASES = ("0.1.0", "0.2.0.dev")
VENDORS = ("postgresql", "sqlite")

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column as the database describes it."""

    type: str
    may_be_null: bool
    has_default: bool
    length: int | None = None


@dataclass(frozen=True)
class Database:
    """A database by its address, as ``DATABASE_URL`` has it; ``sqlite:///`` and a file, or a server's."""

    url: str

    def load(self, dump: Path) -> None:
        """Run the statements of a dump."""
        text = dump.read_text()
        if file := self._file:
            with closing(sqlite3.connect(file)) as database:
                database.executescript(text)
        else:
            with psycopg.connect(self._conninfo, autocommit=True) as connection:
                connection.execute(text.encode())

    def upgrade(self, folder: Path) -> None:
        """Run the migrations, in a process of their own."""
        settings = {"DATABASE_URL": self.url, "DOMINDS_DATA_DIR": str(folder), "DOMINDS_MINDS_DIR": str(folder)}
        command = [sys.executable, "manage.py", "migrate", "-v", "0"]
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, **settings}, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def query(self, statement: str) -> list[Row]:
        """Return the rows of a statement, each by its columns."""
        if file := self._file:
            with closing(sqlite3.connect(file)) as database:
                cursor = database.execute(statement)
                names = [each[0] for each in cursor.description]
                return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        with psycopg.connect(self._conninfo, row_factory=psycopg.rows.dict_row) as connection:
            return list(connection.execute(statement.encode()).fetchall())

    def tables(self) -> list[str]:
        """Return the names of all tables."""
        if self._file:
            statement = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        else:
            statement = "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'"
        return sorted(row["name"] for row in self.query(statement))

    def columns(self, table: str) -> dict[str, Column]:
        """Return the columns of a table."""
        if self._file:
            rows = self.query(f"SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('{table}')")
            return {
                row["name"]: Column(
                    row["type"].partition("(")[0],
                    not row["notnull"],
                    row["dflt_value"] is not None,
                    _length(row["type"]),
                )
                for row in rows
            }
        rows = self.query(
            "SELECT column_name, data_type, is_nullable, column_default, character_maximum_length "
            f"FROM information_schema.columns WHERE table_schema = 'public' AND table_name = '{table}'"
        )
        return {
            row["column_name"]: Column(
                row["data_type"],
                row["is_nullable"] == "YES",
                row["column_default"] is not None,
                row["character_maximum_length"],
            )
            for row in rows
        }

    def indexes(self) -> set[str]:
        """Return the names of all indexes; a primary key's stays that of its first table's name."""
        if self._file:
            statement = "SELECT name FROM sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite_%'"
        else:
            statement = (
                "SELECT indexname AS name FROM pg_indexes WHERE schemaname = 'public' AND indexname NOT LIKE '%_pkey'"
            )
        return {row["name"] for row in self.query(statement)}

    @property
    def _file(self) -> str:
        return self.url.removeprefix("sqlite:///") if self.url.startswith("sqlite:///") else ""

    @property
    def _conninfo(self) -> str:
        return self.url.replace("postgres://", "postgresql://", 1)


def _length(declared: str) -> int | None:
    inside = declared.partition("(")[2].rstrip(")")
    return int(inside) if inside.isdigit() else None


def new_database(vendor: str, name: str, server: PostgresServer, folder: Path) -> Database:
    """Return an empty database of a kind."""
    return Database(server.create_database(name) if vendor == "postgresql" else f"sqlite:///{folder / name}.sqlite3")
