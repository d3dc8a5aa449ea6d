"""Plain requests to a double, where no SDK would send what a rule refuses."""

import json
from typing import Any

import httpx2

from tests.doubles.rules import Refusal
from tests.doubles.serving import Double

CLIENT = httpx2.Client(timeout=10)  # one for all: making a client takes 30 ms
TOOL_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}


def post(double: Double, path: str, body: Any, **headers: str) -> httpx2.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return CLIENT.post(double.url + path, json=body, headers=names)


def get(double: Double, path: str) -> Any:
    return CLIENT.get(double.url + path).json()


def events_of(response: httpx2.Response) -> list[Any]:
    """The payloads of a stream, without the last mark."""
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def last_refusal(double: Double) -> Refusal:
    return double.refusals[-1]
