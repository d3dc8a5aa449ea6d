from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0006_policies_by_name")]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="toolsets",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text="workspace, or ids of MCP servers; * is all of them, !name leaves one out",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="model_params",
            field=models.JSONField(
                blank=True, default=dict, help_text="settings for the model, by kind of API or under general"
            ),
        ),
    ]
