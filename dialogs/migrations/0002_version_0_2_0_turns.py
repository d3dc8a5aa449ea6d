import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """What version 0.2.0 adds to turns, model calls and questions."""

    replaces = [
        ("dialogs", "0013_turn_reasoning"),
    ]
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("dialogs", "0002_version_0_2_0_agents"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="generation",
            name="cache_read_tokens",
            field=models.PositiveIntegerField(help_text="of the prompt, read from the provider's cache", null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="cache_write_tokens",
            field=models.PositiveIntegerField(help_text="of the prompt, written to it", null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="cost_usd",
            field=models.DecimalField(
                decimal_places=10,
                help_text="by the reported tokens and the catalog's price of that day; empty where either is unknown",
                max_digits=18,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="generation",
            name="est_tools_tokens",
            field=models.PositiveIntegerField(help_text="of est_prompt_tokens", null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="key",
            field=models.ForeignKey(
                db_index=False,
                help_text="that pays for it; empty: none",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="dialogs.apikey",
            ),
        ),
        migrations.AddField(
            model_name="generation",
            name="reasoning_tokens",
            field=models.PositiveIntegerField(help_text="of the completion", null=True),
        ),
        migrations.AddField(
            model_name="generation",
            name="recalled",
            field=models.JSONField(
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="seqs of the turns that its request brought back into sight",
            ),
        ),
        migrations.AddField(
            model_name="generation",
            name="sent",
            field=models.JSONField(
                help_text="hash of its request, and what it is made again from: see Sent", null=True
            ),
        ),
        migrations.AddField(
            model_name="question",
            name="approves",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="the tool whose call it allows, if it is about that",
                max_length=120,
            ),
        ),
        migrations.AddField(
            model_name="question",
            name="choices",
            field=models.JSONField(
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="answers to choose from, if any",
            ),
        ),
        migrations.AddField(
            model_name="question",
            name="escalated_at",
            field=models.DateTimeField(help_text="when people were reminded of it last, being overdue", null=True),
        ),
        migrations.AddField(
            model_name="question",
            name="escalations",
            field=models.PositiveSmallIntegerField(
                db_default=0, default=0, help_text="how many steps of its escalation were taken"
            ),
        ),
        migrations.AddField(
            model_name="turn",
            name="attachments",
            field=models.JSONField(
                help_text="[{name, media_type, sha256, bytes, width, height}] of images; a text file has chars instead",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="turn",
            name="author",
            field=models.ForeignKey(
                db_index=False,
                help_text="the person who wrote or did it; none: an agent, the runtime, or not known",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="turn",
            name="liked",
            field=models.BooleanField(help_text="what a person thinks of the answer; empty: nobody said", null=True),
        ),
        migrations.AddField(
            model_name="turn",
            name="reasoning",
            field=models.JSONField(
                help_text="{text, ms}: what the model thought, as far as it was shown, and from first to last word",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="generation",
            name="purpose",
            field=models.CharField(
                choices=[
                    ("reply", "Reply"),
                    ("forced_clear", "Forced Clear"),
                    ("prune", "Prune"),
                    ("summary", "Summary"),
                    ("title", "Title"),
                ],
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="question",
            name="kind",
            field=models.CharField(
                choices=[
                    ("question", "Question"),
                    ("context_health_critical", "Critical"),
                    ("budget_exceeded", "Budget"),
                    ("provider_refused", "Refused"),
                ],
                max_length=24,
            ),
        ),
    ]
