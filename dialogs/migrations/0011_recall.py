import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0010_generation_of_the_database")]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="recall",
            field=models.BooleanField(
                default=True, help_text="bring back into a request what is out of sight and bears on the newest message"
            ),
        ),
        migrations.AddField(
            model_name="generation",
            name="recalled",
            field=models.JSONField(
                default=list, help_text="seqs of the turns that its request brought back into sight"
            ),
        ),
        migrations.AddField(model_name="personsettings", name="recall", field=models.BooleanField(default=True)),
        migrations.CreateModel(
            name="RecallChoice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seq", models.PositiveIntegerField(help_text="of the turn")),
                (
                    "choice",
                    models.CharField(choices=[("pinned", "Pinned"), ("dismissed", "Dismissed")], max_length=10),
                ),
                (
                    "dialog",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="recall_choices",
                        to="dialogs.dialog",
                    ),
                ),
            ],
            options={
                "ordering": ["seq"],
                "constraints": [models.UniqueConstraint(fields=("dialog", "seq"), name="recall_choice_unique")],
            },
        ),
    ]
