"""The MCP servers of ``mcp.yaml``, and those that were added on the page and that the file does not name.

Secrets of the file stay in the environment and are named there.

servers:
  files:
    command: uvx                     # a program, which talks over its standard input and output
    args: [mcp-server-files, /data]
    env: {LOG_LEVEL: warn, TOKEN: {env: FILES_TOKEN}}
    per_dialog: true                 # a program for each dialog, for servers that keep state
  tickets:
    url: https://tickets.example/mcp # streamable HTTP
    apiKeyEnvVar: TICKETS_KEY        # sent as Authorization: Bearer
    headers: {X-Team: red, X-Tenant: {env: TENANT}}
    enabled: true                    # false: the server is off
    tools: {whitelist: [read_*], blacklist: []}
    transform: [{prefix: desk_}]     # names of its tools, in place of tickets_...

Restrictions fail closed: a server with a restricting key that is not understood is off, and the reason is reported.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings

from dialogs.context import connected
from dialogs.context.connected import AddedServer
from dominds.redaction import remember
from dominds.yaml_fields import (
    Bad,
    Field,
    Problem,
    Reading,
    anything,
    environment_name,
    one_of,
    quote_value,
    text,
    texts,
    truth,
    web_address,
)
from dominds.yaml_file import stamp_of

log = structlog.get_logger(__name__)

FILE_NAME = "mcp.yaml"
SERVER_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,80}")


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """A value that an environment variable holds, after a prefix such as ``Bearer ``."""

    name: str
    prefix: str = ""


Value = str | FromEnvironment


@dataclass(frozen=True, slots=True)
class Rename:
    """A change of a tool's name. ``remove`` is cut from its beginning; then prefix and suffix are added."""

    remove: str = ""
    prefix: str = ""
    suffix: str = ""

    def of(self, name: str) -> str:
        return self.prefix + name.removeprefix(self.remove) + self.suffix


@dataclass(frozen=True, slots=True)
class Server:
    """One server: either a ``command`` to start or a ``url`` to call. The other one is empty.

    ``whitelist`` and ``blacklist`` are patterns for the original names of its tools, in which ``*`` stands for any
    text.
    """

    server_id: str
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str = ""
    env: Mapping[str, Value] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, Value] = field(default_factory=dict)
    whitelist: tuple[str, ...] = ()
    blacklist: tuple[str, ...] = ()
    renames: tuple[Rename, ...] = ()
    per_dialog: bool = False  # a program of its own for each dialog; else one in each worker serves all of them
    is_typed: bool = False  # a person typed the address into a page, so ``dominds.outbound_http`` restricts it

    def offers(self, tool_name: str) -> bool:
        """Check whether agents may have this tool, by the rules of the original Dominds.

        A whitelist alone names all tools that are offered. Beside a blacklist, it names exceptions from that.
        """
        if matches(self.whitelist, tool_name):
            return True
        return not matches(self.blacklist, tool_name) if self.blacklist else not self.whitelist

    def rename(self, tool_name: str) -> str:
        for rename in self.renames:
            tool_name = rename.of(tool_name)
        return tool_name


_left_out: dict[str, dict[str, str]] = {}


def leave_out(server_id: str, tool: str, reason: str) -> None:
    """Note why agents are not offered a tool of a server, for the log and for operators."""
    _left_out.setdefault(server_id, {})[tool] = reason
    log.warning("mcp_tool_left_out", server=server_id, tool=tool, reason=reason)


def begin_list(server_id: str) -> None:
    """Forget which tools of the server were left out, because its list is being read again."""
    _left_out.pop(server_id, None)


def left_out_of(server_id: str) -> list[str]:
    """Return a sentence for each tool that was left out when this process last read the server's list."""
    reasons = _left_out.get(server_id, {}).items()
    return [f"The tool {tool[:80]!r} is not offered to agents: {reason[:300]}." for tool, reason in reasons]


