"""The database as JSON lines, which are the same for PostgreSQL and SQLite, and need no tool.

A line ``{"model", "columns"}`` opens a table. The lines after it are the rows of that table, as arrays.
"""

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from django.apps import apps
from django.contrib.sessions.models import Session
from django.core.management.color import no_style
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connections, transaction
from django.db.models import BinaryField, Model

BATCH = 500
IMAGE_BATCH = 4  # rows at once, each of which may hold megabytes


class _Encoder(DjangoJSONEncoder):
    """An encoder that keeps microseconds, which Django's own cuts, and that knows bytes."""

    def default(self, value: Any) -> Any:
        if isinstance(value, bytes | memoryview):
            return b64encode(value).decode()
        return value.isoformat() if hasattr(value, "isoformat") else super().default(value)


def _models() -> list[type[Model]]:
    result = apps.get_models(include_auto_created=True)
    return [model for model in result if model._meta.managed and not model._meta.proxy]


def _batch_of(model: type[Model]) -> int:
    return IMAGE_BATCH if any(isinstance(field, BinaryField) for field in model._meta.concrete_fields) else BATCH


def dump(lines: TextIO, using: str) -> None:
    """Write every row of every table except login sessions, in one consistent snapshot."""
    with _snapshot(using):
        for model in _models():
            if model is Session:
                continue
            columns = [field.attname for field in model._meta.concrete_fields]
            print(json.dumps({"model": model._meta.label, "columns": columns}), file=lines)
            rows = model._base_manager.using(using).order_by("pk").values_list(*columns)
            for row in rows.iterator(chunk_size=_batch_of(model)):
                print(json.dumps(row, cls=_Encoder), file=lines)


@contextmanager
def _snapshot(using: str) -> Iterator[None]:
    connection = connections[using]
    if connection.vendor == "postgresql":
        with transaction.atomic(using=using), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            _allow_minutes(cursor)
            yield
        return
    with connection.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")  # atomic() would take SQLite's only write lock
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


def _allow_minutes(cursor: Any) -> None:
    cursor.execute("SET LOCAL statement_timeout = 0")
    cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")


def load(lines: TextIO, using: str) -> None:
    """Replace all rows of all tables, in one transaction; foreign keys are checked at its end."""
    connection = connections[using]
    tables = [model._meta.db_table for model in _models()]
    with transaction.atomic(using=using), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            _allow_minutes(cursor)
        for statement in connection.ops.sql_flush(no_style(), tables, allow_cascade=True):
            cursor.execute(statement)
        for model, rows in _batches(lines):
            model._base_manager.using(using).bulk_create(rows)
        for statement in connection.ops.sequence_reset_sql(no_style(), _models()):
            cursor.execute(statement)


def _batches(lines: TextIO) -> Iterator[tuple[type[Model], list[Model]]]:
    model: type[Model] | None = None
    fields: list[Any] = []
    rows: list[Model] = []
    for line in lines:
        result = json.loads(line)
        if isinstance(result, dict):
            if model is not None and rows:
                yield model, rows
            model, rows = apps.get_model(result["model"]), []
            by_name = {field.attname: field for field in model._meta.concrete_fields}
            fields = [by_name[name] for name in result["columns"]]
            continue
        assert model is not None, "the first line opens a table"
        values = {field.attname: _value(field, value) for field, value in zip(fields, result, strict=True)}
        rows.append(model(**values))
        if len(rows) == _batch_of(model):
            yield model, rows
            rows = []
    if model is not None and rows:
        yield model, rows


def _value(field: Any, value: Any) -> Any:
    target = field.target_field if field.is_relation else field
    return None if value is None else target.to_python(value)
