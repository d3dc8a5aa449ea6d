"""Fill each empty table of the release in the current folder with two rows; run by that release's Python.

It imports nothing of ours: it runs with the code of another release.
"""

import datetime
import os
import uuid
from decimal import Decimal
from typing import Any

import django
from django.apps import apps
from django.db import IntegrityError, models, transaction

MOMENT = datetime.datetime(2026, 11, 20, 12, 30, tzinfo=datetime.UTC)
LEFT_OUT = ("Session", "LogEntry", "ContentType", "Permission")


def value_of(field: Any, number: int) -> Any:
    """Return a plain value that a field of this kind takes; another one for each number."""
    if isinstance(field, models.ForeignKey):
        keys = list(field.related_model._base_manager.order_by("pk").values_list("pk", flat=True)[:2])
        return keys[min(number, len(keys) - 1)]
    if field.choices:
        return field.choices[number % len(field.choices)][0]
    values: list[tuple[type, Any]] = [
        (models.UUIDField, uuid.UUID(int=number + 1)),
        (models.BooleanField, bool(number)),
        (models.DecimalField, Decimal(number + 1) / 4),
        (models.FloatField, number + 0.5),
        (models.IntegerField, number + 1),
        (models.DateTimeField, MOMENT + datetime.timedelta(days=number)),
        (models.DateField, MOMENT.date() + datetime.timedelta(days=number)),
        (models.JSONField, [number, "Grüße, 世界"]),
        (models.BinaryField, bytes([0, 255, number])),
        (models.URLField, f"https://example.org/{number}"),
        (models.CharField, f"{field.name}-{number}"[: field.max_length]),
        (models.TextField, f'{field.name} {number}: it\'s "quoted"\nGrüße, 世界'),
    ]
    return next(value for kind, value in values if isinstance(field, kind))


def fill(model: Any) -> None:
    """Store two rows; columns that may be null are null in the second."""
    for number in range(2):
        row = model()
        for field in model._meta.concrete_fields:
            is_key = field.primary_key and not isinstance(field, models.UUIDField | models.ForeignKey)
            if not is_key and not (field.null and number):
                setattr(row, field.attname, value_of(field, number))
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError:  # there may be one only: the site's settings, or those of a person
            if not number:
                raise
            return
        for many in model._meta.many_to_many:
            getattr(row, many.name).set(many.related_model._base_manager.all()[:1])


def fill_all() -> None:
    """Fill empty tables, those that others point to first. Nobody can log in with what is stored."""
    users = apps.get_model("auth", "User").objects
    users.create(username="staff", is_staff=True)
    users.update(password="!")
    waiting = [model for model in apps.get_models() if model.__name__ not in LEFT_OUT]
    waiting = [model for model in waiting if model._meta.managed and not model._base_manager.exists()]
    while waiting:
        ready = [model for model in waiting if not _needed(model) & set(waiting) - {model}]
        for model in ready:
            fill(model)
        waiting = [model for model in waiting if model not in ready]
    users.get(username="staff").groups.set(apps.get_model("auth", "Group").objects.all())


def _needed(model: Any) -> set[Any]:
    return {field.related_model for field in model._meta.concrete_fields if field.is_relation}


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    django.setup()
    fill_all()
