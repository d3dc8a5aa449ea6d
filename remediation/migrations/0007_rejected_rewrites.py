from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("remediation", "0006_prepared_rewrites")]
    operations = [
        migrations.AddField(
            model_name="remediationrun",
            name="rejected",
            field=models.CharField(blank=True, db_default="", default="", max_length=400),
        ),
    ]
