from datetime import UTC, datetime, time
from typing import Any

from django.db import migrations, models

NOON = time(12)
HELP = "of the quarter; noon of a day of UTC that an older version summed up whole"


def keep_days(apps: Any, schema_editor: Any) -> None:
    """Days that were summed up whole stay days of UTC: noon of a day of UTC is in the same day nearly everywhere."""
    alias = schema_editor.connection.alias
    for name in ("CallTotals", "EmbeddingUse"):
        rows = apps.get_model("dialogs", name).objects.using(alias)
        for day in rows.order_by("day").values_list("day", flat=True).distinct():
            rows.filter(day=day).update(began_at=datetime.combine(day, NOON, UTC))


class Migration(migrations.Migration):
    """People choose the zone of times and days; sums are kept by the quarter of an hour, so that any zone's days can be made of them."""

    dependencies = [("dialogs", "0043_steps_of_escalation")]

    operations = [
        migrations.RenameField("personsettings", "zone", "seen_zone"),
        migrations.AlterField(
            "personsettings",
            "seen_zone",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="of the browser that was used last: what holds where none was chosen",
                max_length=64,
            ),
        ),
        migrations.AddField(
            "personsettings",
            "zone",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="of times and days, such as Europe/Berlin; empty: that of the browser",
                max_length=64,
            ),
        ),
        migrations.RenameModel("DayOfCalls", "CallTotals"),
        migrations.AlterModelOptions("calltotals", {"verbose_name_plural": "call totals"}),
        migrations.AddField("calltotals", "began_at", models.DateTimeField(null=True)),
        migrations.AddField("embeddinguse", "began_at", models.DateTimeField(null=True)),
        migrations.RunPython(keep_days, migrations.RunPython.noop),
        migrations.RemoveConstraint("calltotals", "day_of_calls_unique"),
        migrations.RemoveConstraint("embeddinguse", "embedding_use_unique"),
        migrations.RemoveField("calltotals", "day"),
        migrations.RemoveField("embeddinguse", "day"),
        migrations.AlterField("calltotals", "began_at", models.DateTimeField(help_text=HELP)),
        migrations.AlterField("embeddinguse", "began_at", models.DateTimeField(help_text=HELP)),
        migrations.AddConstraint(
            "calltotals",
            models.UniqueConstraint(
                fields=["began_at", "person", "agent", "provider", "model"], name="call_totals_unique"
            ),
        ),
        migrations.AddConstraint(
            "embeddinguse",
            models.UniqueConstraint(
                fields=["person", "key", "began_at", "agent", "provider", "model"], name="embedding_use_unique"
            ),
        ),
    ]
