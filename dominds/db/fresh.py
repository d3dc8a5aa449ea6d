"""Creation of the tables of a new database, directly from the models.

Running all migrations takes 4 s of CPU, four fifths of it for models that later migrations alter. Their result is
known: the tables of the models, as `makemigrations --check` ensures, and no rows. A database that has any table is
upgraded by migrations.
"""

from django.apps import apps
from django.core.management.sql import emit_post_migrate_signal
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor

LOCK = 0x646F6D  # the number of an advisory lock, by which two processes on PostgreSQL wait for each other


def lay(alias: str = DEFAULT_DB_ALIAS) -> bool:
    """Make all tables and record all migrations as applied, in one transaction, if the database has no table.

    Returns whether the tables were made.
    """
    connection = connections[alias]
    if connection.introspection.table_names():
        return False
    executor = MigrationExecutor(connection)
    migrations = [migration for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]
    with connection.schema_editor() as editor:
        if connection.vendor == "postgresql":
            editor.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
        if connection.introspection.table_names():  # another process was first
            return False
        for app in apps.get_app_configs():
            for model in app.get_models() if app.label in executor.loader.migrated_apps else ():
                if model._meta.managed and not model._meta.proxy:
                    editor.create_model(model)
        done = executor.recorder.Migration
        editor.create_model(done)
        names = [name for each in migrations for name in [(each.app_label, each.name), *each.replaces]]
        rows = (done(app=app, name=name) for app, name in names)
        executor.recorder.migration_qs.bulk_create(rows)
    emit_post_migrate_signal(verbosity=0, interactive=False, db=alias)
    return True
