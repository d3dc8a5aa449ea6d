import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("dialogs", "0033_webhook_rewrites"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PushSubscription",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("address", models.CharField(max_length=1000, unique=True)),
                ("key", models.CharField(help_text="the browser's public key", max_length=88)),
                ("secret", models.CharField(help_text="what it shares with this server", max_length=24)),
                ("browser", models.CharField(max_length=60)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("user", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="push_subscriptions", to=settings.AUTH_USER_MODEL)),
            ],
            options={"ordering": ["-id"]},
        ),
        migrations.AddField(
            model_name="sitesettings",
            name="sealed_push_key",
            field=models.TextField(blank=True, db_default="", default="", editable=False, help_text="encrypted; signs push notifications"),
        ),
        migrations.AddField(
            model_name="delivery",
            name="subscription",
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dialogs.pushsubscription"),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="channel",
            field=models.CharField(choices=[("mail", "Mail"), ("webhook", "Webhook"), ("push", "Push")], max_length=8),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="body",
            field=models.TextField(blank=True, help_text="JSON for a webhook, until it was sent; others are written when they are sent"),
        ),
    ]
