from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0037_indexes_of_long_lists")]

    operations = [
        migrations.AddField(
            model_name="question",
            name="choices",
            field=models.JSONField(
                db_default=models.Value([], models.JSONField()), default=list, help_text="answers to choose from, if any"
            ),
        ),
    ]
