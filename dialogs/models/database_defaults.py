"""Defaults of JSON columns in the database itself, since a process of the last release inserts rows without new
columns.
"""

from django.db.models import JSONField, Value

EMPTY_LIST = Value([], JSONField())
EMPTY_OBJECT = Value({}, JSONField())
