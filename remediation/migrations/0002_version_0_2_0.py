import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """What version 0.2.0 adds."""

    replaces = [
        ("remediation", "0003_policies_by_name"),
        ("remediation", "0004_what_rewrites_save"),
        ("remediation", "0005_prompts_and_facts_of_rewrites"),
        ("remediation", "0006_prepared_rewrites"),
    ]
    dependencies = [
        ("dialogs", "0002_version_0_2_0"),
        ("remediation", "0001_version_0_1_0"),
    ]

    operations = [
        migrations.AddField(
            model_name="remediationrun",
            name="facts",
            field=models.JSONField(
                help_text="what became of the facts in what was removed; measured when a person looks", null=True
            ),
        ),
        migrations.AddField(
            model_name="remediationrun",
            name="prompts",
            field=models.JSONField(
                db_default={},
                default=dict,
                help_text="versions of the prompts that models were asked with, by their names",
            ),
        ),
        migrations.AddField(
            model_name="remediationrun",
            name="reread_usd",
            field=models.DecimalField(
                decimal_places=10,
                help_text="est., once: the new beginning, read without the cache",
                max_digits=18,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="remediationrun",
            name="saving_usd",
            field=models.DecimalField(
                decimal_places=10,
                help_text="est., in each later request; empty: no price of a cache",
                max_digits=18,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="remediationrun",
            name="policy",
            field=models.CharField(help_text="the name of the policy whose rewrite it was", max_length=16),
        ),
        migrations.CreateModel(
            name="PreparedRewrite",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=64)),
                (
                    "covers",
                    models.PositiveIntegerField(help_text="units of the view that it was made from, oldest first"),
                ),
                ("content", models.JSONField(help_text="empty: none was found that gains enough", null=True)),
                ("prompts", models.JSONField(db_default={}, default=dict)),
                (
                    "dialog",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="prepared_rewrite",
                        to="dialogs.dialog",
                    ),
                ),
            ],
        ),
    ]
