"""Once shortened the column ``limit_source`` of a database that a commit between the releases had widened. It stays as
it is: that commit's processes keep prepared statements over it, which PostgreSQL refuses once its length has changed.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("health", "0002_longer_limit_source")]
    operations = []
