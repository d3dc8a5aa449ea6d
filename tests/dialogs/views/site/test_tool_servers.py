"""MCP servers are added, tested, switched off and removed on the page; ``mcp.yaml`` goes before it."""

import html
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from dialogs.context import connected
from dialogs.models import ToolServer
from dialogs.tools import mcp, mcp_client
from dialogs.tools.registry import tools_of
from dialogs.tools.tool import Invocation
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory, make_operator
from tests.dialogs.tools.mcp_http import mcp_over_http

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "desk-key-0123456789"
ODD = Path(__file__).parents[2] / "tools" / "odd_mcp_server.py"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with mcp_over_http() as url:
        yield url
        mcp_client.close()


@pytest.fixture
def operator(script: Script) -> Iterator[Client]:
    script({"text": "Noted."})
    connected.forget()
    mcp.forget_lists()
    yield browser_of(make_operator())
    connected.forget()
    mcp.forget_lists()


def test_a_server_that_answers_is_added_and_offers_its_tools(operator: Client, url: str) -> None:
    added = operator.post("/tool-servers/add/", {"server_id": "desk", "url": url, "key": KEY}, follow=True)
    page = added.content.decode()
    assert "Added, with" in page and url in page and "with a key" in page and KEY not in page
    row = ToolServer.objects.get()
    assert KEY not in json.dumps(list(ToolServer.objects.values()), default=str) and row.sealed_key
    agent = AgentFactory.create(toolsets=["desk"])
    header = tools_of(agent)["desk_header"].outside
    assert header is not None
    assert header(Invocation(uuid4(), "call", {"name": "Authorization"})).text == f"Bearer {KEY}"
    assert 'value="desk"' in operator.get("/agents/new/").content.decode()
    tested = html.unescape(operator.post("/tool-servers/desk/test/").content.decode())
    assert "It answered, with" in tested and "desk_echo" in tested and "Says it again." in tested
    assert tested.count("only reads") == 1 and tested.index("desk_echo") < tested.index("only reads") < tested.index(
        "Says it again."
    )
    operator.post("/tool-servers/desk/switch/", {"on": "no"})
    assert "desk_header" not in tools_of(agent)
    assert "switched off on the page" in operator.get("/tool-servers/").content.decode()
    assert operator.post("/tool-servers/desk/test/").status_code == 404
    operator.post("/tool-servers/desk/switch/", {"on": "yes"})
    assert "desk_header" in tools_of(agent)
    operator.post("/tool-servers/desk/remove/")
    assert "desk_header" not in tools_of(agent) and not ToolServer.objects.exists()
    assert "removed before" in operator.post("/tool-servers/desk/remove/", follow=True).content.decode()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"url": "http://127.0.0.1:9/mcp"}, "cannot be reached"),
        ({"url": "127.0.0.1:9/mcp"}, "cannot be reached"),
        ({"url": "http://10.0.0.1/mcp"}, "10.0.0.1 lies on this machine or in its own network"),
        ({"url": "http://169.254.169.254/latest"}, "is an address for special uses"),
        ({"url": "file:///etc/passwd"}, "Address: "),
        ({"server_id": "a b"}, "Name: "),
        ({"server_id": "workspace"}, "There is a server of this name already."),
        ({"key": "clé"}, "characters that no key has"),
    ],
)
def test_a_silent_or_forbidden_server_is_not_added(
    operator: Client, settings: Any, given: dict[str, Any], sentence: str
) -> None:
    settings.PRIVATE_WEBHOOKS = False
    form = {"server_id": "desk", "url": "http://127.0.0.1:9/mcp", "key": KEY, **given}
    refused = operator.post("/tool-servers/add/", form)
    assert refused.status_code == 400
    assert sentence in html.unescape(refused.content.decode())
    assert not ToolServer.objects.exists()


def test_the_file_goes_before_the_page_and_is_not_edited_here(operator: Client, url: str, settings: Any) -> None:
    operator.post("/tool-servers/add/", {"server_id": "desk", "url": url, "key": ""})
    other = {"servers": {"desk": {"url": "http://127.0.0.1:9/mcp", "enabled": False}, "files": {"command": "no-such"}}}
    (Path(settings.MINDS_DIR) / "mcp.yaml").write_text(json.dumps(other))
    page = operator.get("/tool-servers/").content.decode()
    assert "goes before it" in page and "mcp.yaml says enabled: false" in page
    assert "/tool-servers/files/switch/" not in page and "/tool-servers/desk/switch/" not in page
    assert tools_of(AgentFactory.create(toolsets=["desk"])).keys() == tools_of(AgentFactory.create()).keys()
    refused = operator.post("/tool-servers/add/", {"server_id": "files", "url": url})
    assert "There is a server of this name already." in refused.content.decode()
    assert "cannot be reached" in html.unescape(operator.post("/tool-servers/files/test/").content.decode())


def test_the_page_names_a_programs_owner_and_its_vain_offers(operator: Client, settings: Any, tmp_path: Path) -> None:
    program = {"command": sys.executable, "args": [str(ODD), str(tmp_path / "notes")]}
    servers = {"shared": program, "apart": {**program, "per_dialog": True}}
    (Path(settings.MINDS_DIR) / "mcp.yaml").write_text(json.dumps({"servers": servers}))
    page = operator.get("/tool-servers/").content.decode()
    assert page.count("All dialogs share one program, and what it remembers.") == 1
    assert page.count("Each dialog has a program of its own.") == 1
    tested = html.unescape(operator.post("/tool-servers/shared/test/").content.decode())
    assert "The tool 'array' is not offered to agents: inputSchema" in tested
    mcp_client.close()


def test_a_running_worker_hears_of_a_server(operator: Client, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, before = AgentFactory.create(toolsets=["*"]), connected._known
    assert "desk_echo" not in tools_of(agent)
    before = connected._known
    operator.post("/tool-servers/add/", {"server_id": "desk", "url": url})
    monkeypatch.setattr(connected, "_known", before)  # as another process still has it
    assert "desk_echo" not in tools_of(agent)
    connected.follow()  # as it does when it takes a dialog up
    assert "desk_echo" in tools_of(agent)


def test_a_key_of_another_signing_key_switches_its_server_off(operator: Client, url: str, settings: Any) -> None:
    operator.post("/tool-servers/add/", {"server_id": "desk", "url": url, "key": KEY})
    settings.SECRET_KEY = "another signing key, long enough to be one"
    connected.forget()
    operator = browser_of(make_operator())
    assert "its key cannot be read" in operator.get("/tool-servers/").content.decode()
    assert "desk_echo" not in tools_of(AgentFactory.create(toolsets=["desk"]))


def test_they_are_the_operators_pages() -> None:
    ToolServer.objects.create(server_id="desk", url="http://127.0.0.1:9/mcp")
    person = browser_of(UserFactory.create())
    assert person.get("/tool-servers/").status_code == 404
    for act in ("add", "desk/test", "desk/switch", "desk/remove"):
        assert person.post(f"/tool-servers/{act}/", {"on": "no"}).status_code == 404
    assert ToolServer.objects.get().enabled
