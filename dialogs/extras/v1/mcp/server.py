"""The SDK's server behind a Django view: one request, one answer in JSON, no session.
Import this late: the SDK is large."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import orjson
import structlog
from asgiref.sync import sync_to_async
from django.http import HttpResponse
from mcp.server.lowlevel import Server
from mcp.server.mcpserver.tools import Tool
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import CallToolResult, ListToolsResult, TextContent, ToolAnnotations
from mcp.types import Tool as Described
from pydantic import ValidationError

from dialogs.api.auth import PersonRequest, ScopeRefused
from dialogs.api.problems import fields_of
from dialogs.errors import Invalid, Refusal
from dialogs.extras.v1.mcp.tools import ACTING, READING
from dialogs.models import ApiKey
from dominds import budgets
from dominds.version import VERSION
from dominds.web import busy_database

log = structlog.get_logger(__name__)

MOST_BYTES = 200_000  # of one result
CUTS = (20_000, 4_000, 1_000, 200)  # characters that each text keeps, until the whole is within MOST_BYTES
INSTRUCTIONS = (
    "Dominds runs dialogs of agents and keeps their contexts healthy. Search and read what was said, also what left a "
    "context; answer questions that wait for a person; ask the person yourself; keep reminders of a dialog."
)
TOOLS = {function.__name__: Tool.from_function(function, context_kwarg="request") for function in (*READING, *ACTING)}
READS = frozenset(function.__name__ for function in READING)
Message = MutableMapping[str, Any]


async def exchange(request: PersonRequest, key: ApiKey, scope: Message) -> HttpResponse:
    """Return the SDK's answer to this request."""
    body = [{"type": "http.request", "body": request.body, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        if body:
            return body.pop()
        await asyncio.Event().wait()  # nothing follows; a client that leaves cancels all of this
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    manager = StreamableHTTPSessionManager(
        _server(request, key), json_response=True, stateless=True, max_request_body_size=budgets.BODY_BYTES.most
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)
    answer = HttpResponse(b"".join(message.get("body", b"") for message in sent), status=sent[0]["status"])
    del answer["Content-Type"]
    for name, value in sent[0]["headers"]:
        answer[name.decode("latin-1")] = value.decode("latin-1")
    return answer


def _server(request: PersonRequest, key: ApiKey) -> Server[Any]:
    """Make a server that offers what the key may do."""

    async def list_tools(context: Any, given: Any) -> ListToolsResult:
        return ListToolsResult(tools=[_describe(tool) for tool in TOOLS.values() if _may_call(key, tool.name)])

    async def call_tool(context: Any, given: Any) -> CallToolResult:
        call = sync_to_async(_call)  # on the thread of the request
        return await call(request, key, given.name, given.arguments or {})

    return Server(
        "Dominds", version=VERSION, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


def _describe(tool: Tool) -> Described:
    hints = ToolAnnotations(read_only_hint=tool.name in READS, open_world_hint=False)
    return Described(name=tool.name, description=tool.description, input_schema=tool.parameters, annotations=hints)


def _may_call(key: ApiKey, name: str) -> bool:
    return name in READS or key.scope != ApiKey.Scope.READ


def _call(request: PersonRequest, key: ApiKey, name: str, arguments: dict[str, Any]) -> CallToolResult:
    """Run a tool, and turn every failure into a sentence for the model."""
    try:
        tool = TOOLS.get(name)
        if tool is None:
            raise Invalid(f"There is no tool {name!r}. There are {', '.join(TOOLS)}.")
        if not _may_call(key, name):
            raise ScopeRefused(key)
        return _result(_bounded_json(_run(request, tool, arguments)))
    except Refusal as problem:
        return _result(problem.message, failed=True)
    except ValidationError as problem:
        return _result(fields_of(problem.errors()), failed=True)
    except (*busy_database.AWAY, TimeoutError) as problem:
        log.warning("mcp_unavailable", tool=name, error=str(problem) or type(problem).__name__)
        known = busy_database.is_known(request, problem)
        return _result(busy_database.NOTHING if known else busy_database.UNKNOWN, failed=True)
    except Exception as problem:
        log.error("mcp_failed", tool=name, exc_info=problem)
        return _result("This tool failed because of a fault in Dominds; it has been logged.", failed=True)


def _run(request: PersonRequest, tool: Tool, arguments: dict[str, Any]) -> Any:
    known = tool.parameters["properties"]
    if unknown := [name for name in arguments if name not in known]:
        raise Invalid(f"{tool.name} does not take {', '.join(unknown)}. It takes {', '.join(known)}.")
    return tool.fn(request, **tool.fn_metadata.validate_arguments(arguments))


def _result(text: str, *, failed: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)


def _bounded_json(value: Any) -> str:
    """Write a value as JSON, with long texts cut as far as needed."""
    for most in CUTS:
        text = orjson.dumps(_cut(value, most))
        if len(text) <= MOST_BYTES:
            break
    return text.decode()


def _cut(value: Any, most: int) -> Any:
    match value:
        case str() if len(value) > most:
            return f"{value[:most]} [cut: {len(value):,} characters in all]"
        case dict():
            return {name: _cut(inner, most) for name, inner in value.items()}
        case list():
            return [_cut(inner, most) for inner in value]
    return value
