"""Once widened the column ``limit_source``. A column's type stays as released: 0.1.0 keeps prepared statements over it,
which PostgreSQL refuses from then on, and every look at a dialog's turns failed while both releases ran."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("health", "0001_initial")]
    operations = []
