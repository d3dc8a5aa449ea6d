from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class AddIndexBeside(AddIndexConcurrently):
    """On PostgreSQL beside whoever writes to the table, on SQLite within the only writer's turn. What an attempt that was cut
    off left behind is removed first."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{self.index.name}"')
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        else:
            migrations.AddIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            super().database_backwards(app_label, schema_editor, from_state, to_state)
        else:
            migrations.AddIndex.database_backwards(self, app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):
    atomic = False  # on PostgreSQL an index that lets others write is made outside of transactions
    dependencies = [("dialogs", "0036_language")]

    operations = [
        AddIndexBeside("dialog", models.Index(fields=["-active_at"], name="dialog_newest")),
        AddIndexBeside("question", models.Index(fields=["state", "created_at"], name="question_by_state")),
    ]
