import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """The tables of version 0.1.0."""

    initial = True
    replaces = [
        ("dialogs", "0001_initial"),
        ("dialogs", "0002_archive_dialogs"),
        ("dialogs", "0003_events_that_follow_in_one_row"),
        ("dialogs", "0004_indexes_that_updates_leave_alone"),
        ("dialogs", "0005_plural_of_settings"),
    ]
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.CreateModel(
            name="Agent",
            fields=[
                ("id", models.SlugField(max_length=64, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=120)),
                ("provider", models.CharField(max_length=80)),
                ("model", models.CharField(max_length=120)),
                ("instructions", models.TextField(blank=True)),
                (
                    "tools",
                    models.JSONField(
                        blank=True, default=list, help_text="names of the tools offered beside memory and ask_human"
                    ),
                ),
                (
                    "context_policy",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("none", "None"),
                            ("autocompaction", "Autocompaction"),
                            ("breaking", "Breaking"),
                            ("retention", "Retention"),
                        ],
                        help_text="empty: the default of the model's kind",
                        max_length=16,
                    ),
                ),
                (
                    "critical_policy",
                    models.CharField(
                        choices=[("escalate", "Escalate"), ("countdown", "Countdown")],
                        default="escalate",
                        max_length=12,
                    ),
                ),
                (
                    "context_limit",
                    models.PositiveIntegerField(
                        blank=True, help_text="the breaking chain's budget in tokens", null=True
                    ),
                ),
                ("llm_type", models.CharField(blank=True, max_length=40)),
                ("priority", models.PositiveSmallIntegerField(choices=[(1, "1"), (2, "2"), (3, "3")], default=2)),
                ("priority_areas", models.JSONField(blank=True, default=list)),
                ("is_default", models.BooleanField(default=False)),
                ("is_demo", models.BooleanField(default=False)),
                (
                    "is_listed",
                    models.BooleanField(
                        default=False,
                        editable=False,
                        help_text="named by team.yaml, or by the demo team, at the last synchronisation",
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="Dialog",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("title", models.CharField(blank=True, max_length=200)),
                (
                    "provider",
                    models.CharField(
                        blank=True, help_text="overrides the agent's, after a move to another model", max_length=80
                    ),
                ),
                ("model", models.CharField(blank=True, max_length=120)),
                ("round_number", models.PositiveIntegerField(default=1)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("idle", "idle"),
                            ("queued", "queued"),
                            ("generating", "generating"),
                            ("waiting", "waiting"),
                            ("suspended", "suspended"),
                            ("failed", "failed"),
                            ("closed", "closed"),
                        ],
                        default="idle",
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("active_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                ("last_turn_seq", models.PositiveIntegerField(default=0)),
                ("last_position", models.PositiveIntegerField(default=0)),
                ("last_event_seq", models.PositiveIntegerField(default=0)),
                (
                    "history_version",
                    models.PositiveIntegerField(default=0, help_text="grows with every rewrite, undo and clear"),
                ),
                (
                    "answering_seq",
                    models.PositiveIntegerField(help_text="the user turn that is being answered", null=True),
                ),
                ("continuing", models.BooleanField(default=False, help_text="a generation is owed without a message")),
                (
                    "requested_rewrite",
                    models.CharField(blank=True, help_text="a rewrite or clear that a person asked for", max_length=16),
                ),
                (
                    "requested_package",
                    models.TextField(blank=True, help_text="the re-entry package of a requested clear"),
                ),
                ("stop_requested", models.BooleanField(default=False)),
                ("failure", models.TextField(blank=True, help_text="why the last message failed, for people")),
                ("epoch", models.PositiveIntegerField(default=0)),
                ("lease_owner", models.CharField(blank=True, max_length=120)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "wake_at",
                    models.DateTimeField(help_text="not to be driven before, after a provider's backoff", null=True),
                ),
                ("crashes", models.PositiveSmallIntegerField(default=0, help_text="lost attempts in a row")),
                (
                    "tries",
                    models.PositiveSmallIntegerField(default=0, help_text="failed tries in a row for what is owed now"),
                ),
                ("generations_for_message", models.PositiveIntegerField(default=0, help_text="bounds the tool loop")),
                (
                    "running_call",
                    models.CharField(
                        blank=True, help_text="a tool call whose effect cannot be repeated", max_length=120
                    ),
                ),
                (
                    "report",
                    models.CharField(
                        choices=[
                            ("awaiting", "Awaiting"),
                            ("reported", "Reported"),
                            ("unavailable", "Unavailable"),
                            ("suspected", "Suspected"),
                        ],
                        default="awaiting",
                        max_length=12,
                    ),
                ),
                ("prompt_tokens", models.PositiveIntegerField(help_text="last reported", null=True)),
                ("completion_tokens", models.PositiveIntegerField(null=True)),
                ("total_tokens", models.PositiveIntegerField(null=True)),
                (
                    "overflowed",
                    models.BooleanField(default=False, help_text="the provider refused the last request as too long"),
                ),
                ("changed_since_rewrite", models.BooleanField(default=True)),
                (
                    "restarts",
                    models.PositiveSmallIntegerField(default=0, help_text="rewrites since the newest user message"),
                ),
                ("calibration", models.FloatField(help_text="reported over estimated prompt tokens", null=True)),
                ("kept_since_guidance", models.PositiveIntegerField(null=True)),
                ("guided_generations", models.PositiveSmallIntegerField(default=0)),
                ("failed_clears", models.PositiveSmallIntegerField(default=0)),
                ("clear_episode", models.PositiveIntegerField(default=0)),
                (
                    "clear_unproven",
                    models.BooleanField(
                        default=False, help_text="cleared, and no report since has shown that it helped"
                    ),
                ),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="dialogs", to="dialogs.agent"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="dialogs", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "permissions": [("resolve_question", "Can resolve a critical Q4H")],
            },
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(blank=True, max_length=80)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("last_four", models.CharField(max_length=4)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_keys",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Artifact",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tool_call_id", models.CharField(max_length=120)),
                ("text", models.TextField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "dialog",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="artifacts", to="dialogs.dialog"
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seq", models.PositiveIntegerField()),
                ("type", models.CharField(max_length=24)),
                ("data", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "dialog",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="events",
                        to="dialogs.dialog",
                    ),
                ),
            ],
            options={
                "ordering": ["seq"],
            },
        ),
        migrations.CreateModel(
            name="Generation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("round_number", models.PositiveIntegerField()),
                (
                    "purpose",
                    models.CharField(
                        choices=[
                            ("reply", "Reply"),
                            ("forced_clear", "Forced Clear"),
                            ("prune", "Prune"),
                            ("summary", "Summary"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("kept", "Kept"),
                            ("discarded", "Discarded"),
                            ("failed", "Failed"),
                            ("stopped", "Stopped"),
                            ("crashed", "Crashed"),
                        ],
                        default="running",
                        max_length=10,
                    ),
                ),
                (
                    "attempt",
                    models.PositiveSmallIntegerField(default=1, help_text="k of a forced clear, or the try of a reply"),
                ),
                ("epoch", models.PositiveIntegerField()),
                ("provider", models.CharField(max_length=80)),
                ("model", models.CharField(max_length=120)),
                ("answers_seq", models.PositiveIntegerField(help_text="the user turn it works for", null=True)),
                ("guided", models.BooleanField(default=False)),
                ("clear_episode", models.PositiveIntegerField(null=True)),
                ("prompt_tokens", models.PositiveIntegerField(null=True)),
                ("completion_tokens", models.PositiveIntegerField(null=True)),
                ("total_tokens", models.PositiveIntegerField(null=True)),
                (
                    "frame",
                    models.CharField(
                        blank=True, help_text="hash of model, instructions, tools and reminders", max_length=32
                    ),
                ),
                (
                    "base",
                    models.CharField(
                        blank=True, help_text="the round and rewrite that its messages start from", max_length=40
                    ),
                ),
                ("request_chars", models.PositiveIntegerField(default=0)),
                ("est_prompt_tokens", models.PositiveIntegerField(null=True)),
                ("cursor", models.CharField(blank=True, max_length=200)),
                ("finish_reason", models.CharField(blank=True, max_length=40)),
                (
                    "skipped_calls",
                    models.PositiveSmallIntegerField(default=0, help_text="calls beside an accepted clear, not run"),
                ),
                ("error_kind", models.CharField(blank=True, max_length=24)),
                ("error", models.TextField(blank=True)),
                ("started_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("first_token_ms", models.PositiveIntegerField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "dialog",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="generations",
                        to="dialogs.dialog",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PersonSettings",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "theme",
                    models.CharField(
                        choices=[("system", "System"), ("light", "Light"), ("dark", "Dark")],
                        default="system",
                        max_length=8,
                    ),
                ),
                ("notifications", models.BooleanField(default=False)),
                ("show_breaking_progress", models.BooleanField(default=True)),
                (
                    "progress_detail",
                    models.CharField(
                        choices=[("minimal", "Minimal"), ("normal", "Normal"), ("detailed", "Detailed")],
                        default="normal",
                        max_length=8,
                    ),
                ),
                ("auto_hide_seconds", models.PositiveSmallIntegerField(default=3)),
                ("highlight_p1", models.BooleanField(default=True)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dominds_settings",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Question",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                (
                    "kind",
                    models.CharField(
                        choices=[("question", "Question"), ("context_health_critical", "Critical")], max_length=24
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("answered", "Answered"),
                            ("resolved", "Resolved"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="open",
                        max_length=10,
                    ),
                ),
                ("text", models.TextField()),
                ("tool_call_id", models.CharField(blank=True, max_length=120)),
                ("clear_episode", models.PositiveIntegerField(null=True)),
                ("draft", models.TextField(blank=True, help_text="a re-entry package drafted from stored facts")),
                ("answer", models.TextField(blank=True)),
                (
                    "action",
                    models.CharField(blank=True, help_text="the exit taken, for the critical kind", max_length=16),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("resolved_at", models.DateTimeField(blank=True, null=True)),
                (
                    "dialog",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="questions", to="dialogs.dialog"
                    ),
                ),
                (
                    "resolved_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["created_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="Reminder",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveSmallIntegerField()),
                ("text", models.TextField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "dialog",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="reminders", to="dialogs.dialog"
                    ),
                ),
            ],
            options={
                "ordering": ["position", "id"],
            },
        ),
        migrations.CreateModel(
            name="Round",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                (
                    "cause",
                    models.CharField(
                        choices=[
                            ("start", "Start"),
                            ("clear_mind", "Clear Mind"),
                            ("person", "Person"),
                            ("countdown", "Countdown"),
                        ],
                        max_length=12,
                    ),
                ),
                ("package", models.TextField(blank=True, help_text="the re-entry package it began with")),
                ("carried", models.JSONField(default=list, help_text="seqs of unanswered user turns, oldest first")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "dialog",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="rounds", to="dialogs.dialog"
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
            },
        ),
        migrations.CreateModel(
            name="SiteSettings",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("singleton", models.BooleanField(default=True, editable=False, unique=True)),
                (
                    "keep_discarded_outputs",
                    models.BooleanField(default=True, help_text="in a log of their own, for 7 days"),
                ),
                ("webhook_url", models.URLField(blank=True, help_text="told of every new Q4H")),
                (
                    "pruning_agent",
                    models.ForeignKey(
                        blank=True,
                        help_text="empty: same as current agent",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="dialogs.agent",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Turn",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seq", models.PositiveIntegerField()),
                ("position", models.PositiveIntegerField(null=True)),
                ("round_number", models.PositiveIntegerField()),
                (
                    "role",
                    models.CharField(
                        choices=[("user", "User"), ("assistant", "Assistant"), ("tool", "Tool"), ("notice", "Notice")],
                        max_length=10,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("answering", "Answering"),
                            ("answered", "Answered"),
                            ("failed", "Failed"),
                            ("stopped", "Stopped"),
                            ("superseded", "Superseded"),
                            ("suspended", "Suspended"),
                            ("complete", "Complete"),
                            ("interrupted", "Interrupted"),
                            ("ok", "Ok"),
                            ("error", "Error"),
                            ("unknown", "Unknown"),
                        ],
                        max_length=12,
                    ),
                ),
                ("text", models.TextField(blank=True)),
                (
                    "tool_calls",
                    models.JSONField(help_text="[{id, name, arguments}], arguments as the model wrote them", null=True),
                ),
                ("tool_call_id", models.CharField(blank=True, max_length=120)),
                ("tool_name", models.CharField(blank=True, max_length=120)),
                ("provider_items", models.JSONField(null=True)),
                ("client_message_id", models.CharField(max_length=120, null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "dialog",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="turns",
                        to="dialogs.dialog",
                    ),
                ),
                (
                    "generation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="turns",
                        to="dialogs.generation",
                    ),
                ),
            ],
            options={
                "ordering": ["seq"],
            },
        ),
        migrations.CreateModel(
            name="Client",
            fields=[
                (
                    "dialog",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="client",
                        serialize=False,
                        to="dialogs.dialog",
                    ),
                ),
                (
                    "said",
                    models.CharField(
                        help_text="digest of the user's messages, to find the dialog again", max_length=64
                    ),
                ),
                (
                    "instructions",
                    models.TextField(blank=True, help_text="its system messages; they follow the agent's instructions"),
                ),
                (
                    "tools",
                    models.JSONField(default=list, help_text="[{name, description, parameters}], run on its side"),
                ),
                (
                    "required_tool",
                    models.CharField(blank=True, help_text="the tool that the next answer must call", max_length=120),
                ),
                (
                    "key",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="dialogs.apikey"
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="dialog",
            index=models.Index(fields=["owner", "-active_at"], name="dialog_recent"),
        ),
        migrations.AddIndex(
            model_name="dialog",
            index=models.Index(fields=["state", "lease_until"], name="dialog_to_wake"),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.UniqueConstraint(fields=("dialog", "seq"), name="event_seq_unique"),
        ),
        migrations.AddIndex(
            model_name="generation",
            index=models.Index(fields=["dialog", "-id"], name="generation_newest"),
        ),
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("outcome", "running")), fields=("dialog",), name="one_running_generation_per_dialog"
            ),
        ),
        migrations.AddConstraint(
            model_name="personsettings",
            constraint=models.CheckConstraint(
                condition=models.Q(("auto_hide_seconds__range", (1, 10))), name="auto_hide_1_to_10"
            ),
        ),
        migrations.AddConstraint(
            model_name="question",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "open")), fields=("dialog",), name="one_open_question_per_dialog"
            ),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.UniqueConstraint(fields=("dialog", "number"), name="round_number_unique"),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(fields=["dialog", "position"], name="turn_position"),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(
                condition=models.Q(("status__in", ["queued", "answering", "suspended"])),
                fields=["dialog", "seq"],
                name="turn_pending",
            ),
        ),
        migrations.AddConstraint(
            model_name="turn",
            constraint=models.UniqueConstraint(fields=("dialog", "seq"), name="turn_seq_unique"),
        ),
        migrations.AddConstraint(
            model_name="turn",
            constraint=models.UniqueConstraint(
                fields=("dialog", "client_message_id"), name="turn_client_message_unique"
            ),
        ),
        migrations.AddIndex(
            model_name="client",
            index=models.Index(fields=["key", "said"], name="client_conversation"),
        ),
        migrations.AddField(
            model_name="dialog",
            name="archived_at",
            field=models.DateTimeField(help_text="put away by its owner, until the next message", null=True),
        ),
        migrations.AddField(
            model_name="event",
            name="more",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="items of a JSON array, a comma before each: an event as [type, values], or the milliseconds after created_at at which those behind it happened",
            ),
        ),
        migrations.RemoveIndex(
            model_name="dialog",
            name="dialog_to_wake",
        ),
        migrations.RemoveIndex(
            model_name="turn",
            name="turn_pending",
        ),
        migrations.AddIndex(
            model_name="dialog",
            index=models.Index(fields=["state"], name="dialog_by_state"),
        ),
        migrations.AlterModelOptions(
            name="personsettings",
            options={"verbose_name_plural": "person settings"},
        ),
        migrations.AlterModelOptions(
            name="sitesettings",
            options={"verbose_name_plural": "site settings"},
        ),
    ]