def matches(patterns: Sequence[str], name: str) -> bool:
    """Check whether a pattern fits the whole name. ``*`` stands for any text, and no other character is special."""
    return any(re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class McpConfig:
    """All servers. ``off`` has, by id, why a server is not used; ``in_file`` are the ids in ``mcp.yaml``."""

    servers: Mapping[str, Server] = field(default_factory=dict)
    off: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    in_file: frozenset[str] = frozenset()


class McpFailed(Exception):
    """Raised when a server could not be reached or did not answer. The text names the server and the reason."""


class VariableMissing(Exception):
    """Raised when an environment variable that a server needs is not set."""


def resolve_values(values: Mapping[str, Value]) -> dict[str, str]:
    """Return the values to send. Those of the environment are masked in all logs. Raises ``VariableMissing``."""
    result: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, str):
            result[key] = value
            continue
        secret = os.environ.get(value.name, "")
        if not secret:
            raise VariableMissing(f"The environment variable {value.name} is not set, but {key} needs it.")
        remember(secret)
        result[key] = value.prefix + secret
    return result


# Reading


def current_config() -> McpConfig:
    """Return the servers of the file, and those that were added on the page under other ids."""
    return _config_with(connected.tool_servers())


def file_config() -> McpConfig:
    """Return the servers of ``mcp.yaml`` alone."""
    return _config_with(())


def _config_with(added: tuple[AddedServer, ...]) -> McpConfig:
    path = settings.MINDS_DIR / FILE_NAME
    return _read_with(path, stamp_of(path), added)


@lru_cache(maxsize=4)
def _read_with(path: Path, _stamp: tuple[int, int], added: tuple[AddedServer, ...]) -> McpConfig:
    """Combine the servers of file and page. The arguments are the cache's key: ``_stamp`` changes with the file."""
    file = read_config(path)
    others = [row for row in added if row.server_id not in file.in_file]
    off = {row.server_id: row.fault or "switched off on the page" for row in others if row.fault or not row.enabled}
    servers = {row.server_id: server_of(row) for row in others if row.server_id not in off}
    return replace(file, servers={**file.servers, **servers}, off={**file.off, **off})


def server_of(row: AddedServer) -> Server:
    headers: dict[str, Value] = {"Authorization": f"Bearer {row.key}"} if row.key else {}
    return Server(row.server_id, url=row.url, headers=headers, is_typed=True)


def read_config(path: Path) -> McpConfig:
    reading = Reading.of(path)
    top = reading.fields(reading.document, "", {"version": anything, "servers": anything})
    servers: dict[str, Server] = {}
    off: dict[str, str] = {}
    named = set[str]()
    for server_id, entry in reading.entries(top.get("servers"), "servers"):
        here = f"servers.{server_id}"
        if not SERVER_ID.fullmatch(server_id):
            reading.report(here, "an id has at most 32 letters, digits, - and _; the server is left out")
            continue
        server = _server(reading, server_id, entry, here)
        named.add(server_id)
        if reason := _why_off(reading, entry, here):
            off[server_id] = reason
        elif server:
            servers[server_id] = server
    return McpConfig(servers, off, tuple(reading.problems), frozenset(named))


def _why_off(reading: Reading, entry: Any, here: str) -> str:
    """Return why a server of the file is not used; empty if it is. Reports a restriction that is not understood."""
    if not isinstance(entry, Mapping):
        return ""
    for key in map(str, entry):
        broken = [problem for problem in reading.problems if f"{problem.path}.".startswith(f"{here}.{key}.")]
        if key in RESTRICTIONS and _is_empty(entry[key]):
            broken = [Problem(reading.file, f"{here}.{key}", "the key has no value")]
        if broken and (key in RESTRICTIONS or key not in FIELDS) and key not in HARMLESS:
            reason = f"the server is off, since '{key}' may restrict it and is not understood"
            reading.report(f"{here}.{key}", reason)
            return f"{reason} ({broken[0].reason})"
    return "mcp.yaml says enabled: false" if entry.get("enabled") is False else ""


