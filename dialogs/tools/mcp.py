"""Tools of MCP servers, offered to agents that list ``mcp:<server>`` or ``mcp:<server>/<tool>``."""

import hashlib
import json
import re
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
import structlog
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from dialogs.context.tool_calls import Result
from dialogs.tools.mcp_config import McpFailed, Server, current_config, leave_out
from dialogs.tools.tool import Invocation, Tool
from dominds.llm.json_text import dump
from dominds.llm.messages import ToolSpec
from dominds.llm.models.model import Form
from dominds.llm.providers.outgoing import fit_tools
from dominds.llm.providers.schemas import Unfit, fit_schema
from dominds.redaction import redact

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock
    from mcp.types import Tool as McpTool

log = structlog.get_logger(__name__)

PREFIX = "mcp:"
MAX_NAME_CHARS = 64  # the bound of the providers
MAX_RESULT_BYTES = 200 * 1024
LIST_TTL_SECONDS = 60.0
DOWN_TTL_SECONDS = 30.0  # before a server that was down is asked again
ASKED_AT_ONCE = 8  # servers asked in parallel


def problem_with(name: str) -> str:
    """Return why an agent's list cannot name these tools of a server; empty if it can. No server is asked."""
    server_id, _, _ = name.removeprefix(PREFIX).partition("/")
    config = current_config()
    if server_id in config.servers or server_id in config.off:  # a server that is off may be on again tomorrow
        return ""
    return f"there is no MCP server '{server_id}'; known are {', '.join(config.servers) or 'none'}"


def ask_at_once(names: Iterable[str]) -> None:
    """Fetch all lists that ``tools_named`` needs for these names in parallel, so that the waits do not add up."""
    wanted = {name.removeprefix(PREFIX).partition("/")[0] for name in names if name.startswith(PREFIX)}
    if not wanted:
        return  # most agents have none, and the configuration need not be read
    servers = [server for server_id, server in current_config().servers.items() if server_id in wanted]
    unknown = [server for server in servers if _known_listing(server) is None]
    if len(unknown) > 1:
        with ThreadPoolExecutor(ASKED_AT_ONCE, "mcp-lists") as threads:
            list(threads.map(_ask_for_tools, unknown))


def tools_named(name: str) -> dict[str, Tool]:
    """Return the tools of ``mcp:<server>`` or ``mcp:<server>/<tool>``, or none while the server is down."""
    server_id, _, wanted = name.removeprefix(PREFIX).partition("/")
    server = current_config().servers.get(server_id)
    if server is None:
        return {}
    return {tool.name: tool for original, tool in _ask_for_tools(server) if wanted in ("", original)}


# Cached lists of tools


@dataclass(frozen=True, slots=True)
class _Listing:
    server: Server
    until: float  # monotonic seconds
    tools: tuple[tuple[str, Tool], ...]


_listings: dict[str, _Listing] = {}
_locks: dict[str, threading.Lock] = {}


def list_tools_now(server: Server) -> list[Tool]:
    """Ask a server for its present tools. Raises ``McpFailed``."""
    from dialogs.tools import mcp_client

    return [tool for _, tool in _adapt(server, mcp_client.list_tools(server))]


def tools_of_server(server: Server, *, ask: bool) -> tuple[tuple[str, Tool], ...] | None:
    """Return a server's tools with their original names; None if they are unknown and it may not be asked."""
    if ask:
        return _ask_for_tools(server)
    known = _known_listing(server)
    return known.tools if known is not None else None


def forget_lists() -> None:
    """Forget all lists, so that every server is asked again."""
    _listings.clear()


def _known_listing(server: Server) -> _Listing | None:
    known = _listings.get(server.server_id)
    return known if known is not None and known.server == server and time.monotonic() < known.until else None


def _ask_for_tools(server: Server) -> tuple[tuple[str, Tool], ...]:
    """Return the server's tools with their original names, sorted. One thread at a time fetches an outdated list."""
    with _locks.setdefault(server.server_id, threading.Lock()):
        if (known := _known_listing(server)) is not None:
            return known.tools
        from dialogs.tools import mcp_client

        is_old = threading.Event()  # set if the list changes while it is read

        def forget() -> None:
            is_old.set()
            _listings.pop(server.server_id, None)

        try:
            listed = mcp_client.list_tools(server, forget)
            tools, lasts = tuple(_adapt(server, listed)), LIST_TTL_SECONDS
        except McpFailed as error:
            log.warning("mcp_server_down", server=server.server_id, error=redact(str(error)))
            tools, lasts = (), DOWN_TTL_SECONDS
        _listings[server.server_id] = _Listing(server, time.monotonic() + lasts, tools)
        if is_old.is_set():
            _listings.pop(server.server_id, None)
        return tools


# Conversion to ``Tool``


def _adapt(server: Server, listed: "list[McpTool]") -> Iterator[tuple[str, Tool]]:
    taken: set[str] = set()
    source = _source_of(server)
    for tool in sorted(listed, key=lambda tool: tool.name):
        if not server.offers(tool.name):
            continue
        name = server.rename(tool.name) if server.renames else exposed_name(server.server_id, tool.name, taken)
        schema, unsound = usable_schema(tool.input_schema)
        if problem := name_problem(name, taken) or unsound or task_problem(tool):
            leave_out(server.server_id, tool.name, problem)
            continue
        taken.add(name)
        hints = tool.annotations
        read_only = hints is not None and bool(hints.read_only_hint)
        repeatable = read_only or (hints is not None and bool(hints.idempotent_hint))
        spec = ToolSpec(name, tool.description or tool.title or "", schema)
        caller = _Caller(server, tool.name, repeatable)
        if unfit := fit_tools((spec,), Form())[1]:  # unfit for every provider
            leave_out(server.server_id, tool.name, unfit[0][1].rpartition(": ")[2].rstrip("."))
            continue
        yield tool.name, Tool(spec, outside=caller, repeatable=repeatable, read_only=read_only, source=source)


