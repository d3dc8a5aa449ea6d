from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0032_folders_and_templates")]

    operations = [
        migrations.AlterField(
            model_name="sitesettings",
            name="webhook_url",
            field=models.URLField(blank=True, help_text="called for questions, levels and rewrites"),
        ),
    ]
