"""A real MCP server for tests: ``python mcp_server.py stdio`` or ``python mcp_server.py http PORT``."""

import asyncio
import os
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

server = MCPServer("tests")
READS = ToolAnnotations(read_only_hint=True)
ONCE_OR_OFTEN = ToolAnnotations(idempotent_hint=True)


@server.tool(annotations=READS, description="Says it again.")
def echo(text: str) -> str:
    return text


@server.tool(annotations=ONCE_OR_OFTEN)
def remember(text: str) -> str:
    return f"noted {text}"


@server.tool(name="book.trip now")
def book_trip() -> str:
    return "booked"


@server.tool(structured_output=False)
def big(kilobytes: int) -> str:
    return "é" * (kilobytes * 512)


@server.tool()
def stamp(path: str, seconds: float) -> str:
    """Something that is seen, and cannot be taken back."""
    with Path(path).open("a") as file:
        file.write("stamped\n")
    time.sleep(seconds)
    return "stamped"


@server.tool()
def fail() -> str:
    raise ToolError("no such ticket")


@server.tool()
def wait(seconds: float) -> str:
    time.sleep(seconds)
    return "waited"


@server.tool(structured_output=False)
async def count(steps: int, seconds: float, context: Context, word: str = "step") -> str:
    """Reports each step in a line with colours and a secret, as command-line tools do."""
    for step in range(1, steps + 1):
        line = f"downloading\n\x1b[32m{word} {step}\x1b[0m  of   {steps}, Authorization: Bearer s3cret-{step:06}\n"
        await context.report_progress(step, steps, line)
        await asyncio.sleep(seconds)
    return f"counted to {steps}"


@server.tool()
def die() -> str:
    os._exit(3)


@server.tool(structured_output=False)
def variable(name: str) -> str:
    return os.environ.get(name, "unset")


@server.tool(structured_output=False)
def header(name: str, context: Context) -> str:
    return (context.headers or {}).get(name.lower(), "unset")


@server.tool(structured_output=False)
def picture() -> Image:
    return Image(data=b"\x89PNG" + bytes(96), format="png")


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(sys.argv[2]))
