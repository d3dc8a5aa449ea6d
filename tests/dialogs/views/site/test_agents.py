"""Agents on their page: made, changed, copied, switched off, and tried before they are saved."""

import html
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from dialogs.models import Agent
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory, make_dialog, make_operator, send
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db(transaction=True)

WRITER = {
    "name": "Harbour clerk",
    "answers_with": "test/model",
    "instructions": "Be brief.",
    "description": "Writes letters",
    "suggestions": "Write to the mayor\n\n Answer this: ",
    "toolsets": ["workspace"],
    "context_policy": "breaking",
    "context_limit": "4000",
    "critical_policy": "escalate",
    "priority": "2",
    "recall": "on",
    "model_params": "{}",
}


@pytest.fixture
def operator(script: Script) -> Client:
    script({"text": "Noted."})
    return browser_of(make_operator())


def test_an_agent_is_made_and_changed_on_the_page(operator: Client) -> None:
    AgentFactory.create(is_default=True)
    page = operator.get("/agents/new/").content.decode()
    assert 'value="test/model"' in page and 'value="breaking"' in page
    assert 'placeholder="Search models"' in page and "Those whose server is connected" in page
    assert 'value="anthropic/' not in page and 'value="ollama/' not in page, "no key, and not connected"
    assert operator.post("/agents/new/", {**WRITER, "is_default": "on"})["Location"] == "/agents/"
    agent = Agent.objects.get(pk="harbour-clerk")
    assert (agent.provider, agent.model, agent.toolsets, agent.context_limit) == ("test", "model", ["workspace"], 4000)
    assert agent.suggestions == ["Write to the mayor", "Answer this:"]
    assert [agent.pk for agent in Agent.objects.filter(is_default=True)] == ["harbour-clerk"]
    operator.post(
        "/agents/harbour-clerk/", {**WRITER, "instructions": "Be kind.", "toolsets": [], "tool_approval": "changes"}
    )
    operator.post("/agents/harbour-clerk/", {**WRITER, "instructions": "Be kind.", "toolsets": []})  # an older form
    agent.refresh_from_db()
    assert (agent.instructions, agent.toolsets, agent.tool_approval) == ("Be kind.", [], "changes")
    operator.post("/agents/new/", WRITER)
    assert Agent.objects.get(pk="harbour-clerk-2").tool_approval == "never"
    assert Agent.objects.filter(pk="harbour-clerk-2").exists()
    assert "Harbour clerk" in operator.get("/agents/").content.decode()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"answers_with": "test/gone"}, "test/gone is not one of the available choices"),
        ({"context_policy": "autocompaction"}, "is only for models of"),
        ({"context_limit": "12"}, "12 tokens are below the global minimum"),
        ({"tools": ["rm_rf"]}, "rm_rf is not one of the available choices"),
        ({"name": ""}, "Name: "),
        ({"model_params": "{"}, "Settings for the model (JSON): "),
    ],
)
def test_what_cannot_be_is_refused_and_said_before_it_is_saved(
    operator: Client, given: dict[str, Any], sentence: str
) -> None:
    refused = operator.post("/agents/new/", {**WRITER, **given})
    assert refused.status_code == 400
    assert sentence in html.unescape(refused.content.decode())
    assert sentence in html.unescape(operator.post("/agents/preview/", {**WRITER, **given}).content.decode())
    assert not Agent.objects.exists()


def test_a_policy_is_tried_on_past_dialogs_while_it_is_chosen(operator: Client, script: Script) -> None:
    script({"text": "Noted: the port is 48151. " * 40})
    dialog = make_dialog(context_policy="none")
    for number in range(8):
        send(dialog, f"Depot {number} has valve V-{4100 + number}. " + "It rained there. " * 80)
    before = Agent.objects.values().get()
    form = {**WRITER, "agent": dialog.agent_id, "context_policy": "none", "context_limit": ""}
    same = operator.post("/agents/preview/", form)
    rows = {name: (now, then) for name, now, then in same.context["preview"].rows()}
    assert rows["Rewrites"] == ("0", "0") and 'class="differs"' not in same.content.decode()
    other = operator.post("/agents/preview/", {**form, "context_policy": "breaking", "context_limit": "3500"})
    rows = {name: (now, then) for name, now, then in other.context["preview"].rows()}
    assert rows["Rewrites"][0] == "0" < rows["Rewrites"][1]
    page = other.content.decode()
    assert "3,500" in page and 'class="differs"' in page and other.context["preview"].dry_run.turns == 16
    new = operator.post("/agents/preview/", {**form, "agent": ""}).context["preview"]
    assert new.dry_run.turns == 16 and next(new.rows())[1] == ""
    assert Agent.objects.values().get() == before