def _is_empty(value: Any) -> bool:
    """Check whether a restriction, or a part of it, has no value: somebody meant to restrict, and did not say what."""
    return value is None or (isinstance(value, Mapping) and None in value.values())


def _server(reading: Reading, server_id: str, entry: Any, here: str) -> Server | None:
    known_before = len(reading.problems)
    read = reading.fields(entry, here, FIELDS, "servers.*")
    tools = reading.fields(read.get("tools"), f"{here}.tools", TOOL_FIELDS, "servers.*.tools")
    values = {
        name: _values(reading, read.get(name), f"{here}.{name}", HEADER_NAME if name == "headers" else None)
        for name in ("env", "headers")
    }
    if "apiKeyEnvVar" in read:
        values["headers"]["Authorization"] = FromEnvironment(read["apiKeyEnvVar"], "Bearer ")
    command, url = read.get("command", ""), read.get("url", "")
    if bool(command) == bool(url):
        if len(reading.problems) == known_before or command:
            reading.report(here, "a server needs either command or url; it is left out")
        return None
    return Server(
        server_id,
        command,
        tuple(read.get("args", ())),
        read.get("cwd", ""),
        values["env"],
        url,
        values["headers"],
        tuple(tools.get("whitelist", ())),
        tuple(tools.get("blacklist", ())),
        tuple(read.get("transform", ())),
        read.get("per_dialog", False),
    )


def _values(reading: Reading, given: Any, here: str, names: re.Pattern[str] | None) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for key, value in reading.entries(given, here):
        try:
            if names and not names.fullmatch(key):
                raise Bad("this is no name of an HTTP header")
            values[key] = _value(value)
        except Bad as bad:
            reading.report(f"{here}.{key}", str(bad))
    return values


def _value(value: Any) -> Value:
    if isinstance(value, Mapping) and set(value) <= {"env", "prefix"} and "env" in value:
        prefix = value.get("prefix", "")
        return FromEnvironment(environment_name(value["env"]), prefix if isinstance(prefix, str) else "")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and not {"\n", "\r", "\0"} & set(value):
        return value
    raise Bad("expected one line of text, or {env: NAME_OF_A_VARIABLE}")  # the value may be secret: not shown


def _arguments(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str | int) for item in value):
        raise Bad(f"expected a list of texts, found {quote_value(value)}")
    return [str(item) for item in value]


def _renames(value: Any) -> list[Rename]:
    if not isinstance(value, list):
        raise Bad(f"expected a list such as [{{prefix: x_}}, {{suffix: _x}}], found {quote_value(value)}")
    return [_rename(step) for step in value]


def _rename(step: Any) -> Rename:
    match step:
        case {"prefix": str(prefix)} if len(step) == 1:
            return Rename(prefix=prefix)
        case {"prefix": {"remove": str(remove), "add": str(add)} as parts} if len(step) == 1 and len(parts) == 2:
            return Rename(remove, add)
        case {"suffix": str(suffix)} if len(step) == 1:
            return Rename(suffix=suffix)
    raise Bad(
        f"expected {{prefix: x_}}, {{prefix: {{remove: x_, add: y_}}}} or {{suffix: _x}}, found {quote_value(step)}"
    )


TOOL_FIELDS: dict[str, Field] = {"whitelist": texts, "blacklist": texts}
RESTRICTIONS = ("enabled", "tools", "transform", "per_dialog")
# Keys of other programs that restrict nothing. They are reported, and the server runs.
HARMLESS = (
    "name",
    "title",
    "description",
    "comment",
    "notes",
    "type",
    "timeout",
    "sessionId",
    "manual",
    "truely-stateless",
)
FIELDS: dict[str, Field] = {
    "enabled": truth,
    "tools": anything,
    "transform": _renames,
    "per_dialog": truth,
    "transport": one_of(["stdio", "streamable_http"]),  # command or url tells it; other programs write it
    "command": text,
    "args": _arguments,
    "cwd": text,
    "env": anything,
    "url": web_address,
    "headers": anything,
    "apiKeyEnvVar": environment_name,
}
