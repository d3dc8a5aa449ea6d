"""Defaults of JSON columns in the database itself, because processes of the last release insert rows without new
columns."""

from django.db.models import JSONField, Value

EMPTY_LIST = Value([], JSONField())
EMPTY_OBJECT = Value({}, JSONField())
