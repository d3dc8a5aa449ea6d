"""Defaults of JSON columns in the database itself.

A process of the last release inserts rows without the columns that it does not know.
"""

from django.db.models import JSONField, Value

EMPTY_LIST = Value([], JSONField())
EMPTY_OBJECT = Value({}, JSONField())
