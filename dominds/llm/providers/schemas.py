"""Conversion of tools' JSON schemas to a form that all providers accept.

Its root is an object with properties and without choices. Everything else in a schema becomes words in a description,
or is left out: the model's arguments are checked against the original schema. References are replaced by their targets,
except where a schema contains itself.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from dominds.llm.json_text import dump

PLAIN_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")  # Anthropic
TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
CHOICES = ("anyOf", "oneOf", "allOf")
INNER = ("items", *CHOICES)  # keywords whose values are schemas, besides properties
MOST_PARTS = 5_000  # in one schema; a larger one would fill the context
DEEPEST = 40  # levels of nested schemas
# Look-around, back references and Unicode classes: several servers turn patterns into grammars, and know none.
ODD_PATTERN = re.compile(r"\(\?(?!:)|\\[1-9pPkKAzZ]|[*+?}]\+")


class Unfit(ValueError):
    """Raised for a tool that cannot be offered. The message says why."""


Schema = dict[str, Any]


def fit_schema(schema: Any, *, plain_keys: bool = False, anchored: bool = False) -> Schema:
    """Return a schema that providers accept. Raises ``Unfit``.

    ``plain_keys`` renames properties whose names a provider refuses; ``original_keys`` maps them back. ``anchored``
    moves patterns without ``^`` and ``$`` into descriptions.
    """
    if not isinstance(schema, Mapping):
        raise Unfit("its schema is no object")
    return _as_root(_Fitting(dict(schema), plain_keys, anchored).fit(dict(schema), (), 0))


def wire_key(key: str) -> str:
    if PLAIN_KEY.fullmatch(key):
        return key
    plain = re.sub(r"[^a-zA-Z0-9_.-]", "_", key[:50]).strip("_") or "key"
    return f"{plain}_{hashlib.blake2b(key.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"


@lru_cache(maxsize=1024)
def original_keys(schema: bytes) -> dict[str, str]:
    """Map the new names of properties that ``plain_keys`` renames to the original ones."""
    keys: dict[str, str] = {}
    _collect(orjson.loads(schema), keys)
    return keys


def _collect(part: Any, keys: dict[str, str]) -> None:
    if isinstance(part, dict):
        properties = part.get("properties")
        for key in properties if isinstance(properties, dict) else ():
            if (wire := wire_key(key)) != key:
                keys[wire] = key
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _collect(inner, keys)


def close_objects(schema: Any) -> Any:
    """Return the schema with ``additionalProperties: false`` in each object that names properties, for strict mode."""
    if isinstance(schema, list):
        return [close_objects(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {name: close_objects(part) if name in INNER else part for name, part in schema.items()}
    if isinstance(schema.get("properties"), dict):
        result["properties"] = {key: close_objects(part) for key, part in schema["properties"].items()}
        result.setdefault("additionalProperties", False)
    return result


def is_closed(schema: Any) -> bool:
    """Check that no object in the schema allows properties that it does not name, as strict mode requires."""
    if isinstance(schema, list):
        return all(map(is_closed, schema))
    if not isinstance(schema, dict):
        return True
    if (schema.get("type") == "object" or "properties" in schema) and schema.get("additionalProperties") is not False:
        return False
    parts = (*schema.get("properties", {}).values(), *(schema[name] for name in INNER if name in schema))
    return all(map(is_closed, parts))


@dataclass
class _Fitting:
    root: Schema
    plain_keys: bool
    anchored: bool
    parts: int = field(default=0)

    def fit(self, part: Any, within: tuple[str, ...], depth: int) -> Schema:
        """Return one schema in the accepted form. ``within`` are the references that led to it."""
        self.parts += 1
        if self.parts > MOST_PARTS or depth > DEEPEST:
            raise Unfit(f"its schema has more than {MOST_PARTS:,} parts, or is nested too deeply")
        if not isinstance(part, dict):
            return {}  # true allows anything; for false the tool itself refuses the value
        if "$ref" in part:
            return self._follow_references(part, within, depth)
        result: Schema = {}
        for name, value in part.items():
            self._add(result, name, value, within, depth)
        if "array" in _types_of(result) and "items" not in result:
            result["items"] = {}
        _keep_possible_values(result)
        if "required" in result:
            known = result.get("properties", {})
            asked = [name for name in dict.fromkeys(result["required"]) if name in known]
            result["required"] = asked
            if not asked and part.get("required"):
                del result["required"]
        return result

    def _follow_references(self, part: Schema, within: tuple[str, ...], depth: int) -> Schema:
        reference, beside = part["$ref"], {name: value for name, value in part.items() if name != "$ref"}
        if reference in within:
            return self.fit({"type": "object", **beside}, within, depth + 1)
        try:
            target = _target(self.root, reference)
        except Unfit:
            if depth == 0:
                raise
            return self.fit(beside, within, depth + 1)  # allows anything; the tool itself refuses wrong values
        result = self.fit(target, (*within, reference), depth + 1)
        return {**result, **self.fit(beside, within, depth + 1)} if beside else result

    def _add(self, result: Schema, name: str, value: Any, within: tuple[str, ...], depth: int) -> None:
        """Add one keyword to ``result``, if providers know it and its value is valid."""
        match name:
            case "type" if isinstance(value, str) and value.lower() in TYPES:  # Google writes them in capitals
                result[name] = value.lower()
            case "properties" if isinstance(value, dict):
                result[name] = {self._key(key): self._property(key, each, within, depth) for key, each in value.items()}
            case "required" if isinstance(value, list):
                result[name] = [self._key(key) for key in value if isinstance(key, str)]
            case "items" if isinstance(value, dict | bool):
                result[name] = self.fit(value, within, depth + 1)
            case "items" | "prefixItems" if isinstance(value, list) and value:
                result["items"] = {"anyOf": [self.fit(each, within, depth + 1) for each in value]}
            case "anyOf" | "oneOf" | "allOf" if isinstance(value, list):
                if branches := [self.fit(each, within, depth + 1) for each in value if not _is_never(each)]:
                    result[name] = branches
            case "not" if isinstance(value, dict) and value:
                result[name] = self.fit(value, within, depth + 1)
            case "additionalProperties" if isinstance(value, dict):
                result[name] = self.fit(value, within, depth + 1) or True
            case "additionalProperties" if isinstance(value, bool):
                result[name] = value
            case "patternProperties":
                result["additionalProperties"] = True
            case "pattern" if isinstance(value, str):
                if self._is_plain(value):
                    result[name] = value
                else:
                    result["description"] = f"{result.get('description', '')} It matches {value}".strip()
            case "description" if isinstance(value, str):
                result[name] = f"{value} {result.get(name, '')}".strip()
            case _ if (is_sound := SOUND.get(name)) and is_sound(value):
                result[name] = value

    def _key(self, key: str) -> str:
        return wire_key(key) if self.plain_keys else key

    def _property(self, key: str, part: Any, within: tuple[str, ...], depth: int) -> Schema:
        result = self.fit(part, within, depth + 1)
        if self._key(key) != key:
            result["description"] = f"{key}: {result.get('description', '')}".rstrip(": ")
        return result

    def _is_plain(self, pattern: str) -> bool:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError):
            return False
        is_anchored = pattern.startswith("^") and pattern.endswith("$")
        return not ODD_PATTERN.search(pattern) and (is_anchored or not self.anchored)


def _types_of(schema: Schema) -> list[str]:
    types = schema.get("type", [])
    return types if isinstance(types, list) else [types]


def _is_never(schema: Any) -> bool:
    """Check for a schema that no value matches. Zod adds one to the choices of an optional value."""
    return schema is False or schema == {"not": {}}


def _keep_possible_values(schema: Schema) -> None:
    """Remove values of an ``enum`` that its types exclude or that it repeats, since OpenAI refuses both."""
    if "enum" not in schema:
        return
    types = _types_of(schema)
    values = {dump(value): value for value in schema["enum"] if not types or _type_of(value) & {*types}}
    if values:
        schema["enum"] = list(values.values())
        return
    listed = dump(schema.pop("enum")).decode()
    if types != ["null"]:
        schema["description"] = f"{schema.get('description', '')} One of {listed}".strip()


def _type_of(value: Any) -> set[str]:
    """Return the names of the types that a value has."""
    match value:
        case None:
            return {"null"}
        case bool():
            return {"boolean"}
        case int() | float():
            return {"number", "integer"} if isinstance(value, int) or value.is_integer() else {"number"}
        case str():
            return {"string"}
    return {"array"} if isinstance(value, list) else {"object"}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    is_known = bool(names) and all(isinstance(name, str) and name in TYPES for name in names)
    return is_known and len(set(names)) == len(names)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


SOUND: Mapping[str, Callable[[Any], bool]] = {
    "type": _is_type,
    "enum": _is_list,
    "const": lambda value: True,
    "default": lambda value: True,
    "examples": _is_list,
    "title": _is_text,
    "format": _is_text,
    "nullable": lambda value: isinstance(value, bool),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_count),
    "uniqueItems": lambda value: isinstance(value, bool),
}


def _target(root: Schema, reference: Any) -> Any:
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise Unfit(f"its schema refers to something outside of it ({str(reference)[:80]!r})")
    result: Any = root
    try:
        for step in reference[2:].split("/") if len(reference) > 1 else ():
            key = step.replace("~1", "/").replace("~0", "~")
            result = result[int(key)] if isinstance(result, list) else result[key]
    except (LookupError, ValueError, TypeError):
        raise Unfit(f"its schema refers to {reference[:80]!r}, which is not in it") from None
    return result


def _as_root(schema: Schema) -> Schema:
    """Return the schema as an object with properties.

    A choice at the root is replaced by the properties of all its branches. A property is required if every branch
    requires it; for ``allOf``, if any does.
    """
    kinds = schema.get("type", "object")
    if kinds != "object" and "object" not in kinds:
        raise Unfit(f"its arguments would be no object but {kinds!r}")
    chosen = [name for name in CHOICES if name in schema]
    for name in chosen:
        schema = _merge(schema, schema[name], is_all=name == "allOf")
    result = {name: value for name, value in schema.items() if name not in (*CHOICES, "not", "enum", "const")}
    if list(result)[:1] != ["type"] and "type" not in result:
        result = {"type": "object", **result}
    result["type"] = "object"
    result.setdefault("properties", {})
    return result


def _merge(schema: Schema, branches: list[Schema], *, is_all: bool) -> Schema:
    properties = dict(schema.get("properties", {}))
    asked: list[list[str]] = []
    for branch in map(_flat, branches):
        if branch.get("type", "object") != "object":
            continue
        for key, value in branch.get("properties", {}).items():
            known = properties.get(key)
            properties[key] = value if known in (None, value) else {"anyOf": [known, value]}
        asked.append(branch.get("required", []))
    common = [key for one in asked for key in one if is_all or all(key in other for other in asked)]
    result = {**schema, "properties": properties}
    if required := list(dict.fromkeys([*schema.get("required", ()), *common])):
        result["required"] = [key for key in required if key in properties]
    result.pop("additionalProperties", None)
    return result


def _flat(branch: Schema) -> Schema:
    for name in CHOICES:
        if name in branch:
            branch = _merge(branch, branch[name], is_all=name == "allOf")
    return branch
