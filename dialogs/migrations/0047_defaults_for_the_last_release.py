from copy import copy
from typing import Any

from django.db import migrations
from django.db.models import NOT_PROVIDED

COLUMNS = {
    "Agent": ("model_params", "recall", "suggestions", "toolsets"),
    "Dialog": ("beginning", "context_epoch", "repeats", "statements"),
    "Generation": ("recalled",),
    "PersonSettings": ("recall",),
}


def set_defaults(apps: Any, schema_editor: Any) -> None:
    """Give these columns their defaults where a database of before has none."""
    connection = schema_editor.connection
    for name, columns in COLUMNS.items():
        model = apps.get_model("dialogs", name)
        with connection.cursor() as cursor:
            description = connection.introspection.get_table_description(cursor, model._meta.db_table)
        without = {column.name for column in description if column.default is None}
        for field in map(model._meta.get_field, columns):
            if field.column in without:
                before = copy(field)
                before.db_default = NOT_PROVIDED
                schema_editor.alter_field(model, before, field)


class Migration(migrations.Migration):
    """Processes of 0.1.0 insert rows without columns that they do not know.

    The columns are made with these defaults since 0002_version_0_2_0; an unreleased 0.2.0 made them without.
    """

    dependencies = [("dialogs", "0003_version_0_2_0_rows_and_indexes")]

    operations = [migrations.RunPython(set_defaults, migrations.RunPython.noop)]
