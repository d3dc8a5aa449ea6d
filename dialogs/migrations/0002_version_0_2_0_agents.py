from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """What version 0.2.0 adds to agents, keys and clients."""

    replaces = [
        ("dialogs", "0007_toolsets_and_model_params"),
    ]
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("dialogs", "0002_version_0_2_0_dialogs"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(  # the column keeps its name, which 0.1.0 writes
            state_operations=[
                migrations.RemoveIndex("client", "client_conversation"),
                migrations.RenameField("client", "said", "messages_digest"),
                migrations.AlterField(
                    "client",
                    "messages_digest",
                    models.CharField(
                        db_column="said", max_length=64, help_text="of the user's messages, to find the dialog again"
                    ),
                ),
                migrations.AddIndex(
                    "client", models.Index(fields=["key", "messages_digest"], name="client_conversation")
                ),
            ]
        ),
        migrations.AddField(
            model_name="agent",
            name="description",
            field=models.CharField(
                blank=True, db_default="", help_text="what it is good for, in the choice of agents", max_length=200
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="dialog_budget_usd",
            field=models.DecimalField(
                blank=True,
                decimal_places=10,
                help_text="what one dialog may cost before a person is asked; empty: no budget",
                max_digits=18,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="model_params",
            field=models.JSONField(
                blank=True,
                db_default=models.Value({}, models.JSONField()),
                default=dict,
                help_text="settings for the model, by kind of API or under general",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="prepare_rewrites",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="make the rewrite that comes next while a person's dialog rests, so that no message waits for its summary",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="proxy",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="for programs: no tools and no words of the runtime; what a request of /v1 brings, and nothing else",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="recall",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="bring back into a request what is out of sight and bears on the newest message",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="suggestions",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="first messages that a new dialog offers",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="tool_approval",
            field=models.CharField(
                choices=[("never", "Never"), ("changes", "Changes"), ("always", "Always")],
                db_default="never",
                default="never",
                help_text="whether a person allows calls of tools before they run: those that may change something, or all",
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="toolsets",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="workspace, or ids of MCP servers; * is all of them, !name leaves one out",
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="budget_usd",
            field=models.DecimalField(
                blank=True,
                decimal_places=10,
                help_text="what its calls may cost in a calendar month; empty: no budget",
                max_digits=18,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="expires_at",
            field=models.DateTimeField(blank=True, help_text="refused from then on; empty: never", null=True),
        ),
        migrations.AddField(
            model_name="apikey",
            name="keep_days",
            field=models.PositiveSmallIntegerField(
                blank=True,
                help_text="dialogs that it makes are removed so long after their last message; empty: never",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="last_used_at",
            field=models.DateTimeField(blank=True, help_text="noted once a minute at most", null=True),
        ),
        migrations.AddField(
            model_name="apikey",
            name="scope",
            field=models.CharField(
                choices=[
                    ("all", "everything that its owner can do"),
                    ("v1", "agents as models, by /v1"),
                    ("read", "reading, by /api and /mcp"),
                ],
                db_default="all",
                default="all",
                max_length=4,
            ),
        ),
        migrations.AddField(
            model_name="client",
            name="answer_digest",
            field=models.CharField(
                db_default="", default="", help_text="of the answer that it got last", max_length=64
            ),
        ),
        migrations.AddField(
            model_name="client",
            name="end_user",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="whom it speaks for, as it says", max_length=200
            ),
        ),
        migrations.AddField(
            model_name="client",
            name="first",
            field=models.CharField(db_default="", default="", help_text="digest of the first of them", max_length=64),
        ),
        migrations.AddField(
            model_name="client",
            name="newest",
            field=models.CharField(db_default="", default="", help_text="digest of the newest of them", max_length=64),
        ),
        migrations.AddField(
            model_name="client",
            name="params",
            field=models.JSONField(help_text="settings for the model, in the words of chat completions", null=True),
        ),
        migrations.AddField(
            model_name="client",
            name="system_messages",
            field=models.JSONField(
                help_text="those in the middle of the conversation: [[seq of the turn before it, text]]", null=True
            ),
        ),
        migrations.AlterField(
            model_name="agent",
            name="context_limit",
            field=models.PositiveIntegerField(
                blank=True, help_text="its budget in tokens, for policies that keep to one", null=True
            ),
        ),
        migrations.AlterField(
            model_name="agent",
            name="context_policy",
            field=models.CharField(
                blank=True, help_text="the name of a policy; empty: the default of the model's kind", max_length=16
            ),
        ),
        migrations.AlterField(
            model_name="client",
            name="required_tool",
            field=models.CharField(
                blank=True, help_text="the tool that the next answer must call; * is any of them", max_length=120
            ),
        ),
    ]
