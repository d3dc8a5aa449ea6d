from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dialogs', '0024_connected_providers'),
    ]

    operations = [
        migrations.AlterField(
            model_name='question',
            name='kind',
            field=models.CharField(choices=[('question', 'Question'), ('context_health_critical', 'Critical'), ('budget_exceeded', 'Budget'), ('provider_refused', 'Refused')], max_length=24),
        ),
    ]
