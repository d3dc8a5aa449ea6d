"""The first page: a composer whose first message makes the dialog, or nothing."""

import re

import pytest
from django.test import Client

from dialogs.models import Agent, Dialog, Turn
from tests.dialogs.browsing import HTMX, browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory
from tests.dialogs.html_tree import in_one_line

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent(script: Script) -> Agent:
    script({"text": "Hello."})
    return AgentFactory.create(suggestions=["Plan the week"], description="Plans.")


def begin(client: Client, agent: Agent, text: str = "Plan my week", message: str = "m-1", **more: str) -> Dialog:
    client.post("/d/new/", {"agent": agent.pk, "text": text, "client_message_id": message, **more})
    return Dialog.objects.latest("created_at")


def test_the_first_message_makes_the_dialog_once(agent: Agent) -> None:
    user = UserFactory.create()
    client, given = browser_of(user), {"agent": agent.pk, "text": "Plan my week", "client_message_id": "m-1"}
    first = client.post("/d/new/", given)
    dialog = Dialog.objects.get(owner=user)
    assert (first["Location"], dialog.title, dialog.agent) == (f"/d/{dialog.pk}/", "Plan my week", agent)
    again = client.post("/d/new/", given, headers=HTMX)
    assert again["HX-Redirect"] == f"/d/{dialog.pk}/"
    assert Turn.objects.get(dialog__owner=user).text == "Plan my week"
    other = browser_of(UserFactory.create()).post("/d/new/", given)
    assert other["Location"] != first["Location"]


def test_an_address_says_why_its_agent_does_not_answer(agent: Agent) -> None:
    client, broken = browser_of(UserFactory.create()), AgentFactory.create(model="gone")

    def said(wanted: str) -> str:
        html = client.get("/", {"agent": wanted}).content.decode()
        return str(re.search(r'id="sending-error"[^>]*>([^<]*)<', html)[1])  # type: ignore[index]

    assert said(agent.pk) == ""
    assert said(broken.pk).startswith("There is no model of ") and said(broken.pk).endswith(
        f" {agent} answers instead."
    )
    assert said("nobody") == f"There is no agent “nobody” here. {agent} answers instead."


@pytest.mark.parametrize(
    ("wrong", "status", "text"),
    [
        ({"text": "  "}, 400, "The message is empty."),
        ({"agent": "nobody"}, 400, "There is no agent"),
        ({"agent": ""}, 400, "This field is required"),
        ({"model": "gone/gone"}, 409, "gone"),
    ],
)
def test_a_refused_message_makes_nothing_and_stays(agent: Agent, wrong: dict[str, str], status: int, text: str) -> None:
    client = browser_of(UserFactory.create())
    given = {"agent": agent.pk, "text": "Plan my week", **wrong}
    page = client.post("/d/new/", given)
    assert (page.status_code, Dialog.objects.count()) == (status, 0)
    html = page.content.decode()
    assert text in re.search(r'id="sending-error"[^>]*>([^<]*)<', html)[1]  # type: ignore[index]
    assert f">{given['text']}</textarea>" in html
    piece = client.post("/d/new/", given, headers=HTMX)
    assert piece.status_code == status
    assert text in piece.content.decode()
    assert "<html" not in piece.content.decode()


def test_a_suggestion_is_a_message_where_scripts_are_off(agent: Agent) -> None:
    client = browser_of(UserFactory.create())
    client.post("/d/new/", {"agent": agent.pk, "text": "", "suggestion": "Plan the week"})
    assert Turn.objects.get().text == "Plan the week"


def test_the_page_offers_agents_that_answer_and_what_they_suggest(agent: Agent) -> None:
    broken = AgentFactory.create(model="gone")
    plain = AgentFactory.create()
    user = UserFactory.create()
    client = browser_of(user)
    html = in_one_line(client.get(f"/?agent={agent.pk}").content.decode())
    assert re.search(rf'value="{broken.pk}" disabled', html)
    assert re.search(rf'value="{agent.pk}" checked', html)
    assert html.count('value="Plan the week"') == 1
    suggestions = re.findall(r'class="suggestion".*?value="([^"]*)"', html)
    assert len(suggestions) == 1 + 3  # its own, and the general ones of the other
    assert not [text for text in suggestions if text.endswith((":", "…", "..."))], "each is a whole message"
    begin(client, plain)
    html = in_one_line(client.get("/").content.decode())
    assert re.search(rf'value="{plain.pk}" checked', html), "whoever was spoken with last is asked again"
    assert "Plan my week" in html


def test_a_dialog_keeps_the_model_that_was_chosen(agent: Agent) -> None:
    dialog = begin(browser_of(UserFactory.create()), agent, model="test/model")
    assert (dialog.provider, dialog.model) == ("test", "model")


def test_the_lists_old_addresses_lead_to_it() -> None:
    client = browser_of(UserFactory.create())
    assert client.get("/?q=a%26b&state=idle")["Location"] == "/dialogs/?q=a%26b&state=idle"


def test_without_an_agent_the_page_says_why(script: Script) -> None:
    client = browser_of(UserFactory.create())
    assert "There are no agents yet" in client.get("/").content.decode()
    AgentFactory.create(model="gone")
    html = client.get("/").content.decode()
    assert "No agent can answer now" in html
    assert 'id="composer"' not in html
