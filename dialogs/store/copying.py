"""Copies of rows inside the database: no text leaves it, however long the dialog is."""

from typing import Any

from django.db import connection
from django.db.models import QuerySet, Value


def copy_rows(rows: QuerySet[Any], **changed: Any) -> None:
    """Insert these rows once more, in their order, with new keys. ``changed`` are values or expressions, by column."""
    table = rows.model._meta
    fields = [field for field in table.concrete_fields if not field.primary_key]
    chosen = [_told(field, changed[field.attname]) if field.attname in changed else field.attname for field in fields]
    select, values = rows.order_by("pk").values_list(*chosen).query.sql_with_params()
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields)
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {quote(table.db_table)} ({columns}) {select}", values)  # nosec B608: names of the schema


def _told(field: Any, given: Any) -> Any:
    if hasattr(given, "resolve_expression"):
        return given
    return Value(given, output_field=field.target_field if field.is_relation else field)
