from typing import Any

from django.db import migrations, models
from django.db.models.functions import Left

LENGTH, LENGTH_BETWEEN = 24, 60


def narrow(apps: Any, schema_editor: Any) -> None:
    """Give a database of a commit between the releases the column of the releases."""
    snapshot, connection = apps.get_model("health", "HealthSnapshot"), schema_editor.connection
    with connection.cursor() as cursor:
        columns = connection.introspection.get_table_description(cursor, snapshot._meta.db_table)
    column = next(column for column in columns if column.name == "limit_source")
    if (column.internal_size or column.display_size) != LENGTH_BETWEEN:
        return
    wide = models.CharField(blank=True, max_length=LENGTH_BETWEEN)
    wide.set_attributes_from_name("limit_source")
    wide.model = snapshot
    snapshot.objects.update(limit_source=Left("limit_source", LENGTH))
    schema_editor.alter_field(snapshot, wide, snapshot._meta.get_field("limit_source"))


class Migration(migrations.Migration):
    dependencies = [("health", "0002_longer_limit_source")]
    operations = [migrations.RunPython(narrow, migrations.RunPython.noop)]
