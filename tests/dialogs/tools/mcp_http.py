"""The MCP server of the tests: how ``mcp.yaml`` names it, and it over HTTP."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dominds.local.embedded_redis import free_port
from tests.harness.stack import eventually

SERVER = Path(__file__).with_name("mcp_server.py")
STDIO = {"command": sys.executable, "args": [str(SERVER), "stdio"]}


@contextmanager
def mcp_over_http() -> Iterator[str]:
    """Its address; it ends with the block."""
    port = free_port()
    process = subprocess.Popen([sys.executable, str(SERVER), "http", str(port)], stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: _listens(port), seconds=60)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
