from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0009_permissions_and_authors")]

    operations = [
        migrations.AddField(
            model_name="sitesettings",
            name="generation",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="of the database: another one after each restore, so that cursors of before are known as such",
                max_length=32,
            ),
        ),
    ]
