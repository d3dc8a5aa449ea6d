from django.db import migrations, models


class Migration(migrations.Migration):
    """Names by nouns; every row stays. ``said`` of a client stays the name in the database: 0.1.0 writes it while its
    processes are replaced. The others are not in 0.1.0. Indexes are renamed, not built again."""

    dependencies = [("dialogs", "0040_lists_of_any_length")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RenameIndex("client", "client_answer", old_name="client_heard"),
                migrations.RenameField("client", "heard", "answer_digest"),
                migrations.RenameField("forcingrefusal", "said", "reason"),
            ],
            state_operations=[
                migrations.RemoveIndex("client", "client_conversation"),
                migrations.RemoveIndex("client", "client_heard"),
                migrations.RenameField("client", "said", "messages_digest"),
                migrations.RenameField("client", "heard", "answer_digest"),
                migrations.RenameField("forcingrefusal", "said", "reason"),
                migrations.AlterField(
                    "client",
                    "messages_digest",
                    models.CharField(
                        db_column="said", max_length=64, help_text="of the user's messages, to find the dialog again"
                    ),
                ),
                migrations.AlterField(
                    "client",
                    "answer_digest",
                    models.CharField(
                        default="", db_default="", max_length=64, help_text="of the answer that it got last"
                    ),
                ),
                migrations.AlterField(
                    "forcingrefusal", "reason", models.TextField(help_text="in the provider's words")
                ),
                migrations.AddIndex(
                    "client", models.Index(fields=["key", "messages_digest"], name="client_conversation")
                ),
                migrations.AddIndex("client", models.Index(fields=["key", "answer_digest"], name="client_answer")),
            ],
        )
    ]
