from django.db import migrations, models

from dominds.db.beside import AddIndexBeside


class Migration(migrations.Migration):
    atomic = False  # on PostgreSQL an index that lets others write is made outside of transactions
    dependencies = [("dialogs", "0036_language")]

    operations = [
        AddIndexBeside("dialog", models.Index(fields=["-active_at"], name="dialog_newest")),
        AddIndexBeside("question", models.Index(fields=["state", "created_at"], name="question_by_state")),
    ]
