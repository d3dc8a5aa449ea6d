import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """The tables that are new in version 0.2.0."""

    replaces = [
        ("dialogs", "0022_attachments"),
    ]
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("dialogs", "0002_version_0_2_0_settings"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
