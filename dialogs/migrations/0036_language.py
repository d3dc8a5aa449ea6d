from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0035_web_push")]

    operations = [
        migrations.AddField(
            model_name="personsettings",
            name="language",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="of the pages; empty: what the browser prefers", max_length=12
            ),
        ),
    ]
