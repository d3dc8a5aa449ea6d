from typing import Any

from django.db import migrations, models


class AddIndexBeside(migrations.AddIndex):
    """On PostgreSQL beside whoever writes to the table; what an attempt that was cut off left behind is removed first."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            schema_editor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{self.index.name}"')
            schema_editor.add_index(model, self.index, concurrently=True)


class Migration(migrations.Migration):
    atomic = False  # on PostgreSQL an index that lets others write is made outside of transactions
    dependencies = [("dialogs", "0036_language")]

    operations = [
        AddIndexBeside("dialog", models.Index(fields=["-active_at"], name="dialog_newest")),
        AddIndexBeside("question", models.Index(fields=["state", "created_at"], name="question_by_state")),
    ]
