"""A type of an official client, and what becomes of each of its fields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dialogs.extras.v1.parsing import ChatRequest, chat_request
from tests.pixels import coded, picture

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
IMAGE = f"data:image/png;base64,{coded(picture())}"
TEXT = "data:text/plain;base64,SGVsbG8="
CALL = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
HI = {"role": "user", "content": "Hi"}
SKILL = {"name": "ships", "path": "/skills/ships", "description": "Counts ships."}
BREAKS = {"prompt_cache_breakpoint": {"type": "explicit"}}
CACHED = {"cache_control": {"type": "ephemeral"}}


@dataclass(frozen=True)
class Kind:
    """A type of a client, with a value for each of its fields that asks for something, by what becomes of it.

    ``always_given`` are the fields that every object has. ``body`` makes a request that holds an object. ``also`` are
    types of the same objects elsewhere in the client.
    """

    type: Any
    body: Callable[[dict[str, Any]], dict[str, Any]]
    always_given: Mapping[str, Any]
    honoured: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, Any] = field(default_factory=dict)
    harmless: Mapping[str, Any] = field(default_factory=dict)
    reader: Callable[[dict[str, Any]], ChatRequest] = chat_request
    also: tuple[Any, ...] = ()

    @property
    def types(self) -> tuple[Any, ...]:
        return (self.type, *self.also)

    def beside(self, name: str) -> list[Any]:
        """Return what a list always holds."""
        value = self.always_given.get(name)
        return value if isinstance(value, list) else []

    def read(self, **more: Any) -> ChatRequest:
        return self.reader(self.body({**self.always_given, **more}))
