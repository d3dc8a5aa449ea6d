from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0048_windows_of_connected_models")]
    operations = [
        migrations.AddField(
            model_name="generation",
            name="est_tokens",
            field=models.PositiveIntegerField(
                help_text="of the whole prompt, as pages told before it was sent", null=True
            ),
        ),
        migrations.AlterField(
            model_name="generation",
            name="est_prompt_tokens",
            field=models.PositiveIntegerField(help_text="as counted, before any correction", null=True),
        ),
    ]
