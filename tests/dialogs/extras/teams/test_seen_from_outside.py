"""What operators see of teams, and that the core knows nothing of them."""

import json
import re
from io import BytesIO

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from dialogs.extras.imports.files import conversations_in
from dialogs.extras.teams import task_document
from dialogs.extras.teams.metrics import TeamsCollector
from dialogs.models import Agent, Dialog
from dialogs.queries import export
from dialogs.queries.sent_requests import sent_request
from dialogs.tools.registry import tools_of
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.extras.teams.conftest import REPORT, TASK, asking, play, side_of, steps
from tests.dialogs.factories import AgentFactory, make_operator, send
from tests.harness.stack import ROOT

CORE = ("dominds", "dialogs", "health", "remediation", "templates", "static")
OURS = re.compile(r"ask_agent|\bside[ _-]?dialog|colleague|teammate", re.IGNORECASE)
# The Guide's script ends its tour with a team; its steps name the tool that they need, and are left out without it.
PLAYED = ROOT / "dominds" / "llm" / "providers" / "scripts" / "guide.yaml"


def test_no_word_of_teams_is_in_the_core() -> None:
    files = [file for folder in CORE for file in (ROOT / folder).rglob("*") if file.is_file()]
    core = [file for file in files if (ROOT / "dialogs" / "extras") not in file.parents and file != PLAYED]
    read = [file for file in core if file.suffix in {".py", ".html", ".js", ".css", ".yaml", ".md", ".txt", ".svg"}]
    assert len(read) > 500
    assert [str(file) for file in read if OURS.search(file.read_text())] == []


@pytest.mark.django_db(transaction=True)
def test_metrics_count_side_dialogs_and_what_they_cost(lead: Dialog, script: Script) -> None:
    registry = CollectorRegistry()
    registry.register(TeamsCollector())

    def scrape() -> dict[str, float]:
        lines = generate_latest(registry).decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

    assert scrape()["dominds_side_dialogs_opened_total"] == 0
    script(*steps(asking()))
    send(lead, "plan")
    Dialog.objects.filter(pk=side_of(lead).pk).update(cost_usd="0.25")
    values = scrape()
    assert (values['dominds_side_dialogs{state="queued"}'], values["dominds_side_dialogs_opened_total"]) == (1, 1)
    assert values["dominds_side_dialogs_cost_usd_total"] == 0.25
    assert values["dominds_oldest_side_dialog_age_seconds"] > 0
    play(lead)
    values = scrape()
    assert (values['dominds_side_dialogs{state="queued"}'], values["dominds_side_dialogs_opened_total"]) == (0, 1)
    assert values["dominds_oldest_side_dialog_age_seconds"] == 0


@pytest.mark.django_db(transaction=True)
def test_colleagues_are_chosen_on_an_agents_page(script: Script) -> None:
    script({"text": "Noted."})
    for name in ("scout", "guide"):
        AgentFactory.create(id=name, name=name.title())
    operator = browser_of(make_operator())
    form = {"name": "Lead", "answers_with": "test/model", "critical_policy": "escalate", "priority": "2"}
    operator.post("/agents/new/", {**form, "model_params": "{}", "colleagues": ["scout", "guide"]})
    lead = Agent.objects.get(pk="lead")
    assert lead.extras == {"colleagues": ["scout", "guide"]} and "ask_agent" in tools_of(lead)
    Agent.objects.filter(pk="lead").update(extras={"colleagues": ["scout"], "side_dialogs": {"levels": 2}})
    page = operator.get("/agents/lead/").content.decode()
    assert (
        '<option value="scout" selected>' in page
        and '<option value="guide">' in page
        and '<option value="lead"' not in page
    )
    operator.post("/agents/lead/", {**form, "model_params": "{}"})
    assert Agent.objects.get(pk="lead").extras == {"side_dialogs": {"levels": 2}}


@pytest.mark.django_db(transaction=True)
def test_an_export_holds_side_dialogs_which_an_import_brings_back(lead: Dialog, script: Script) -> None:
    script(*steps(asking()))
    play(send(lead, "plan"))
    task_document.edit(lead, "goal", "A night in the hut.", 0)
    text = "".join(export.as_json(lead))
    whole = json.loads(text)
    (side,) = whole["side_dialogs"]
    assert (side["name"], side["parent"], side["task"], side["standing"]) == ("scout", str(lead.pk), TASK, "reported")
    assert side["export"]["turns"][-1]["text"] == REPORT
    assert (whole["task_document"]["version"], whole["task_document"]["goal"]) == (1, "A night in the hut.")
    assert "side_dialogs" not in json.loads("".join(export.as_json(side_of(lead).dialog)))

    for dialog in (lead, side_of(lead).dialog):  # and each request before and after the report can be seen again
        assert [sent_request(call).differs for call in dialog.generations.all()] == [""] * dialog.generations.count()
    root, below = conversations_in(BytesIO(text.encode()), "team.json")
    assert [root.source, below.source] == [f"dominds:{lead.pk}", f"dominds:{side_of(lead).pk}"]
    assert below.title.startswith("Scout: ") and below.messages[-1].message.text == REPORT
