from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("remediation", "0002_version_0_2_0")]
    operations = [
        migrations.AddField(
            model_name="remediationrun",
            name="rejected",
            field=models.CharField(blank=True, db_default="", default="", max_length=400),
        ),
    ]
