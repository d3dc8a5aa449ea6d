from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0047_defaults_for_the_last_release")]
    operations = [
        migrations.AddField(
            model_name="connectedprovider",
            name="windows",
            field=models.JSONField(blank=True, help_text="tokens that a person stated, by model", null=True),
        ),
    ]
