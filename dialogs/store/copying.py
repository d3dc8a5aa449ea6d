"""Copies of rows inside the database, so that no text leaves it, however long a dialog is."""

from typing import Any
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet, Value

from dialogs.models import Dialog, Turn
from dominds.budgets import FORK_ROWS
from remediation.models import RemediationRun, RemovedUnit


def check_number(turns: QuerySet[Turn], dialog_id: UUID) -> None:
    """Raise ``OverBudget`` if a fork with these turns of a dialog, and its archive, is too much for one transaction.
    Counting stops at the bound.
    """
    most = FORK_ROWS.most + 1
    archived = RemovedUnit.objects.filter(dialog=dialog_id)
    FORK_ROWS.check(turns[:most].count() + archived[:most].count(), "The fork would copy")


def copy_rows(rows: QuerySet[Any], **changed: Any) -> None:
    """Insert copies of these rows in their order, with new keys. ``changed`` maps columns to values or expressions."""
    table = rows.model._meta
    fields = [field for field in table.concrete_fields if not field.primary_key]
    chosen = [
        _as_value(field, changed[field.attname]) if field.attname in changed else field.attname for field in fields
    ]
    try:
        select, values = rows.order_by("pk").values_list(*chosen).query.sql_with_params()
    except EmptyResultSet:  # the query can find no row
        return
    quote = connection.ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields)
    with connection.cursor() as cursor:
        into = f"INSERT INTO {quote(table.db_table)} ({columns}) {select}"  # nosec B608: names of the schema
        cursor.execute(into, values)


def copy_rewrites(runs: QuerySet[RemediationRun], made: Dialog) -> None:
    """Copy rewrites with their archive. Only the originals keep their reward."""
    for run in runs.order_by("pk"):
        units = RemovedUnit.objects.filter(run=run.pk)
        run.pk = run.reward = run.reward_record = None
        run.dialog = made
        run.save(force_insert=True)
        copy_rows(units, dialog_id=made.pk, run_id=run.pk)


def _as_value(field: Any, given: Any) -> Any:
    if hasattr(given, "resolve_expression"):
        return given
    return Value(given, output_field=field.target_field if field.is_relation else field)
