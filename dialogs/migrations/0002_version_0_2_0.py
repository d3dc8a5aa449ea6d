import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from decimal import Decimal
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """What version 0.2.0 adds to the tables of 0.1.0, whose processes may go on with them.

    Columns of dialogs come first: a worker locks a row of that table before those of others.
    """

    replaces = [
        ("dialogs", "0006_policies_by_name"),
        ("dialogs", "0007_toolsets_and_model_params"),
        ("dialogs", "0008_damaged_dialogs"),
        ("dialogs", "0009_permissions_and_authors"),
        ("dialogs", "0010_generation_of_the_database"),
        ("dialogs", "0011_recall"),
        ("dialogs", "0012_requests_that_grow"),
        ("dialogs", "0013_turn_reasoning"),
        ("dialogs", "0014_calibration_fit"),
        ("dialogs", "0015_costs_and_budgets"),
        ("dialogs", "0016_conversations_found_again"),
        ("dialogs", "0017_origins_and_proxies"),
        ("dialogs", "0018_source_of_imported_dialogs"),
        ("dialogs", "0019_branches_and_feedback"),
        ("dialogs", "0020_requests_that_were_sent"),
        ("dialogs", "0021_home_and_titles"),
        ("dialogs", "0022_attachments"),
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
        ("dialogs", "0033_webhook_rewrites"),
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
        migrations.CreateModel(
            name="Attachment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=120)),
                ("media_type", models.CharField(max_length=20)),
                ("sha256", models.CharField(max_length=64)),
                ("content", models.BinaryField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="CallTotals",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "began_at",
                    models.DateTimeField(
                        help_text="of the quarter; noon of a day of UTC that an older version summed up whole"
                    ),
                ),
                ("agent", models.CharField(max_length=80)),
                ("provider", models.CharField(max_length=80)),
                ("model", models.CharField(max_length=120)),
                ("calls", models.PositiveIntegerField()),
                ("prompt_tokens", models.PositiveBigIntegerField()),
                ("cache_read_tokens", models.PositiveBigIntegerField()),
                ("completion_tokens", models.PositiveBigIntegerField()),
                ("cost_usd", models.DecimalField(decimal_places=10, max_digits=18)),
                ("unpriced", models.PositiveIntegerField(help_text="calls without a report or a known price")),
            ],
            options={
                "verbose_name_plural": "call totals",
            },
        ),
        migrations.CreateModel(
            name="ConnectedProvider",
            fields=[
                ("provider_id", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=120)),
                ("kind", models.CharField(max_length=40)),
                ("base_url", models.URLField(max_length=500)),
                (
                    "sealed_key",
                    models.TextField(blank=True, db_default="", default="", help_text="encrypted; empty: no key"),
                ),
                ("model_ids", models.TextField(default="", help_text="those that its server listed, one a line")),
                ("connected_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "ordering": ["provider_id"],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "channel",
                    models.CharField(
                        choices=[("mail", "Mail"), ("webhook", "Webhook"), ("push", "Push")], max_length=8
                    ),
                ),
                ("event", models.CharField(max_length=24)),
                (
                    "body",
                    models.TextField(
                        blank=True,
                        help_text="until it was sent, a webhook's JSON, or the address of a mail to nobody who is known; others are written when they are sent",
                    ),
                ),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("due_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), null=True)),
                ("sent_at", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True, help_text="of the last try")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="EmbeddingUse",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "began_at",
                    models.DateTimeField(
                        help_text="of the quarter; noon of a day of UTC that an older version summed up whole"
                    ),
                ),
                ("agent", models.CharField(max_length=80)),
                ("provider", models.CharField(max_length=80)),
                ("model", models.CharField(max_length=120)),
                ("calls", models.PositiveIntegerField(default=0)),
                ("prompt_tokens", models.PositiveBigIntegerField(default=0)),
                ("cost_usd", models.DecimalField(decimal_places=10, default=0, max_digits=18)),
                (
                    "unpriced",
                    models.PositiveIntegerField(default=0, help_text="calls without a report or a known price"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ForcingRefusal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("provider", models.CharField(max_length=80)),
                ("model", models.CharField(max_length=120)),
                ("reason", models.TextField(help_text="in the provider's words")),
                ("refused_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name="Identity",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("issuer", models.CharField(max_length=255)),
                ("subject", models.CharField(max_length=255)),
            ],
            options={
                "verbose_name_plural": "identities",
            },
        ),
        migrations.CreateModel(
            name="PromptTemplate",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        max_length=40,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[\\w-]+$", "Use letters, digits, - and _ only, without spaces."
                            )
                        ],
                    ),
                ),
                ("text", models.TextField(max_length=20000)),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="PushSubscription",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("address", models.CharField(max_length=1000, unique=True)),
                ("key", models.CharField(help_text="the browser's public key", max_length=88)),
                ("secret", models.CharField(help_text="what it shares with this server", max_length=24)),
                ("browser", models.CharField(max_length=60)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="RecallChoice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seq", models.PositiveIntegerField(help_text="of the turn")),
                ("choice", models.CharField(choices=[("pinned", "Pinned"), ("dismissed", "Dismissed")], max_length=10)),
            ],
            options={
                "ordering": ["seq"],
            },
        ),
        migrations.CreateModel(
            name="RequestPart",
            fields=[
                ("digest", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("text", models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name="ToolServer",
            fields=[
                ("server_id", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("url", models.URLField(max_length=500)),
                (
                    "sealed_key",
                    models.TextField(blank=True, db_default="", default="", help_text="encrypted; empty: no key"),
                ),
                ("enabled", models.BooleanField(db_default=True, default=True)),
                ("added_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "ordering": ["server_id"],
            },
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
        migrations.AlterField(
            model_name="sitesettings",
            name="webhook_url",
            field=models.URLField(blank=True, help_text="called for questions, levels and rewrites"),
        ),
        migrations.AddConstraint(
            model_name="dialog",
            constraint=models.UniqueConstraint(
                condition=models.Q(("source", ""), _negated=True), fields=("owner", "source"), name="imported_once"
            ),
        ),
        migrations.AddField(
            model_name="attachment",
            name="dialog",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="attachments",
                to="dialogs.dialog",
            ),
        ),
        migrations.AddField(
            model_name="calltotals",
            name="person",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="delivery",
            name="person",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="delivery",
            name="question",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, related_name="deliveries", to="dialogs.question"
            ),
        ),
        migrations.AddField(
            model_name="embeddinguse",
            name="key",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="dialogs.apikey"
            ),
        ),
        migrations.AddField(
            model_name="embeddinguse",
            name="person",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="forcingrefusal",
            constraint=models.UniqueConstraint(fields=("provider", "model"), name="one_refusal_per_model"),
        ),
        migrations.AddField(
            model_name="identity",
            name="groups",
            field=models.ManyToManyField(
                blank=True,
                editable=False,
                help_text="which the person is in for the provider's word",
                related_name="+",
                to="auth.group",
            ),
        ),
        migrations.AddField(
            model_name="identity",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="identities", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="prompttemplate",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="prompt_templates",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="pushsubscription",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="push_subscriptions",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="delivery",
            name="subscription",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dialogs.pushsubscription"
            ),
        ),
        migrations.AddField(
            model_name="recallchoice",
            name="dialog",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="recall_choices",
                to="dialogs.dialog",
            ),
        ),
        migrations.AddField(
            model_name="requestpart",
            name="dialog",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="dialogs.dialog"
            ),
        ),
        migrations.AddConstraint(
            model_name="attachment",
            constraint=models.UniqueConstraint(fields=("dialog", "sha256"), name="attachment_unique"),
        ),
        migrations.AddConstraint(
            model_name="calltotals",
            constraint=models.UniqueConstraint(
                fields=("began_at", "person", "agent", "provider", "model"), name="call_totals_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="embeddinguse",
            constraint=models.UniqueConstraint(
                fields=("person", "key", "began_at", "agent", "provider", "model"), name="embedding_use_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="identity",
            constraint=models.UniqueConstraint(fields=("issuer", "subject"), name="identity_unique"),
        ),
        migrations.AddConstraint(
            model_name="prompttemplate",
            constraint=models.UniqueConstraint(fields=("owner", "name"), name="one_template_per_name"),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="deliveries_that_are_due"
            ),
        ),
        migrations.AddConstraint(
            model_name="recallchoice",
            constraint=models.UniqueConstraint(fields=("dialog", "seq"), name="recall_choice_unique"),
        ),
    ]
