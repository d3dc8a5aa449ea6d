from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0054_turn_vectors")]
    operations = [
        migrations.AddField(
            model_name="generation",
            name="provider_fields",
            field=models.JSONField(
                help_text="what else the provider said, for programs: HTTP status of a refusal, fields of an answer",
                null=True,
            ),
        ),
    ]
