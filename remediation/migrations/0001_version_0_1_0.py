import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """The tables of version 0.1.0."""

    initial = True
    replaces = [
        ("remediation", "0001_initial"),
        ("remediation", "0002_plural_of_settings"),
    ]
    dependencies = [
        ("dialogs", "0001_version_0_1_0"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.CreateModel(
            name="ContextSettings",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("singleton", models.BooleanField(default=True, editable=False, unique=True)),
                ("config", models.JSONField(default=dict)),
            ],
        ),
        migrations.CreateModel(
            name="Proposal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(choices=[("limit", "limit"), ("order", "order")], max_length=16)),
                (
                    "change",
                    models.JSONField(help_text='{"context_limit": 6000} or {"chain_order": ["summarize_old", …]}'),
                ),
                ("grounds", models.TextField()),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "Open"), ("accepted", "Accepted"), ("rejected", "Rejected")],
                        default="open",
                        max_length=8,
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="proposals",
                        to="dialogs.agent",
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RemediationRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("round_number", models.PositiveIntegerField()),
                (
                    "policy",
                    models.CharField(
                        choices=[
                            ("autocompaction", "Autocompaction"),
                            ("breaking", "Breaking"),
                            ("retention", "Retention"),
                            ("fresh_start", "Fresh Start"),
                        ],
                        max_length=16,
                    ),
                ),
                ("reason", models.CharField(max_length=200)),
                ("steps", models.JSONField(default=list)),
                ("est_before", models.PositiveIntegerField()),
                ("est_after", models.PositiveIntegerField()),
                ("est_source", models.CharField(blank=True, max_length=12)),
                ("limit", models.PositiveIntegerField(null=True)),
                (
                    "base_position",
                    models.PositiveIntegerField(help_text="the position of the last turn that the view was made from"),
                ),
                ("view", models.JSONField()),
                ("removed", models.JSONField()),
                ("summary", models.TextField(blank=True)),
                ("ledger", models.JSONField(default=list)),
                ("recovered", models.BooleanField(default=False)),
                ("coherence", models.FloatField(null=True)),
                ("millis", models.FloatField(default=0)),
                ("reward", models.FloatField(null=True)),
                ("reward_record", models.JSONField(null=True)),
                ("undone_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "dialog",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="remediations", to="dialogs.dialog"
                    ),
                ),
                (
                    "undone_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RemovedUnit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("unit_id", models.CharField(max_length=64)),
                ("kind", models.CharField(max_length=16)),
                ("role", models.CharField(max_length=12)),
                ("est_tokens", models.PositiveIntegerField()),
                ("text", models.TextField()),
                (
                    "dialog",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="removed_units", to="dialogs.dialog"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="units",
                        to="remediation.remediationrun",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="CleanupTask",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reason", models.TextField()),
                ("state", models.CharField(choices=[("open", "Open"), ("done", "Done")], default="open", max_length=4)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("done_at", models.DateTimeField(blank=True, null=True)),
                (
                    "dialog",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="cleanup_tasks", to="dialogs.dialog"
                    ),
                ),
                (
                    "done_by",
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
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "open")),
                        fields=("dialog",),
                        name="one_open_cleanup_task_per_dialog",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ContextEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "code",
                    models.CharField(
                        choices=[
                            ("CONTEXT_WARNING", "Warning"),
                            ("CONTEXT_OVER_HIT", "Over Hit"),
                            ("TOKEN_LIMIT_EXCEEDED", "Token Limit Exceeded"),
                            ("BREAKER_FAILED", "Breaker Failed"),
                            ("RECOVERY_TRIGGERED", "Recovery Triggered"),
                            ("PRUNER_FAILED", "Pruner Failed"),
                            ("LOOP_DETECTED", "Loop Detected"),
                        ],
                        max_length=24,
                    ),
                ),
                ("message", models.TextField()),
                ("est_tokens", models.PositiveIntegerField(null=True)),
                ("limit", models.PositiveIntegerField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "dialog",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="context_events", to="dialogs.dialog"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["dialog", "code", "-created_at"], name="context_event_recent")],
            },
        ),
        migrations.AddIndex(
            model_name="remediationrun",
            index=models.Index(fields=["dialog", "round_number", "-id"], name="remediation_latest"),
        ),
        migrations.AddIndex(
            model_name="removedunit",
            index=models.Index(fields=["dialog", "-id"], name="archive_newest"),
        ),
        migrations.AlterModelOptions(
            name="contextsettings",
            options={"verbose_name_plural": "context settings"},
        ),
    ]
