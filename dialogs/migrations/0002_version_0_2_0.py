import django.db.models.deletion
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """The first half of what version 0.2.0 adds to dialogs.

    One migration for each of the tables in use, so that none is locked for long; 0.1.0 goes on with them.
    """

    replaces = [
        ("dialogs", "0006_policies_by_name"),
        ("dialogs", "0009_permissions_and_authors"),
        ("dialogs", "0010_generation_of_the_database"),
        ("dialogs", "0011_recall"),
        ("dialogs", "0012_requests_that_grow"),
        ("dialogs", "0014_calibration_fit"),
        ("dialogs", "0015_costs_and_budgets"),
        ("dialogs", "0016_conversations_found_again"),
        ("dialogs", "0017_origins_and_proxies"),
        ("dialogs", "0018_source_of_imported_dialogs"),
        ("dialogs", "0019_branches_and_feedback"),
        ("dialogs", "0020_requests_that_were_sent"),
        ("dialogs", "0021_home_and_titles"),
        ("dialogs", "0023_embedding_use"),
        ("dialogs", "0024_connected_providers"),
        ("dialogs", "0025_questions_of_refusals"),
        ("dialogs", "0026_sharing"),
        ("dialogs", "0027_deliveries"),
        ("dialogs", "0028_budgets_of_keys"),
        ("dialogs", "0029_prepared_rewrites"),
        ("dialogs", "0030_identities"),
        ("dialogs", "0031_prepare_by_default"),
        ("dialogs", "0032_folders_and_templates"),
        ("dialogs", "0034_charged_keys_and_system_messages"),
        ("dialogs", "0035_web_push"),
        ("dialogs", "0036_language"),
        ("dialogs", "0038_choices_of_questions"),
        ("dialogs", "0039_tool_servers"),
        ("dialogs", "0040_lists_of_any_length"),
        ("dialogs", "0041_plain_names_of_columns"),
        ("dialogs", "0042_zones_and_former_secrets"),
        ("dialogs", "0043_steps_of_escalation"),
        ("dialogs", "0044_zones_and_totals_by_quarter"),
        ("dialogs", "0046_tool_approval"),
    ]
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("dialogs", "0001_version_0_1_0"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="dialog",
            name="awaits_title",
            field=models.BooleanField(
                db_default=False, default=False, help_text="the model is to write its title after the first answer"
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="beginning",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="hash of model, instructions, tools and rewrite that the epoch began with",
                max_length=32,
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="budget_usd",
            field=models.DecimalField(
                decimal_places=10, help_text="raised by a person; empty: the agent's", max_digits=18, null=True
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="calibration_fit",
            field=models.JSONField(help_text="what reports taught of the model: Calibration.numbers", null=True),
        ),
        migrations.AddField(
            model_name="dialog",
            name="context_epoch",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                help_text="grows when what was sent before comes to stand otherwise: earlier reasoning is not sent then",
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="context_policy",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="overrides the agent's, by the newest request",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="cost_usd",
            field=models.DecimalField(
                db_default=Decimal("0"),
                decimal_places=10,
                default=Decimal("0"),
                help_text="of all its generations whose cost is known",
                max_digits=18,
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="damaged_at",
            field=models.DateTimeField(help_text="its rows could not be read; until the next message", null=True),
        ),
        migrations.AddField(
            model_name="dialog",
            name="expires_at",
            field=models.DateTimeField(help_text="what was said in it is removed then; empty: never", null=True),
        ),
        migrations.AddField(
            model_name="dialog",
            name="folder",
            field=models.CharField(help_text="of its owner's navigation; empty: in none", max_length=60, null=True),
        ),
        migrations.AddField(
            model_name="dialog",
            name="fork_count",
            field=models.PositiveIntegerField(db_default=0, default=0, help_text="dialogs that branch off this one"),
        ),
        migrations.AddField(
            model_name="dialog",
            name="forked_from",
            field=models.ForeignKey(
                db_index=False,
                help_text="the dialog that it branches off",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="forks",
                to="dialogs.dialog",
            ),
        ),
    ]
