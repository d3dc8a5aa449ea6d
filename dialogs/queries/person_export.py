"""An export of all data of a person: account, settings, keys, sign-ins, statistics, messages and dialogs."""

from collections.abc import Iterator
from typing import Any

import orjson
from django.contrib.auth.models import User
from django.db.models import Model, QuerySet

from dialogs.models import (
    ApiKey,
    CallTotals,
    Dialog,
    EmbeddingUse,
    Identity,
    PersonSettings,
    PromptTemplate,
    PushSubscription,
    Turn,
)
from dialogs.queries import export
from dialogs.store import json_shapes

# Columns that are not exported, since they give access to something.
SECRETS = frozenset({"password", "digest", "key", "secret", "address"})
ROWS: dict[str, tuple[type[Model], str]] = {
    "settings": (PersonSettings, "user"),
    "templates": (PromptTemplate, "owner"),
    "keys": (ApiKey, "owner"),
    "sign_ins": (Identity, "user"),
    "push_subscriptions": (PushSubscription, "user"),
    "calls": (CallTotals, "person"),
    "embeddings": (EmbeddingUse, "person"),
}


def export_person(user: User) -> Iterator[str]:
    """Yield one JSON object, in pieces. ``messages_elsewhere`` are the person's messages in dialogs of others."""
    account = _columns(user) | {"groups": sorted(user.groups.values_list("name", flat=True))}
    yield f'{{"account":{_json(account)}'
    for name, (model, column) in ROWS.items():
        rows: QuerySet[Any] = model._default_manager.filter(**{column: user}).order_by("pk")
        yield f',"{name}":{_json([_columns(row) for row in rows])}'
    elsewhere = Turn.objects.filter(author=user).exclude(dialog__owner=user).order_by("dialog", "seq")
    said = [
        {"dialog": str(turn.dialog_id), "at": json_shapes.when(turn.created_at), "text": turn.text}
        for turn in elsewhere.only("dialog_id", "created_at", "text")
    ]
    yield f',"messages_elsewhere":{_json(said)},"dialogs":['
    for number, dialog in enumerate(Dialog.objects.filter(owner=user).order_by("created_at", "pk")):
        yield "," if number else ""
        yield from export.as_json(dialog)
    yield "]}"


def _columns(row: Model) -> dict[str, Any]:
    return {
        field.name: field.value_from_object(row)
        for field in row._meta.concrete_fields
        if field.name not in SECRETS and not field.name.startswith("sealed_")
    }


def _json(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()
