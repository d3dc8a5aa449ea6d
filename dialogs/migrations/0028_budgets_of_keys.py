import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0027_deliveries")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="budget_usd",
            field=models.DecimalField(
                blank=True,
                decimal_places=10,
                help_text="what its calls may cost in a calendar month; empty: no budget",
                max_digits=18,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="apikey",
            name="last_used_at",
            field=models.DateTimeField(blank=True, help_text="noted once a minute at most", null=True),
        ),
        migrations.AddField(
            model_name="embeddinguse",
            name="key",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="dialogs.apikey"
            ),
        ),
        migrations.RemoveConstraint(model_name="embeddinguse", name="embedding_use_unique"),
        migrations.AddConstraint(
            model_name="embeddinguse",
            constraint=models.UniqueConstraint(
                fields=("person", "key", "day", "agent", "provider", "model"), name="embedding_use_unique"
            ),
        ),
    ]
