from typing import Any

from django.db import migrations, models


def keep_what_was_begun(apps: Any, schema_editor: Any) -> None:
    """Who was reminded is not reminded again; a mail on its way knows its address."""
    site = apps.get_model("dialogs", "SiteSettings").objects.first()
    apps.get_model("dialogs", "Question").objects.exclude(escalated_at=None).update(escalations=1)
    mails = apps.get_model("dialogs", "Delivery").objects.filter(channel="mail", person=None, due_at__isnull=False)
    mails.update(body=site.escalation_address if site else "")


class Migration(migrations.Migration):
    """Overdue questions go to several people, one after another."""

    dependencies = [("dialogs", "0042_zones_and_former_secrets")]

    operations = [
        migrations.AddField(
            model_name="question",
            name="escalations",
            field=models.PositiveSmallIntegerField(
                db_default=0, default=0, help_text="how many steps of its escalation were taken"
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="body",
            field=models.TextField(
                blank=True,
                help_text="until it was sent, a webhook's JSON, or the address of a mail to nobody who is known; others are written when they are sent",
            ),
        ),
        migrations.AlterField(
            model_name="question",
            name="escalated_at",
            field=models.DateTimeField(help_text="when people were reminded of it last, being overdue", null=True),
        ),
        migrations.AlterField(
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
        migrations.RunPython(keep_what_was_begun, migrations.RunPython.noop),
    ]
