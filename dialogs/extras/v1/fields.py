"""Readers of single fields of a request's body. Each raises ``ApiError`` by the name of its field."""

from typing import Any

from dialogs.extras.v1.errors import invalid
from dialogs.store.text import unstorable_reason


def read_object(value: Any, param: str) -> dict[str, Any]:
    """Return an object, empty where it was left out."""
    if value is not None and not isinstance(value, dict):
        raise invalid(f"{param} must be an object.", param)
    return value or {}


def read_text(value: Any, param: str) -> str:
    """Return a text, empty where it was left out."""
    if value is not None and not isinstance(value, str):
        raise invalid(f"{param} must be text.", param)
    return value or ""


def read_list(value: Any, param: str) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise invalid(f"{param} must be a list.", param)
    return value or []


def read_entries(value: Any, param: str) -> list[Any]:
    """Return a list, or a list of the one object in its place, as Google's APIs read it."""
    return [value] if isinstance(value, dict) else read_list(value, param)


def read_flag(value: Any, param: str) -> bool:
    if value not in (None, True, False):
        raise invalid(f"{param} must be true or false.", param)
    return bool(value)


def storable(text: str, param: str) -> str:
    """Return a text that the database can hold."""
    if problem := unstorable_reason(text):
        raise invalid(f"{param} {problem}.", param)
    return text
