"""A dialog's events, whichever rows hold them."""

from typing import Any

from dialogs.models import Dialog
from dialogs.store import events

ALL = 1_000_000


def events_of(dialog: Dialog, *types: str) -> list[dict[str, Any]]:
    """Its events as the API answers them, oldest first; of these types, if any are named."""
    return [event for event in events.after(dialog.pk, 0, ALL) if not types or event["type"] in types]


def event_data(dialog: Dialog, kind: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events_of(dialog, kind)]


def numbers(dialog: Dialog) -> list[int]:
    return [event["seq"] for event in events_of(dialog)]
