import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """The second half of what version 0.2.0 adds to dialogs."""

    replaces = [
        ("dialogs", "0008_damaged_dialogs"),
    ]
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("dialogs", "0002_version_0_2_0"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="dialog",
            name="group",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="whose members may read it and act in it",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="dialogs",
                to="auth.group",
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="key",
            field=models.ForeignKey(
                db_index=False,
                help_text="whose call set it to work last, and pays for that; empty: a person",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="dialogs.apikey",
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="link",
            field=models.UUIDField(
                help_text="of the address at which anybody may read it; empty: there is none", null=True
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="origin",
            field=models.CharField(
                choices=[("person", "people"), ("key", "programs"), ("background", "background prompts")],
                db_default="person",
                default="person",
                help_text="who opened it",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="own_from",
            field=models.PositiveIntegerField(
                db_default=1, default=1, help_text="the position of its first own turn; those before it were copied"
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="pinned_at",
            field=models.DateTimeField(help_text="kept at the top of its owner's navigation", null=True),
        ),
        migrations.AddField(
            model_name="dialog",
            name="removed_at",
            field=models.DateTimeField(help_text="expired: nothing but the numbers of its calls is left", null=True),
        ),
        migrations.AddField(
            model_name="dialog",
            name="repeats",
            field=models.JSONField(
                db_default=models.Value({}, models.JSONField()),
                default=dict,
                help_text="kinds of refusal that the attempt now owed was repeated for, each with what was learned",
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="request_parts",
            field=models.JSONField(
                help_text="digests of what its newest request began with, stored as parts of requests", null=True
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="source",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="of an imported dialog: the conversation that it was, elsewhere",
                max_length=200,
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="statements",
            field=models.JSONField(
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="reminders as stated in this epoch: [messages of the view before them, their lines]",
            ),
        ),
        migrations.AddField(
            model_name="dialog",
            name="unpriced_generations",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="ended without a known cost: no report, or no price"
            ),
        ),
        migrations.AlterField(
            model_name="dialog",
            name="calibration",
            field=models.FloatField(help_text="of older dialogs: reported over estimated prompt tokens", null=True),
        ),
        migrations.AlterModelOptions(
            name="dialog",
            options={
                "permissions": [
                    ("view_all_dialogs", "Can read the dialogs of others"),
                    ("act_in_all_dialogs", "Can act in the dialogs of others"),
                    ("operate", "Can use the operations page and change settings of the site"),
                    ("view_metrics", "Can read the metrics"),
                    ("resolve_question", "Can resolve a critical Q4H"),
                ]
            },
        ),
        migrations.AddConstraint(
            model_name="dialog",
            constraint=models.UniqueConstraint(
                condition=models.Q(("source", ""), _negated=True), fields=("owner", "source"), name="imported_once"
            ),
        ),
    ]
