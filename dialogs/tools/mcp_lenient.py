"""Repair of MCP servers' answers before the SDK judges them.

For one tool that it cannot read the SDK refuses a whole list, and for one block, or for data of another shape than the
tool declared, a whole result, and for one field of its introduction a server. Here a list loses only that tool, with a
reason, a result goes through as it came, and of an introduction only the version and the tools count. An error that
names no request belongs to the one that waits.
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
Waiting = dict[RequestId, str]  # the methods of requests without an answer
LeaveOut = Callable[[str, str], None]  # hears a tool's name, and why it is left out

# The strictest revision: what it reads, the others read.
REVISION = "2025-11-25"
OPTIONAL = ("title", "description", "annotations", "execution")
BESIDE = ("_meta", "isError", "resultType", "content", "structuredContent", "ttlMs", "cacheScope")
LATER = {"inputRequests", "requestState"}  # what a server answers that goes on when a person has answered
TASK = "it answered with a task of the protocol, whose result would come later, which is not offered here"
ABOUT = ("annotations", "_meta", "icons")  # fields about a block
DATA = ("data", "blob")
TRUE = ("true", "1", "yes")
USED = ("name", "inputSchema", *OPTIONAL)


@asynccontextmanager
async def lenient(
    transport: AbstractAsyncContextManager[tuple[Any, Any]], leave_out: LeaveOut
) -> AsyncIterator[tuple[ObjectReceiveStream[Received], Any]]:
    """Open the transport, and mend each list of tools and each result on its way."""
    waiting: Waiting = {}
    async with transport as (received, sending):
        yield _MendedMessages(received, waiting, leave_out), _NotedRequests(sending, waiting)


class _NotedRequests(ObjectSendStream[SessionMessage]):
    """The messages to a server, of which the requests are noted that wait for an answer."""

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
    """A server's messages, with mended lists of tools and results."""

    def __init__(self, received: ObjectReceiveStream[Received], waiting: Waiting, leave_out: LeaveOut) -> None:
        self._received, self._waiting, self._leave_out = received, waiting, leave_out

    async def receive(self) -> Received:
        received = await self._received.receive()
        if isinstance(received, SessionMessage):
            match received.message:
                case JSONRPCResponse() as answer:
                    return replace(received, message=self._mend(answer))
                case JSONRPCError() as error:
                    if error.id is None and len(self._waiting) == 1:  # the server could not read whose error it is
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
    """Return what a server says of itself as the SDK reads it, with the newest version that is no newer than its own.
    What it offers beside tools is not used here.
    """
    version, info, tools = str(result.get("protocolVersion")), result.get("serverInfo"), result.get("capabilities")
    known = [each for each in HANDSHAKE_PROTOCOL_VERSIONS if each <= version] or HANDSHAKE_PROTOCOL_VERSIONS[:1]
    info = info if isinstance(info, dict) else {}
    tools = tools.get("tools") if isinstance(tools, dict) else None
    is_heard = isinstance(tools, dict) and tools.get("listChanged") is True
    return {
        "protocolVersion": known[-1],
        "capabilities": {"tools": {"listChanged": is_heard}},
        "serverInfo": {name: str(info.get(name) or "?") for name in ("name", "version")},
    }


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
    """Return a result's ``content``, ``structuredContent`` and ``isError`` as the SDK reads them: a block that it does
    not know becomes text, and so does all of a result that has neither."""
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
    """Return a block as the SDK reads it, if need be without what is said about it. Any other becomes text, in which
    data stand for no more than their length.
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
