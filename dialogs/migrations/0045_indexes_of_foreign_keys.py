from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from dominds.db.beside import AddIndexBeside

OF_FOREIGN_KEYS = (
    "dialogs_dialog_owner_id_049165d2",
    "dialogs_dialog_agent_id_ebae33e4",
    "dialogs_dialog_agent_id_ebae33e4_like",
    "dialogs_dialog_forked_from_id_0afc962c",
    "dialogs_turn_generation_id_4c27a21d",
)


def remove_indexes(apps: Any, schema_editor: Any) -> None:
    """By name: where a field changes, SQLite would copy the whole table."""
    beside = " CONCURRENTLY" if schema_editor.connection.vendor == "postgresql" else ""
    for name in OF_FOREIGN_KEYS:
        schema_editor.execute(f'DROP INDEX{beside} IF EXISTS "{name}"')


class Migration(migrations.Migration):
    """Fewer places that each update of a dialog writes anew. The indexes that take over are made first."""

    atomic = False  # on PostgreSQL an index that lets others write is made outside of transactions
    dependencies = [
        ("dialogs", "0044_zones_and_totals_by_quarter"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        AddIndexBeside("dialog", models.Index(fields=["agent"], name="dialog_of_agent")),
        AddIndexBeside(
            "dialog",
            models.Index(
                fields=["forked_from"], condition=models.Q(forked_from__isnull=False), name="dialog_branched_off"
            ),
        ),
        AddIndexBeside(
            "turn",
            models.Index(
                fields=["generation"], condition=models.Q(generation__isnull=False), name="turn_of_generation"
            ),
        ),
        migrations.SeparateDatabaseAndState(
            [migrations.RunPython(remove_indexes, migrations.RunPython.noop)],
            [
                migrations.AlterField(
                    "dialog",
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="dialogs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                migrations.AlterField(
                    "dialog",
                    "agent",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="dialogs",
                        to="dialogs.agent",
                    ),
                ),
                migrations.AlterField(
                    "dialog",
                    "forked_from",
                    models.ForeignKey(
                        db_index=False,
                        help_text="the dialog that it branches off",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="forks",
                        to="dialogs.dialog",
                    ),
                ),
                migrations.AlterField(
                    "turn",
                    "generation",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="turns",
                        to="dialogs.generation",
                    ),
                ),
            ],
        ),
    ]
