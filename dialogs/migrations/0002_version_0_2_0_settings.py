from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """What version 0.2.0 adds to settings."""

    replaces = [
        ("dialogs", "0033_webhook_rewrites"),
    ]
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("dialogs", "0002_version_0_2_0_turns"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="personsettings",
            name="language",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="of the pages; empty: what the browser prefers",
                max_length=12,
            ),
        ),
        migrations.AddField(
            model_name="personsettings",
            name="monthly_budget_usd",
            field=models.DecimalField(
                blank=True,
                decimal_places=10,
                help_text="what this person's dialogs may cost in a calendar month; empty: no budget",
                max_digits=18,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="personsettings",
            name="question_mails",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name="personsettings",
            name="recall",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name="personsettings",
            name="seen_language",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="of the page that was shown last: what mails and push notifications are in where none was chosen",
                max_length=12,
            ),
        ),
        migrations.AddField(
            model_name="personsettings",
            name="seen_zone",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="of the browser that was used last: what holds where none was chosen",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="personsettings",
            name="zone",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="of times and days, such as Europe/Berlin; empty: that of the browser",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="sitesettings",
            name="escalation_address",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="who gets a mail about overdue questions, beside the dialog's owner: a line each, in the order in which they are asked, an address and the minutes until the next one is asked",
                max_length=4000,
            ),
        ),
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
        migrations.AddField(
            model_name="sitesettings",
            name="question_deadline_minutes",
            field=models.PositiveIntegerField(
                blank=True, help_text="a question that is open for longer is escalated; empty: none is", null=True
            ),
        ),
        migrations.AddField(
            model_name="sitesettings",
            name="sealed_former_webhook_secret",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="encrypted; signs beside the new one for a day after a change",
            ),
        ),
        migrations.AddField(
            model_name="sitesettings",
            name="sealed_push_key",
            field=models.TextField(
                blank=True, db_default="", default="", editable=False, help_text="encrypted; signs push notifications"
            ),
        ),
        migrations.AddField(
            model_name="sitesettings",
            name="sealed_webhook_secret",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="encrypted; empty: calls are not signed",
            ),
        ),
        migrations.AddField(
            model_name="sitesettings",
            name="webhook_secret_changed_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="sitesettings",
            name="write_titles",
            field=models.BooleanField(
                db_default=True, default=True, help_text="a model call names a dialog that a person began on the page"
            ),
        ),
        migrations.AlterField(
            model_name="sitesettings",
            name="webhook_url",
            field=models.URLField(blank=True, help_text="called for questions, levels and rewrites"),
        ),
    ]
