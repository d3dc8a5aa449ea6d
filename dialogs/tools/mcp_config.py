"""The MCP servers of ``mcp.yaml``. Secrets stay in the environment and are named there.

servers:
  files:
    command: uvx                     # a server of one's own, over its standard input and output
    args: [mcp-server-files, /data]
    env: {LOG_LEVEL: warn, TOKEN: {env: FILES_TOKEN}}
  tickets:
    url: https://tickets.example/mcp # streamable HTTP
    apiKeyEnvVar: TICKETS_KEY        # sent as Authorization: Bearer
    headers: {X-Team: red, X-Tenant: {env: TENANT}}
"""

import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from dominds.redaction import remember
from dominds.yaml_fields import Bad, Field, Problem, Reading, anything, one_of, shown, text

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
class Server:
    """One server: a ``command`` to start, or a ``url`` to ask; the other is empty."""

    server_id: str
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str = ""
    env: Mapping[str, Value] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class McpConfig:
    servers: Mapping[str, Server] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


class McpFailed(Exception):
    """A server could not be reached or did not answer; the text names it and the reason."""


class VariableMissing(Exception):
    """An environment variable that a server needs is not set."""


def resolved(values: Mapping[str, Value]) -> dict[str, str]:
    """The values to send, those of the environment filled in and kept out of every log. Raises ``VariableMissing``."""
    found: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, str):
            found[key] = value
            continue
        secret = os.environ.get(value.name, "")
        if not secret:
            raise VariableMissing(f"The environment variable {value.name} is not set, but {key} needs it.")
        remember(secret)
        found[key] = value.prefix + secret
    return found


# Reading

_current: tuple[Path, tuple[int, int], McpConfig] | None = None
_loading = threading.Lock()


def current_config() -> McpConfig:
    """The servers, read again when the file has changed."""
    global _current  # noqa: PLW0603  one per process
    path = Path(settings.MINDS_DIR) / FILE_NAME
    with _loading:
        stamp = _stamp(path)
        if _current is None or _current[:2] != (path, stamp):
            _current = (path, stamp, read_config(path))
        return _current[2]


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, -1
    return found.st_mtime_ns, found.st_size


def read_config(path: Path) -> McpConfig:
    reading = Reading.of(path)
    top = reading.fields(reading.document, "", {"version": anything, "servers": anything})
    servers: dict[str, Server] = {}
    for server_id, entry in reading.entries(top.get("servers"), "servers"):
        here = f"servers.{server_id}"
        if not SERVER_ID.fullmatch(server_id):
            reading.report(here, "an id has at most 32 letters, digits, - and _; the server is left out")
        elif server := _server(reading, server_id, entry, here):
            servers[server_id] = server
    return McpConfig(servers, tuple(reading.problems))


def _server(reading: Reading, server_id: str, entry: Any, here: str) -> Server | None:
    known_before = len(reading.problems)
    found = reading.fields(entry, here, FIELDS)
    values = {
        name: _values(reading, found.get(name), f"{here}.{name}", HEADER_NAME if name == "headers" else None)
        for name in ("env", "headers")
    }
    if "apiKeyEnvVar" in found:
        values["headers"]["Authorization"] = FromEnvironment(found["apiKeyEnvVar"], "Bearer ")
    command, url = found.get("command", ""), found.get("url", "")
    if bool(command) == bool(url):
        if len(reading.problems) == known_before or command:
            reading.report(here, "a server needs either command or url; it is left out")
        return None
    return Server(
        server_id, command, tuple(found.get("args", ())), found.get("cwd", ""), values["env"], url, values["headers"]
    )


def _values(reading: Reading, found: Any, here: str, names: re.Pattern[str] | None) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for key, value in reading.entries(found, here):
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
        return FromEnvironment(_variable(value["env"]), prefix if isinstance(prefix, str) else "")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and not {"\n", "\r", "\0"} & set(value):
        return value
    raise Bad("expected one line of text, or {env: NAME_OF_A_VARIABLE}")  # the value may be secret: not shown


def _variable(value: Any) -> str:
    name = text(value)
    if not name.isidentifier():
        raise Bad("expected the name of an environment variable; keys do not belong here")
    return name


def _address(value: Any) -> str:
    address = text(value)
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise Bad(f"expected an address that begins with http:// or https://, found {shown(value)}")
    return address


def _arguments(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str | int) for item in value):
        raise Bad(f"expected a list of texts, found {shown(value)}")
    return [str(item) for item in value]


FIELDS: dict[str, Field] = {
    "transport": one_of(["stdio", "streamable_http"]),  # told by command or url; accepted, since others write it
    "command": text,
    "args": _arguments,
    "cwd": text,
    "env": anything,
    "url": _address,
    "headers": anything,
    "apiKeyEnvVar": _variable,
}
