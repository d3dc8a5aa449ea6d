from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0007_toolsets_and_model_params")]

    operations = [
        migrations.AddField(
            model_name="dialog",
            name="damaged_at",
            field=models.DateTimeField(null=True, help_text="its rows could not be read; until the next message"),
        ),
    ]
