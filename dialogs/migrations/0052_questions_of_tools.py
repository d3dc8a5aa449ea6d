from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0051_edited_arguments")]

    operations = [
        migrations.AddField(
            model_name="question",
            name="asked_by",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="the tool that asks it in the middle of its call",
                max_length=120,
            ),
        ),
    ]
