import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

PERMISSIONS = [
    ("view_all_dialogs", "Can read the dialogs of others"),
    ("act_in_all_dialogs", "Can act in the dialogs of others"),
    ("operate", "Can use the operations page and change settings of the site"),
    ("view_metrics", "Can read the metrics"),
    ("resolve_question", "Can resolve a critical Q4H"),
]


def let_staff_keep_what_they_had(apps, schema_editor):
    """``is_staff`` alone gave all of this until now."""
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


class Migration(migrations.Migration):
    dependencies = [
        ("dialogs", "0008_damaged_dialogs"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(name="dialog", options={"permissions": PERMISSIONS}),
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
        migrations.RunPython(let_staff_keep_what_they_had, migrations.RunPython.noop, elidable=True),
    ]
