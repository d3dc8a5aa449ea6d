"""Repair of MCP servers' answers before the SDK judges them.

The SDK refuses a whole list of tools because of one that it cannot read, a whole result because of one block or of data
in another shape than declared, and a server because of one field of its introduction. Here a list loses only that tool,
and the reason is noted. A result is passed on as it came. Of an introduction only the version and the tools count. An
error without the id of a request belongs to the only request that waits.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from mcp_types.methods import validate_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from dominds.llm.json_text import dump

Received = SessionMessage | Exception
Waiting = dict[RequestId, str]  # the methods of requests that wait for an answer
LeaveOut = Callable[[str, str], None]  # called with a tool's name and why it is left out

# The strictest revision of the protocol: messages that are valid under it are valid under the others.
REVISION = "2025-11-25"
OPTIONAL = ("title", "description", "annotations", "execution")
BESIDE = ("_meta", "isError", "resultType", "content", "structuredContent", "ttlMs", "cacheScope")
LATER = {"inputRequests", "requestState"}  # keys of an answer after which the call goes on when a person has answered
TASK = "it answered with a task of the protocol, whose result would come later, which is not offered here"
ABOUT = ("annotations", "_meta", "icons")  # optional fields of a block
DATA = ("data", "blob")
TRUE = ("true", "1", "yes")
USED = ("name", "inputSchema", *OPTIONAL)


@asynccontextmanager
async def lenient(
    transport: AbstractAsyncContextManager[tuple[Any, Any]], leave_out: LeaveOut
) -> AsyncIterator[tuple[ObjectReceiveStream[Received], Any]]:
    """Open the transport, and repair each list of tools and each result that comes through it."""
    waiting: Waiting = {}
    async with transport as (received, sending):
        yield _MendedMessages(received, waiting, leave_out), _NotedRequests(sending, waiting)


class _NotedRequests(ObjectSendStream[SessionMessage]):
    """The messages to a server. Requests are noted until they are answered or cancelled."""

    def __init__(self, sending: Any, waiting: Waiting) -> None:
        self._sending, self._waiting = sending, waiting

    async def send(self, item: SessionMessage) -> None:
        match item.message:
            case JSONRPCRequest(id=number, method=method):
                self._waiting[coerce_request_id(number)] = method
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": number}):
                self._waiting.pop(coerce_request_id(number), None)
        await self._sending.send(item)

    async def aclose(self) -> None:
        await self._sending.aclose()


class _MendedMessages(ObjectReceiveStream[Received]):
    """The messages from a server, with repaired lists of tools and results."""

    def __init__(self, received: ObjectReceiveStream[Received], waiting: Waiting, leave_out: LeaveOut) -> None:
        self._received, self._waiting, self._leave_out = received, waiting, leave_out

    async def receive(self) -> Received:
        received = await self._received.receive()
        if isinstance(received, SessionMessage):
            match received.message:
                case JSONRPCResponse() as answer:
                    return replace(received, message=self._mend(answer))
                case JSONRPCError() as error:
                    if error.id is None and len(self._waiting) == 1:  # the server could not read the request's id
                        error.id = next(iter(self._waiting))
                    self._method_of(error)
        return received

    def _method_of(self, answer: JSONRPCResponse | JSONRPCError) -> str:
        return "" if answer.id is None else self._waiting.pop(coerce_request_id(answer.id), "")

    def _mend(self, answer: JSONRPCResponse) -> JSONRPCResponse | JSONRPCError:
        method, result = self._method_of(answer), answer.result
        if not isinstance(result.get("_meta", {}), dict):
            del result["_meta"]
        if method == "initialize":
            answer.result = readable_introduction(result)
        elif method == "tools/list":
            result["tools"] = list(readable_tools(result.get("tools") or [], self._leave_out))
            cursor = result.pop("nextCursor", None)
            if isinstance(cursor, str | int):
                result["nextCursor"] = str(cursor)
        elif method == "tools/call" and ("task" in result or result.get("resultType") == "task"):
            return JSONRPCError(jsonrpc="2.0", id=answer.id, error=ErrorData(code=INVALID_REQUEST, message=TASK))
        elif method == "tools/call" and not LATER & result.keys():
            result.update(readable_content(result))
        return answer

    async def aclose(self) -> None:
        await self._received.aclose()


def readable_introduction(result: dict[str, Any]) -> dict[str, Any]:
    """Return a server's introduction in the form that the SDK reads, with the newest known version that is not newer
    than the server's. Only tools are kept of its capabilities, since nothing else is used here.
    """
    version, info, tools = str(result.get("protocolVersion")), result.get("serverInfo"), result.get("capabilities")
    known = [each for each in HANDSHAKE_PROTOCOL_VERSIONS if each <= version] or HANDSHAKE_PROTOCOL_VERSIONS[:1]
    info = info if isinstance(info, dict) else {}
    tools = tools.get("tools") if isinstance(tools, dict) else None
    tells_changes = isinstance(tools, dict) and tools.get("listChanged") is True
    return {
        "protocolVersion": known[-1],
        "capabilities": {"tools": {"listChanged": tells_changes}},
        "serverInfo": {name: str(info.get(name) or "?") for name in ("name", "version")},
    }


def readable_tools(listed: list[Any], leave_out: LeaveOut) -> Iterator[dict[str, Any]]:
    """Yield the tools that the SDK can read, without fields that are not used here and could be invalid, such as icons
    or the declared shape of results.
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
    """Return a result's ``content``, ``structuredContent`` and ``isError`` in the form that the SDK reads.

    A block that the SDK does not know becomes text, and so does a whole result without content and data.
    """
    is_error = str(result.get("isError")).lower() in TRUE
    content, data = result.get("content"), result.get("structuredContent")
    if content is None and data is None:
        beside = {name: value for name, value in result.items() if name not in BESIDE}
        content = [_text_block(beside)] if beside else []
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    readable = list(map(_readable_block, blocks))
    if data is not None and not isinstance(data, dict):
        return {"content": [*readable, _text_block(data)], "structuredContent": None, "isError": is_error}
    return {"content": readable, "isError": is_error}


def _readable_block(block: Any) -> dict[str, Any]:
    """Return a block in a form that the SDK reads, if necessary without its optional fields. Any other block becomes
    text, with the length of binary data in place of the data.
    """
    bare = {name: value for name, value in block.items() if name not in ABOUT} if isinstance(block, dict) else block
    for each in (block, bare):
        if _is_readable("tools/call", {"content": [each]}):
            assert isinstance(each, dict)
            return each
    return _text_block({name: _named_data(name, value) for name, value in bare.items()} if bare is not block else block)


def _named_data(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {inner: _named_data(inner, each) for inner, each in value.items()}
    return f"{len(value) * 3 // 4:,} bytes: not shown" if name in DATA and isinstance(value, str) else value


def _text_block(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value if isinstance(value, str) else dump(value).decode()}


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
    properties = schema.get("properties")
    if isinstance(properties, dict):
        schema["properties"] = {key: each if isinstance(each, dict) else {} for key, each in properties.items()}
    elif properties in ([], None):
        schema.pop("properties", None)
    if not isinstance(schema.get("required"), list):
        schema.pop("required", None)
    return schema


def _problem_with(tool: dict[str, Any]) -> str:
    """Return why the SDK would refuse a list with this tool, beginning with the field; empty if it would not."""
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
