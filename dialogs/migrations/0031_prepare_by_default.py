from typing import Any

from django.db import migrations, models


def prepare(apps: Any, schema_editor: Any) -> None:
    """No released version had the switch: whoever has it off never chose so."""
    agents = apps.get_model("dialogs", "Agent").objects.using(schema_editor.connection.alias)
    agents.filter(is_demo=False).update(prepare_rewrites=True)


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0030_identities")]

    operations = [
        migrations.AlterField(
            model_name="agent",
            name="prepare_rewrites",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="make the rewrite that comes next while a person's dialog rests, so that no message waits for its summary",
            ),
        ),
        migrations.RunPython(prepare, migrations.RunPython.noop, elidable=True),
    ]