def _source_of(server: Server) -> str:
    """Return a name that identifies the server, and changes with its command or address."""
    address = orjson.dumps([server.command, server.args, server.cwd, server.url])
    return f"{server.server_id}@{hashlib.blake2b(address, digest_size=6).hexdigest()}"


def exposed_name(server_id: str, tool_name: str, taken: set[str]) -> str:
    """Return ``<server>_<tool>`` with letters and a length that providers accept. A hash makes it unique if needed."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server_id}_{tool_name}")
    if len(plain) <= MAX_NAME_CHARS and plain not in taken:
        return plain
    digest = hashlib.blake2b(f"{server_id}/{tool_name}".encode(), digest_size=4).hexdigest()
    return f"{plain[: MAX_NAME_CHARS - len(digest) - 1]}_{digest}"


def name_problem(name: str, taken: set[str]) -> str:
    """Return why a name by ``mcp.yaml`` cannot be a tool's; empty if it can. Such names are not repaired."""
    if not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{MAX_NAME_CHARS}}}", name):
        return f"{name!r} is no name that providers accept"
    return f"another tool of the server is called {name!r}" if name in taken else ""


def task_problem(tool: "McpTool") -> str:
    """Return why a tool cannot be called without a task of the protocol's, or an empty text."""
    needs = tool.execution is not None and tool.execution.task_support == "required"
    return "it runs only as a task of the protocol, which is not offered here" if needs else ""


def schema_problem(schema: dict[str, Any]) -> str:
    """Return why arguments cannot be checked by this schema; empty if they can. Its references must stay inside it."""
    try:
        Draft202012Validator.check_schema(schema)
        for reference in _references(schema):
            _follow(schema, reference)
    except (SchemaError, LookupError, ValueError, RecursionError) as error:
        return f"its schema is unusable: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    return ""


def usable_schema(schema: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the part of a schema that can be checked, and an empty text; or an empty schema and what is wrong.

    Schemas of older drafts, and with keywords of other formats, are in wide use.
    """
    problem = schema_problem(schema)
    if not problem:
        return schema, ""
    try:
        fitted = fit_schema(schema)
    except Unfit:
        return {}, problem
    return (fitted, "") if not schema_problem(fitted) else ({}, problem)


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)


def _follow(schema: Any, reference: str) -> None:
    if reference != "#" and not reference.startswith("#/"):
        raise ValueError(f"the reference {reference!r} leads out of it")
    part = schema
    for step in reference[2:].split("/") if len(reference) > 1 else ():
        key = step.replace("~1", "/").replace("~0", "~")
        part = part[int(key)] if isinstance(part, list) else part[key]


@dataclass(frozen=True, slots=True)
class _Caller:
    """A function that runs one tool of one server."""

    server: Server
    tool_name: str
    repeatable: bool

    def __call__(self, call: Invocation) -> Result:
        from dialogs.tools import mcp_client
        from dialogs.tools.mcp_session import Place

        try:
            answer = mcp_client.call_tool(
                Place(self.server, str(call.dialog_id) if self.server.per_dialog else ""),
                self.tool_name,
                call.arguments,
                call.progress,
                repeatable=self.repeatable,
                answers=call.answers,
            )
        except McpFailed:
            _listings.pop(self.server.server_id, None)  # the server may have changed
            raise
        return Result(cap_text(text_of(answer)), failed=answer.is_error)


def text_of(answer: "CallToolResult") -> str:
    """Return an answer as text for the model: its texts, data that these lack, and descriptions of images and audio."""
    texts = [text for block in answer.content if (text := _block_text(block)).strip()]
    data = answer.structured_content
    if data is not None and not _says("\n".join(texts), data):
        texts.append(dump(data).decode())
    return "\n".join(texts) or "[The tool answered nothing.]"


def _says(text: str, data: Any) -> bool:
    """Check whether the text has each value of the data, in order. An empty text counts as having none."""
    at = 0
    for value in _values(data):
        found = [place for form in _forms(value) if (place := text.find(form, at)) >= 0]
        if not found:
            return False
        at = min(found)
    return bool(text)


def _values(data: Any) -> Iterator[Any]:
    if isinstance(data, dict | list) and data:
        for value in data.values() if isinstance(data, dict) else data:
            yield from _values(value)
    else:
        yield data


def _forms(value: Any) -> tuple[str, ...]:
    """Return the forms in which a text may hold a value: plain, or as JSON."""
    written = dump(value).decode()
    return (value, written, json.dumps(value)) if isinstance(value, str) else (written, str(value))


def _block_text(block: "ContentBlock") -> str:
    match block.type:
        case "text":
            return block.text
        case "resource_link":
            about = (block.title, block.description, block.mime_type, block.size and f"{block.size:,} bytes")
            return f"[resource {block.name}: {block.uri}{''.join(f', {each}' for each in about if each)}]"
        case "resource":
            body = getattr(block.resource, "text", None)
            return body if isinstance(body, str) else f"[binary resource {block.resource.uri}: not shown]"
        case _:
            return f"[{block.type}, {block.mime_type}, {len(block.data) * 3 // 4:,} bytes: not shown]"


def cap_text(text: str) -> str:
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= MAX_RESULT_BYTES:
        return text
    kept = encoded[:MAX_RESULT_BYTES].decode("utf-8", "ignore")
    return f"{kept}\n[cut: {len(encoded):,} bytes in all, the first {MAX_RESULT_BYTES:,} are shown]"
