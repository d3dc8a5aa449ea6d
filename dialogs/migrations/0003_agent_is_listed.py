from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dialogs', '0002_artifact'),
    ]

    operations = [
        migrations.AddField(
            model_name='agent',
            name='is_listed',
            field=models.BooleanField(default=False, editable=False, help_text='named by team.yaml, or by the demo team, at the last synchronisation'),
        ),
    ]
