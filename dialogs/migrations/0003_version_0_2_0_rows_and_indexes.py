from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from dominds.db.beside import AddIndexBeside

PERMISSIONS = [
    ("view_all_dialogs", "Can read the dialogs of others"),
    ("act_in_all_dialogs", "Can act in the dialogs of others"),
    ("operate", "Can use the operations page and change settings of the site"),
    ("view_metrics", "Can read the metrics"),
    ("resolve_question", "Can resolve a critical Q4H"),
]
OF_FOREIGN_KEYS = (
    "dialogs_dialog_owner_id_049165d2",
    "dialogs_dialog_agent_id_ebae33e4",
    "dialogs_dialog_agent_id_ebae33e4_like",
    "dialogs_turn_generation_id_4c27a21d",
)


def let_staff_keep_their_rights(apps: Any, schema_editor: Any) -> None:
    """Give all of them to whoever is staff: in 0.1.0 that alone was enough."""
    alias = schema_editor.connection.alias
    users, contents, permissions = (
        apps.get_model(*name).objects.using(alias)
        for name in (("auth", "User"), ("contenttypes", "ContentType"), ("auth", "Permission"))
    )
    staff = list(users.filter(is_staff=True, is_superuser=False))
    if not staff:
        return
    content, _ = contents.get_or_create(app_label="dialogs", model="dialog")
    given = [
        permissions.get_or_create(content_type=content, codename=codename, defaults={"name": name})[0]
        for codename, name in PERMISSIONS
    ]
    for person in staff:
        person.user_permissions.add(*given)


def count_unpriced_calls(apps: Any, schema_editor: Any) -> None:
    """Count the calls whose cost is not known: 0.1.0 kept no prices."""
    dialogs, generations = (
        apps.get_model("dialogs", name).objects.using(schema_editor.connection.alias)
        for name in ("Dialog", "Generation")
    )
    ended = generations.filter(dialog=OuterRef("pk"), cost_usd=None).exclude(outcome__in=["running", "failed"])
    counts = ended.order_by().values("dialog").annotate(count=Count("pk")).values("count")
    dialogs.update(unpriced_generations=Coalesce(Subquery(counts), 0))


def charge_calls_of_this_month(apps: Any, schema_editor: Any) -> None:
    """Name the key of each call since the month began, which counts for the key's budget."""
    month = timezone.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    clients, generations = (
        apps.get_model("dialogs", name).objects.using(schema_editor.connection.alias)
        for name in ("Client", "Generation")
    )
    held = clients.filter(dialog=OuterRef("dialog")).values("key")[:1]
    calls = generations.filter(started_at__gte=month, dialog__client__key__isnull=False)
    calls.update(key=Subquery(held))


def remove_indexes(apps: Any, schema_editor: Any) -> None:
    """Remove them by name: where a field changes, SQLite would copy the whole table."""
    beside = " CONCURRENTLY" if schema_editor.connection.vendor == "postgresql" else ""
    for name in OF_FOREIGN_KEYS:
        schema_editor.execute(f'DROP INDEX{beside} IF EXISTS "{name}"')


class Migration(migrations.Migration):
    """Rows of 0.1.0 get what 0.2.0 expects of them, and large tables their indexes.

    Each step can be repeated, and none stops whoever writes to a table.
    """

    atomic = False  # on PostgreSQL an index that lets others write is made outside of transactions
    replaces = [
        ("dialogs", "0037_indexes_of_long_lists"),
        ("dialogs", "0045_indexes_of_foreign_keys"),
    ]
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("dialogs", "0002_version_0_2_0_new_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(let_staff_keep_their_rights, migrations.RunPython.noop),
        migrations.RunPython(count_unpriced_calls, migrations.RunPython.noop),
        migrations.RunPython(charge_calls_of_this_month, migrations.RunPython.noop),
        AddIndexBeside(
            model_name="client",
            index=models.Index(fields=["key", "first"], name="client_first"),
        ),
        AddIndexBeside(
            model_name="client",
            index=models.Index(fields=["key", "newest"], name="client_newest"),
        ),
        AddIndexBeside(
            model_name="client",
            index=models.Index(fields=["key", "answer_digest"], name="client_answer"),
        ),
        AddIndexBeside(
            model_name="dialog",
            index=models.Index(fields=["agent"], name="dialog_of_agent"),
        ),
        AddIndexBeside(
            model_name="dialog",
            index=models.Index(
                condition=models.Q(("forked_from__isnull", False)), fields=["forked_from"], name="dialog_branched_off"
            ),
        ),
        AddIndexBeside(
            model_name="dialog",
            index=models.Index(fields=["-active_at"], name="dialog_newest"),
        ),
        AddIndexBeside(
            model_name="dialog",
            index=models.Index(fields=["created_at", "id"], name="dialog_oldest"),
        ),
        AddIndexBeside(
            model_name="dialog",
            index=models.Index(
                condition=models.Q(("expires_at__isnull", False)), fields=["expires_at"], name="dialog_expiring"
            ),
        ),
        AddIndexBeside(
            model_name="dialog",
            index=models.Index(
                condition=models.Q(("pinned_at__isnull", False)), fields=["owner"], name="dialog_pinned"
            ),
        ),
        AddIndexBeside(
            model_name="dialog",
            index=models.Index(
                condition=models.Q(("folder__isnull", False)), fields=["owner"], name="dialog_in_folder"
            ),
        ),
        AddIndexBeside(
            model_name="dialog",
            index=models.Index(condition=models.Q(("group__isnull", False)), fields=["group"], name="dialog_shared"),
        ),
        AddIndexBeside(
            model_name="dialog",
            index=models.Index(condition=models.Q(("link__isnull", False)), fields=["link"], name="dialog_linked"),
        ),
        AddIndexBeside(
            model_name="generation",
            index=models.Index(
                condition=models.Q(("key__isnull", False)), fields=["key", "started_at"], name="generation_by_key"
            ),
        ),
        AddIndexBeside(
            model_name="question",
            index=models.Index(fields=["state", "created_at"], name="question_by_state"),
        ),
        AddIndexBeside(
            model_name="question",
            index=models.Index(fields=["created_at", "id"], name="question_newest"),
        ),
        AddIndexBeside(
            model_name="turn",
            index=models.Index(
                condition=models.Q(("generation__isnull", False)), fields=["generation"], name="turn_of_generation"
            ),
        ),
        migrations.SeparateDatabaseAndState(
            [migrations.RunPython(remove_indexes, migrations.RunPython.noop)],
            [
                migrations.AlterField(
                    model_name="dialog",
                    name="agent",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="dialogs",
                        to="dialogs.agent",
                    ),
                ),
                migrations.AlterField(
                    model_name="dialog",
                    name="owner",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="dialogs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                migrations.AlterField(
                    model_name="turn",
                    name="generation",
                    field=models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="turns",
                        to="dialogs.generation",
                    ),
                ),
            ],
        ),
    ]
