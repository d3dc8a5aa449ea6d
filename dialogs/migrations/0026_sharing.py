import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('dialogs', '0025_questions_of_refusals'),
    ]

    operations = [
        migrations.AddField(
            model_name='dialog',
            name='group',
            field=models.ForeignKey(blank=True, db_index=False, help_text='whose members may read it and act in it', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='dialogs', to='auth.group'),
        ),
        migrations.AddField(
            model_name='dialog',
            name='link',
            field=models.UUIDField(help_text='of the address at which anybody may read it; empty: there is none', null=True),
        ),
        migrations.AddIndex(
            model_name='dialog',
            index=models.Index(condition=models.Q(('group__isnull', False)), fields=['group'], name='dialog_shared'),
        ),
        migrations.AddIndex(
            model_name='dialog',
            index=models.Index(condition=models.Q(('link__isnull', False)), fields=['link'], name='dialog_linked'),
        ),
    ]
