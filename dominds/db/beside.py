"""Migration operations that do not lock out the writers of a table."""

from typing import Any

from django.db import migrations


class AddIndexBeside(migrations.AddIndex):
    """Adds an index concurrently, in a migration that is not atomic. The remains of an aborted attempt are removed."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            schema_editor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{self.index.name}"')
            schema_editor.add_index(model, self.index, concurrently=True)
