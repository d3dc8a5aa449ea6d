"""JSON as models and servers really write it: lone surrogates, cut arguments, arguments that are no object."""

import json
import re
from typing import Any

import orjson

_DECODER = json.JSONDecoder()
_VALUE = re.compile(r"\s*\S")  # up to the first character of a value
SURROGATE = re.compile("[\ud800-\udfff]")


class NotJson(ValueError):
    """The text is not JSON."""


def parse(text: bytes | str, *, takes_nan: bool = False) -> Any:
    """Parse JSON fast. A lone surrogate, which orjson refuses, becomes U+FFFD. Raises ``NotJson``.

    ``takes_nan`` accepts the NaN and the infinities that Python writes, and reads them as null.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return _without_surrogates(json.loads(text, parse_constant=_as_null if takes_nan else _refuse))
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error


def _as_null(constant: str) -> None:
    return None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def dump(value: Any) -> bytes:
    """Serialise to JSON fast. A lone surrogate in any text becomes U+FFFD.

    Integers may have any size, since PostgreSQL returns 1e308, a bound in many schemas, as an integer of 309 digits.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        plain = _without_surrogates(value)
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), default=_of_orjson).encode()


def _of_orjson(value: Any) -> Any:
    """Return as plain values what only orjson can write, such as a fragment of JSON."""
    return json.loads(orjson.dumps(value))


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value


def arguments_object(raw: str) -> dict[str, Any]:
    """Return a stored call's arguments as the object that every wire format requires.

    Malformed arguments must not break the next request, so they are wrapped in an object.
    """
    try:
        value = parse(raw) if raw.strip() else {}
    except NotJson:
        value = None
    return value if isinstance(value, dict) else {"malformed_arguments": raw}


def arguments_text(raw: str) -> str:
    """Return a stored call's arguments as JSON text. Well-formed text is unchanged, so that providers' caches hit."""
    value = arguments_object(raw)
    return dump(value).decode() if "malformed_arguments" in value or not raw.strip() else raw


def is_whole(raw: str) -> bool:
    """Check whether a call's arguments are one complete JSON object."""
    try:
        return raw.rstrip().endswith("}") and isinstance(parse(raw), dict)
    except NotJson:
        return False


def objects_in(raw: str) -> list[str]:
    """Return the JSON objects that a call's arguments consist of, without duplicates; none if they hold anything else.

    Bedrock puts an empty object before the arguments, and some gateways join those of two calls. Others repeat them, as
    vLLM did for GLM, where the spaces of the repetition differ.
    An empty object is left out if there is another one. An object that was written as a JSON text is unwrapped.
    """
    found: dict[str, str] = {}  # the text of each object, by the object in one form
    at = 0
    try:
        while start := _VALUE.match(raw, at):
            value, at = _DECODER.raw_decode(raw, start.end() - 1)
            if isinstance(value, str) and not found and not raw[at:].strip():
                return [value] if is_whole(value) else []  # an object that was written as a text once more
            if not isinstance(value, dict):
                return []
            found.setdefault(json.dumps(value, sort_keys=True), raw[start.end() - 1 : at])
    except (ValueError, RecursionError):
        return []
    return [text for text in found.values() if text.strip("{} \n") or len(found) == 1]
