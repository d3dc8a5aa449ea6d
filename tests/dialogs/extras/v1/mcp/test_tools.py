"""What the MCP server offers to whom, and what it refuses."""

from typing import Any

import orjson
import pytest
from django.test import Client

from dialogs.accounts.api_keys import create_key
from dialogs.actions import messages, questions, reminders
from dialogs.extras.v1.mcp.server import MOST_BYTES
from dialogs.models import Dialog, Question
from dialogs.runtime.driver import drive
from dialogs.state import State
from remediation.models import RemovedUnit
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, RewriteFactory, UserFactory, make_dialog

pytestmark = pytest.mark.django_db(transaction=True)

HEADERS = {"Accept": "application/json, text/event-stream"}
Answer = tuple[bool, Any]  # whether it succeeded, and the tool's JSON or its complaint


class Agent:
    """A program with a key, that runs elsewhere."""

    def __init__(self, person: Any, **key: Any) -> None:
        self._key = create_key(person, **key)

    def ask(self, method: str, **params: Any) -> Any:
        body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        answer = post(body, Authorization=f"Bearer {self._key}")
        assert answer.status_code == 200, answer.content
        return answer.json()["result"]

    def __call__(self, tool: str, **arguments: Any) -> Answer:
        result = self.ask("tools/call", name=tool, arguments=arguments)
        text = result["content"][0]["text"]
        return (False, text) if result["isError"] else (True, orjson.loads(text))

    @property
    def tools(self) -> set[str]:
        return {tool["name"] for tool in self.ask("tools/list")["tools"]}


def post(body: bytes, **headers: str) -> Any:
    return Client().post("/mcp", body, "application/json", headers={**HEADERS, **headers})


def test_a_program_asks_and_reads_the_answer_without_an_agent(script: Script) -> None:
    AgentFactory.create(is_default=True)
    person = UserFactory.create()
    agent = Agent(person)
    answer, asked = agent("ask_human", text="Ship it today?")
    assert answer
    assert asked["state"] == "open"
    dialog = Dialog.objects.get(pk=asked["dialog"])
    assert (dialog.title, dialog.origin, dialog.state) == ("Ship it today?", "key", State.WAITING)
    messages.post_message(dialog.pk, "By the way")
    page = browser_of(person).get(f"/q4h/{asked['id']}/").content.decode()
    assert "A program asks" in page
    assert agent("ask_human", text="And now?", dialog=str(dialog.pk)) == (
        False,
        "The dialog is waiting; ask in one that is idle, or in a new one.",
    )
    browser_of(person).post(f"/q4h/{asked['id']}/answer/", {"text": "On Monday."})
    assert agent("read_question", question=asked["id"])[1]["answer"] == "On Monday."
    drive(dialog.pk)
    assert list(dialog.turns.order_by("position").values_list("role", "text")) == [
        ("notice", "A program asks: Ship it today?"),
        ("notice", "The answer: On Monday."),
        ("user", "By the way"),
        ("assistant", "Hello."),
    ]
    assert agent("ask_human", text="And now?", dialog=str(dialog.pk))[0]
    questions.cancel(Question.objects.get(state="open").pk, person)
    dialog.refresh_from_db()
    assert dialog.state == State.IDLE


def test_reminders_and_lists_are_those_of_the_api(script: Script) -> None:
    dialog = make_dialog()
    agent = Agent(dialog.owner)
    answer, added = agent("add_reminder", dialog=str(dialog.pk), text="Cabin 12")
    assert answer
    assert agent("list_reminders", dialog=str(dialog.pk)) == (True, [added])
    assert agent("remove_reminder", dialog=str(dialog.pk), reminder=added["id"])[0]
    assert not dialog.reminders.exists()
    assert [row["id"] for row in agent("list_dialogs")[1]] == [str(dialog.pk)]
    assert agent("read_health", dialog=str(dialog.pk))[1]["health"]["level"] == "unknown"
    messages.post_message(dialog.pk, "The ship is called Aurora.")
    for within in ({}, {"dialog": str(dialog.pk)}):
        result = agent("search_dialogs", query="Aurora", **within)[1]
        assert ([row["seq"] for row in result["found"]], result["searched"]) == ([1], "all")
    assert agent("read_turns", dialog=str(dialog.pk))[1][0]["text"] == "The ship is called Aurora."


