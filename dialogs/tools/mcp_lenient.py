"""Repair of MCP servers' answers before the SDK judges them.

For one tool that it cannot read the SDK refuses a whole list, and for one block, or for data of another shape than the
tool declared, a whole result. Here a list loses only that tool, with a reason, and a result goes through as it came.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import orjson
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest, JSONRPCResponse
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

Received = SessionMessage | Exception
LeaveOut = Callable[[str, str], None]  # hears a tool's name, and why it is left out

# The strictest revision: what it reads, the others read.
REVISION = "2025-11-25"
OPTIONAL = ("title", "description", "annotations", "execution")
BESIDE = ("_meta", "isError", "resultType", "content", "structuredContent", "ttlMs", "cacheScope")
NO_RESULT = {"inputRequests", "requestState", "task"}  # what a server answers that goes on later
USED = ("name", "inputSchema", *OPTIONAL)


@asynccontextmanager
async def lenient(
    transport: AbstractAsyncContextManager[tuple[Any, Any]], leave_out: LeaveOut
) -> AsyncIterator[tuple[ObjectReceiveStream[Received], Any]]:
    """Open the transport, and mend each list of tools and each result on its way."""
    calls: set[str | int] = set()
    async with transport as (received, sending):
        yield _MendedMessages(received, calls, leave_out), _NotedCalls(sending, calls)


class _NotedCalls(ObjectSendStream[SessionMessage]):
    """The messages to a server, of which the ids of calls are noted: what answers one is the result of a tool."""

    def __init__(self, sending: Any, calls: set[str | int]) -> None:
        self._sending, self._calls = sending, calls

    async def send(self, item: SessionMessage) -> None:
        if isinstance(item.message, JSONRPCRequest) and item.message.method == "tools/call":
            self._calls.add(item.message.id)
        await self._sending.send(item)

    async def aclose(self) -> None:
        await self._sending.aclose()


class _MendedMessages(ObjectReceiveStream[Received]):
    """A server's messages, with mended lists of tools and results."""

    def __init__(self, received: ObjectReceiveStream[Received], calls: set[str | int], leave_out: LeaveOut) -> None:
        self._received, self._calls, self._leave_out = received, calls, leave_out

    async def receive(self) -> Received:
        received = await self._received.receive()
        if isinstance(received, SessionMessage) and isinstance(received.message, JSONRPCResponse):
            result = received.message.result
            if isinstance(result.get("tools"), list):
                result["tools"] = list(readable_tools(result["tools"], self._leave_out))
            elif received.message.id in self._calls and not NO_RESULT & result.keys():
                result.update(readable_content(result))
            self._calls.discard(received.message.id)
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
    """Return a result's ``content`` and ``structuredContent`` as the SDK reads them: a block that it does not know
    becomes text, and so does all of a result that has neither."""
    content, data = result.get("content"), result.get("structuredContent")
    if content is None and data is None:
        beside = {name: value for name, value in result.items() if name not in BESIDE}
        content = [_text_block(beside)] if beside else []
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
