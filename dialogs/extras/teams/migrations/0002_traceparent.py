from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("teams", "0001_side_dialogs")]

    operations = [
        migrations.AddField(
            model_name="sidedialog",
            name="traceparent",
            field=models.CharField(
                blank=True, db_default="", help_text="that call's span, if it was kept", max_length=55
            ),
        ),
    ]