def test_what_goes_wrong_is_a_sentence(script: Script) -> None:
    dialog = make_dialog()
    mine, stranger = Agent(dialog.owner), Agent(UserFactory.create())
    nothing = (False, "There is no such thing, or it is not yours.")
    assert stranger("list_reminders", dialog=str(dialog.pk)) == nothing
    assert stranger("ask_human", text="Hi?", dialog=str(dialog.pk)) == nothing
    assert stranger("search_dialogs", query="x", dialog=str(dialog.pk)) == nothing
    assert stranger("list_dialogs") == (True, [])
    for tool, arguments, words in (
        ("read_turns", {"dialog": "7"}, "dialog: Input should be a valid UUID"),
        ("list_dialogs", {"limit": 51}, "limit: Input should be less than or equal to 50"),
        ("list_dialogs", {"dialog": "x"}, "list_dialogs does not take dialog. It takes after, limit."),
        ("list_dialogs", {"after": str(dialog.owner.pk).zfill(32)}, "after: this list has no entry"),
        ("read_archived_unit", {"dialog": str(dialog.pk), "unit": 7}, "There is no archived unit 7 in this dialog."),
        ("add_reminder", {"dialog": str(dialog.pk), "text": " "}, "The reminder is blank."),
        ("add_reminder", {"dialog": str(dialog.pk), "text": "a\0"}, "text: Value error"),
        ("forget", {}, "There is no tool 'forget'."),
    ):
        answer, complaint = mine(tool, **arguments)
        assert not answer
        assert words in complaint, complaint


def test_a_key_for_reading_only_reads(script: Script) -> None:
    dialog = make_dialog()
    reminders.add(dialog.pk, "Cabin 12")
    reader = Agent(dialog.owner, scope="read")
    assert reader.tools < Agent(dialog.owner).tools
    assert "add_reminder" not in reader.tools
    assert reader("list_reminders", dialog=str(dialog.pk))[0]
    answer, complaint = reader("add_reminder", dialog=str(dialog.pk), text="x")
    assert not answer
    assert "is for reading" in complaint
    assert dialog.reminders.count() == 1


def test_results_are_bounded_and_long_messages_come_in_pieces(script: Script) -> None:
    dialog = make_dialog()
    run = RewriteFactory.create(dialog=dialog)
    rows = [
        RemovedUnit(
            dialog=dialog, run=run, unit_id=f"turn-{n}", kind="message", role="user", est_tokens=9, text="ä" * 50_000
        )
        for n in range(50)
    ]
    unit = RemovedUnit.objects.bulk_create(rows)[0]
    agent = Agent(dialog.owner)
    result = agent("search_archive", dialog=str(dialog.pk), limit=50)[1]
    assert len(result) == 50
    assert len(orjson.dumps(result)) <= MOST_BYTES
    assert result[0]["text"].endswith("[cut: 50,000 characters in all]")
    text = ""
    offset: int | None = 0
    while offset is not None:
        piece = agent("read_archived_unit", dialog=str(dialog.pk), unit=unit.pk, offset=offset)[1]
        text, offset = text + piece["text"], piece["next_offset"]
    assert text == "ä" * 50_000


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def test_who_is_let_in(script: Script) -> None:
    person = UserFactory.create()
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
    key = {"Authorization": f"Bearer {create_key(person)}"}
    assert post(body, **key).json()["result"]["serverInfo"]["name"] == "Dominds"
    assert post(body, Origin="http://testserver", Host="testserver", **key).status_code == 200
    nobody = post(body)
    assert (nobody.status_code, nobody["WWW-Authenticate"]) == (401, "Bearer")
    assert post(body, Origin="https://elsewhere.example", **key).json()["error"]["code"] == "origin_refused"
    agents_only = {"Authorization": f"Bearer {create_key(person, scope='v1')}"}
    assert post(body, **agents_only).json()["error"]["code"] == "key_scope"
    for session in (browser_of(person).post("/mcp", body, "application/json"), Client().get("/mcp", headers=key)):
        assert session.status_code in (401, 405)
    assert post(b"{", **key).status_code == 400
