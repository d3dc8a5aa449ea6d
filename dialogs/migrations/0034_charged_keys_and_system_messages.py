from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.utils import timezone


def of_this_month(apps: Any, schema_editor: Any) -> None:
    """So that what a key has cost since the month began still counts: until now its dialogs by /v1 told."""
    month = timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    client, generation = (
        apps.get_model("dialogs", name).objects.using(schema_editor.connection.alias)
        for name in ("Client", "Generation")
    )
    held = client.filter(dialog=models.OuterRef("dialog")).values("key")[:1]
    calls = generation.filter(started_at__gte=month, dialog__client__key__isnull=False)
    calls.update(key=models.Subquery(held))


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0033_webhook_rewrites")]

    operations = [
        migrations.AddField(
            model_name="client",
            name="system_messages",
            field=models.JSONField(
                help_text="those in the middle of the conversation: [[seq of the turn before it, text]]", null=True
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="key",
            field=models.ForeignKey(
                db_index=False,
                help_text="whose call set it to work last, and pays for that; empty: a person",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="dialogs.apikey",
            ),
        ),
        migrations.AddField(
            model_name="generation",
            name="key",
            field=models.ForeignKey(
                db_index=False,
                help_text="that pays for it; empty: none",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="dialogs.apikey",
            ),
        ),
        migrations.AddIndex(
            model_name="generation",
            index=models.Index(
                condition=models.Q(("key__isnull", False)), fields=["key", "started_at"], name="generation_by_key"
            ),
        ),
        migrations.RunPython(of_this_month, migrations.RunPython.noop, elidable=True),
    ]
