"""Repair of MCP servers' answers before the SDK judges them.

For one tool that it cannot read the SDK refuses a whole list, and for one block, or for data of another shape than the
tool declared, a whole result. Here a list loses only that tool, with a reason, and a result goes through as it came.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import orjson
from anyio.abc import ObjectReceiveStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

Received = SessionMessage | Exception
LeaveOut = Callable[[str, str], None]  # hears a tool's name, and why it is left out

# The strictest revision: what it reads, the others read.
REVISION = "2025-11-25"
OPTIONAL = ("title", "description", "annotations")
USED = ("name", "inputSchema", *OPTIONAL)


@asynccontextmanager
async def lenient(
    transport: AbstractAsyncContextManager[tuple[Any, Any]], leave_out: LeaveOut
) -> AsyncIterator[tuple[ObjectReceiveStream[Received], Any]]:
    """Open the transport, and mend each list of tools and each result on its way."""
    async with transport as (received, sending):
        yield _MendedMessages(received, leave_out), sending


class _MendedMessages(ObjectReceiveStream[Received]):
    """A server's messages, with mended lists of tools and results."""

    def __init__(self, received: ObjectReceiveStream[Received], leave_out: LeaveOut) -> None:
        self._received, self._leave_out = received, leave_out

    async def receive(self) -> Received:
        received = await self._received.receive()
        if isinstance(received, SessionMessage) and isinstance(received.message, JSONRPCResponse):
            result = received.message.result
            if isinstance(result.get("tools"), list):
                result["tools"] = list(readable_tools(result["tools"], self._leave_out))
            elif "content" in result or "structuredContent" in result:
                result.update(readable_content(result))
        return received

    async def aclose(self) -> None:
        await self._received.aclose()


def readable_tools(listed: list[Any], leave_out: LeaveOut) -> Iterator[dict[str, Any]]:
    """Yield the tools that the SDK can read, without parts that it could stumble over and that nobody uses here, such
    as icons or the declared shape of results.
    """
    for entry in listed:
        if not isinstance(entry, dict):
            leave_out("?", f"a tool is an object, not {type(entry).__name__}")
            continue
        tool = {key: entry[key] for key in USED if entry.get(key) is not None}
        tool["inputSchema"] = _object_schema(tool.get("inputSchema"))
        while (problem := _problem_with(tool)) and (field := problem.partition(":")[0].partition("/")[0]) in OPTIONAL:
            del tool[field]
        if problem:
            leave_out(str(entry.get("name") or "?"), problem)
        else:
            yield tool


def readable_content(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result's ``content`` and ``structuredContent`` in a form that the SDK reads: an unknown block becomes
    text.
    """
    content, data = result.get("content"), result.get("structuredContent")
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    readable = [block if _is_readable("tools/call", {"content": [block]}) else _text_block(block) for block in blocks]
    if data is not None and not isinstance(data, dict):
        return {"content": [*readable, _text_block(data)], "structuredContent": None}
    return {"content": readable}


def _text_block(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value if isinstance(value, str) else orjson.dumps(value).decode()}


def _object_schema(schema: Any) -> Any:
    """Return the schema of an object, since arguments are always sent as one.

    Some servers leave the type out, and those written in PHP send an empty list for no properties.
    """
    if schema is None:
        return {"type": "object"}
    if not isinstance(schema, dict):
        return schema
    schema = {"type": "object"} | schema
    if schema["type"] in ("OBJECT", ["object"]):
        schema["type"] = "object"
    if schema.get("properties") in ([], None):
        schema.pop("properties", None)
    return schema


def _problem_with(tool: dict[str, Any]) -> str:
    """Return why the SDK would refuse a list with this tool, beginning with the field, or an empty text."""
    try:
        validate_server_result("tools/list", REVISION, {"tools": [tool]})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = "/".join(str(step) for step in first["loc"] if step not in ("tools", 0))
        return f"{where}: {first['msg']}"
    return ""


def _is_readable(method: str, result: dict[str, Any]) -> bool:
    try:
        validate_server_result(method, REVISION, result)
    except ValidationError:
        return False
    return True
