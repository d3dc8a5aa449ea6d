"""Shapes of tools and calls that servers refuse, in whichever dialect they come."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from tests.doubles.rules import Offence

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
CHOICES = ("anyOf", "oneOf", "allOf", "enum", "not")
Named = Iterable[tuple[str, Any]]  # by their paths


def bad_name(named: Named) -> Offence:
    return next(({"path": path} for path, name in named if not NAME.fullmatch(str(name))), None)


def long_text(named: Named, most: int) -> Offence:
    texts = ((path, len(text or "")) for path, text in named)
    return next(({"path": path, "most": most, "length": length} for path, length in texts if length > most), None)


def bad_schema(named: Named) -> Offence:
    for path, schema in named:
        if schema is not None and (reason := _problem_of(json.dumps(schema))):  # without one a tool takes nothing
            return {"path": path, "reason": reason}
    return None


@cache  # each request of a dialog has the same tools, and to check one takes longer than to answer
def _problem_of(schema: str) -> str:
    return _problem(json.loads(schema))


def _problem(schema: Any) -> str:
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return "schema must be a JSON Schema of 'type: \"object\"'"
    if "properties" not in schema:
        return "object schema missing properties"
    if chosen := [name for name in CHOICES if name in schema]:
        return f"schema must not have {chosen[0]} at the top level"
    try:
        Draft202012Validator.check_schema(dict(schema))
    except SchemaError as error:
        return f"JSON schema is invalid: {error.message}"
    parts = list(_parts(schema))
    if any("array" in _types(part) and "items" not in part for part in parts):
        return "array schema missing items"
    if values := [value for part in parts for value in _values_of_another_type(part)]:
        return f"enum value {values[0]!r} does not validate against its type"
    if any(part == {"not": {}} for part in parts):  # Kimi, as the next
        return "invalid parameter value: a schema that nothing fits"
    if any(part.get("additionalProperties") == {} for part in parts):
        return "invalid parameter value: additionalProperties without a type"
    return "references are not known here" if any("$ref" in part or "$dynamicRef" in part for part in parts) else ""


def _types(part: Mapping[str, Any]) -> list[str]:
    types = part.get("type", [])
    return types if isinstance(types, list) else [types]


def _values_of_another_type(part: Mapping[str, Any]) -> list[Any]:
    validator = Draft202012Validator({"type": types}) if (types := _types(part)) else None
    return [value for value in part.get("enum", ()) if validator and not validator.is_valid(value)]


def bad_key(named: Named) -> Offence:
    for path, schema in named:
        for part in _parts(schema):
            properties = part.get("properties")
            for key in properties if isinstance(properties, Mapping) else ():
                if not KEY.fullmatch(key):
                    return {"path": path, "key": key}
    return None


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The schema and all that it is made of."""
    if isinstance(schema, Mapping):
        yield schema
        for name, value in schema.items():
            if name == "properties" and isinstance(value, Mapping):
                for inner in value.values():
                    yield from _parts(inner)
            elif name in ("items", "additionalProperties", "not", "anyOf", "oneOf", "allOf"):
                for inner in value if isinstance(value, list) else [value]:
                    yield from _parts(inner)
