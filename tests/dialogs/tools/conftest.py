"""Real MCP servers for the tests of this room."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dialogs.models import Agent, Dialog
from dialogs.tools import mcp, mcp_client
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog
from tests.dialogs.tools.mcp_http import STDIO

Minds = Callable[..., None]


@pytest.fixture
def minds(tmp_path: Path, settings: Any) -> Iterator[Minds]:
    """Write ``mcp.yaml``, beside the ``script`` if there is one: ``minds(files={"command": ...})``."""
    settings.MINDS_DIR = tmp_path

    def write(**servers: Any) -> None:
        Path(settings.MINDS_DIR, "mcp.yaml").write_text(yaml.safe_dump({"servers": servers}))

    mcp.forget_lists()
    yield write
    mcp.forget_lists()


@pytest.fixture(scope="module", autouse=True)
def _no_server_left() -> Iterator[None]:
    yield
    mcp_client.close()


@pytest.fixture
def asking(minds: Minds, script: Script) -> Dialog:
    minds(desk=STDIO)
    return make_dialog(tools=["mcp:desk"], tool_approval=Agent.ToolApproval.CHANGES)
