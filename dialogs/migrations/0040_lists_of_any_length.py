import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from dominds.db.beside import AddIndexBeside


class Migration(migrations.Migration):
    """What was cut off begins anew: indexes are removed before they are made, and the table, one statement, comes last."""

    atomic = False  # on PostgreSQL an index that lets others write is made outside of transactions
    dependencies = [
        ("dialogs", "0039_tool_servers"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        AddIndexBeside("dialog", models.Index(fields=["created_at", "id"], name="dialog_oldest")),
        AddIndexBeside("question", models.Index(fields=["created_at", "id"], name="question_newest")),
        migrations.CreateModel(
            name="DayOfCalls",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField()),
                ("agent", models.CharField(max_length=80)),
                ("provider", models.CharField(max_length=80)),
                ("model", models.CharField(max_length=120)),
                ("calls", models.PositiveIntegerField()),
                ("prompt_tokens", models.PositiveBigIntegerField()),
                ("cache_read_tokens", models.PositiveBigIntegerField()),
                ("completion_tokens", models.PositiveBigIntegerField()),
                ("cost_usd", models.DecimalField(decimal_places=10, max_digits=18)),
                ("unpriced", models.PositiveIntegerField(help_text="calls without a report or a known price")),
                (
                    "person",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "person", "agent", "provider", "model"), name="day_of_calls_unique"
                    )
                ]
            },
        ),
    ]