def test_what_the_file_names_is_read_only_and_says_so(operator: Client) -> None:
    agent = AgentFactory.create(is_listed=True)
    page = operator.get(f"/agents/{agent.pk}/").content.decode()
    assert "comes from the server" in page and "disabled" in page and "Save</button>" not in page
    refused = operator.post(f"/agents/{agent.pk}/", WRITER)
    assert refused.status_code == 400 and "Change it there, or copy it." in refused.content.decode()
    agent.refresh_from_db()
    assert agent.name != WRITER["name"]
    copied = operator.get(f"/agents/new/?copy={agent.pk}").content.decode()
    assert f'value="{agent.name} 2"' in copied and "Save</button>" in copied
    operator.post(f"/agents/{agent.pk}/switch/", {"on": "no"})
    agent.refresh_from_db()
    assert not agent.enabled
    assert "Switch on" in operator.get("/agents/").content.decode()


def test_agents_are_the_operators_pages(script: Script) -> None:
    agent, person = AgentFactory.create(), browser_of(UserFactory.create())
    for address in ("/agents/", "/agents/new/", f"/agents/{agent.pk}/"):
        assert person.get(address).status_code == 404
    for address in ("/agents/new/", "/agents/preview/", f"/agents/{agent.pk}/", f"/agents/{agent.pk}/switch/"):
        assert person.post(address, WRITER).status_code == 404


def test_an_agents_page_says_what_its_single_tools_do(operator: Client, settings: Any) -> None:
    (Path(settings.MINDS_DIR) / "llm.yaml").open("a").write(
        "  keyless:\n    apiType: openai-compatible\n    baseUrl: https://keyless.example.com/v1\n"
        "    apiKeyEnvVar: NO_SUCH_KEY\n    models:\n      far: {context_length: 8000}\n"
    )
    settings.WORKSPACE_DIR = Path(settings.MINDS_DIR) / "shared"
    assert (
        f"There is none yet: make <code>{settings.WORKSPACE_DIR}</code> on the server"
        in operator.get("/agents/new/").content.decode()
    )
    settings.WORKSPACE_DIR.mkdir()
    page = operator.get("/agents/new/").content.decode()
    assert "There is none yet" not in page
    assert 'value="read_file"' in page and "Reads a text file of the shared folder" in page
    assert "No tool server is connected" in page and 'value="keyless/far"' not in page
    operator.post("/agents/new/", {**WRITER, "toolsets": [], "tools": ["read_file"], "tool_approval": "always"})
    agent = Agent.objects.get(pk="harbour-clerk")
    assert (agent.tools, agent.toolsets) == (["read_file"], [])
    ticked = operator.get("/agents/new/tools/?tools=read_file&tools=mcp:gone/x").content.decode()
    assert ticked.count("checked") == 2, "a tool of a server that is gone stays ticked"
    about = in_one_line(browser_of(UserFactory.create()).get("/agents/harbour-clerk/about/").content.decode())
    given, _, always = about.partition("What every agent can do")
    assert "Reads a text file of the shared folder" in given and "A person allows each call" in given
    assert "Asks a person, and waits for the answer" in always
    Agent.objects.update(tools=[], toolsets=[])
    bare = operator.get("/agents/harbour-clerk/about/").content.decode()
    assert "It was given no tools: it cannot search the web, read files or change anything." in in_one_line(bare)
    assert "Choose its tools" in bare and "/tool-servers/" in bare
    Agent.objects.update(provider="keyless", model="far")
    assert "NO_SUCH_KEY is not set" in operator.get("/agents/").content.decode(), "said before the first message"
