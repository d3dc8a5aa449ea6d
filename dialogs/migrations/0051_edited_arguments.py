from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0050_fields_of_extensions")]

    operations = [
        migrations.AddField(
            model_name="question",
            name="edited_arguments",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="JSON that a person allowed in place of the call's arguments",
            ),
        ),
    ]
