"""Requests of ``/api`` and ``/mcp`` with a value of another type in any place: refused or done, never a fault of ours.

``DOMINDS_FOREIGN=100000`` tries all of them; without it a sample is tried.
"""

import os
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import orjson
import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.accounts.api_keys import create_key
from dialogs.api.application import api
from dialogs.models import Dialog
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog, send

pytestmark = pytest.mark.django_db(transaction=True)

SAMPLE = int(os.environ.get("DOMINDS_FOREIGN", "150"))
FOREIGN: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**31, 2**62, 2**63, 1e308, "", "x", "\x00", "１", "a" * 3000, [], {}),
    *([None], [[]], [{}], ["x"], {"x": None}, {"type": ["x"]}, {"$ref": "#"}),
)
IN_ADDRESSES = ("", "x", "\x00", "-1", str(2**31), str(2**63), "1e9", "１", "null", "a" * 300, str(uuid4()))
Request = tuple[str, str, Any]  # method, path and body
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}


def sample_of(schema: Any, schemas: Any) -> Any:
    """Return a value that a schema allows."""
    if "$ref" in schema:
        return sample_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if choice := next((schema[name][0] for name in ("anyOf", "oneOf", "allOf", "enum") if schema.get(name)), None):
        return sample_of(choice, schemas) if isinstance(choice, dict) else choice
    match schema.get("type"):
        case "object":
            return {name: sample_of(field, schemas) for name, field in schema.get("properties", {}).items()}
        case "array":
            return [sample_of(schema.get("items", {}), schemas)]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
    return str(uuid4()) if schema.get("format") == "uuid" else "x"


def changed(value: Any) -> Iterator[Any]:
    """Yield the value with each foreign value in each place."""
    yield from FOREIGN
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        for other in changed(inner):
            yield {**value, name: other} if isinstance(value, dict) else [*value[:name], other, *value[name + 1 :]]
    if isinstance(value, dict):
        yield {**value, "unknown": 1}


def requests_of_api(known: dict[str, str]) -> Iterator[Request]:
    described = orjson.loads(orjson.dumps(api.get_openapi_schema(path_prefix="/api/"), option=orjson.OPT_NON_STR_KEYS))
    schemas = described["components"]["schemas"]
    for path, calls in described["paths"].items():
        for method, call in calls.items():
            given = call.get("parameters", [])
            places = {one["name"]: known.get(one["name"], "1") for one in given if one["in"] == "path"}
            queries = [one["name"] for one in given if one["in"] == "query"]
            content = call.get("requestBody", {}).get("content", {}).get("application/json")
            body = sample_of(content["schema"], schemas) if content else None
            for name in places:
                for value in IN_ADDRESSES:
                    yield method, path.format(**{**places, name: quote(value, safe="")}), body
            for name in queries:
                for value in IN_ADDRESSES:
                    yield method, f"{path.format(**places)}?{name}={quote(value)}", body
            for other in changed(body) if content else ():
                yield method, path.format(**places), other


def requests_of_mcp(known: dict[str, str]) -> Iterator[Any]:
    from dialogs.extras.v1.mcp.server import TOOLS

    for tool in TOOLS.values():
        named = tool.parameters.get("$defs", {})
        arguments = {name: sample_of(field, named) for name, field in tool.parameters["properties"].items()}
        arguments |= {name: known["dialog_id"] for name in arguments if name == "dialog"}
        call = {"name": tool.name, "arguments": arguments}
        yield from changed({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})


@pytest.fixture
def person(script: Script) -> User:
    script({"text": "ok"})
    dialog = make_dialog()
    send(dialog, "Hi")
    owner: User = dialog.owner
    return owner


def sampled(requests: Iterator[Any]) -> list[Any]:
    every = list(requests)
    return random.Random(38).sample(every, min(SAMPLE, len(every)))


def test_any_value_anywhere_in_the_api_is_refused_or_done(person: User) -> None:
    known = {"dialog_id": str(Dialog.objects.get().pk)}
    client = Client(headers={"Authorization": f"Bearer {create_key(person)}"}, raise_request_exception=False)
    every = sampled(requests_of_api(known))
    assert len(every) >= min(SAMPLE, 1_500)
    for method, path, body in every:
        written = orjson.dumps(body) if body is not None else b""
        answer = client.generic(method.upper(), path, written, "application/json")
        assert answer.status_code < 500, f"{answer.status_code} {method} {path} {written[:300]!r}"


def test_any_value_in_an_mcp_call_is_refused_or_done(person: User) -> None:
    known = {"dialog_id": str(Dialog.objects.get().pk)}
    client = Client(headers={**MCP_HEADERS, "Authorization": f"Bearer {create_key(person)}"})
    for body in sampled(requests_of_mcp(known)):
        written = orjson.dumps(body)
        answer = client.post("/mcp", written, "application/json")
        assert answer.status_code < 500 and b"fault in Dominds" not in answer.content, written[:300]
