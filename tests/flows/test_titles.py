"""Titles: the first message at once, then the model's after its answer, unless a person typed one."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from dialogs.actions import expiry, messages
from dialogs.models import Agent, Dialog, SiteSettings
from dialogs.runtime.driver import drive
from dialogs.runtime.titles import title_in
from tests.dialogs.browsing import browser_of
from tests.dialogs.factories import AgentFactory, UserFactory
from tests.doubles.brains import Prompt, Reply
from tests.doubles.local_servers import LocalDouble
from tests.flows.conftest import Serve

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "Why do our nightly exports of the order table fail since we moved them to the other host?"


@pytest.fixture
def server(serve: Serve) -> LocalDouble:
    result = serve(prices=[{"in": 1, "out": 0}])
    result.brain = lambda prompt: Reply(
        "**“Failing nightly exports.”**\n" if is_title(prompt.body) else "The disk is full."
    )
    return result


def is_title(body: Any) -> bool:
    return "You name a conversation" in str(body["messages"][0])


def begun(server: LocalDouble) -> tuple[Client, Dialog]:
    agent: Agent = AgentFactory.create(provider="double", model=server.model)
    user = UserFactory.create()
    dialog = messages.start_dialog(user, agent.pk, "", QUESTION, "m-1")
    assert dialog.pk
    return browser_of(user), Dialog.objects.get(pk=dialog.pk)


def test_the_model_names_a_dialog_after_its_first_answer(server: LocalDouble) -> None:
    client, dialog = begun(server)
    assert QUESTION.startswith(dialog.title.rstrip("…"))
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert (dialog.title, dialog.state) == ("Failing nightly exports", "idle")
    asked = server.bodies[1]["messages"][-1]["content"]
    assert QUESTION in asked and "The disk is full." in asked
    rows = client.get(f"/api/dialogs/{dialog.pk}/generations").json()
    assert [(row["purpose"], row["outcome"]) for row in rows] == [("reply", "kept"), ("title", "kept")]
    assert sum(Decimal(row["cost_usd"]) for row in rows) == dialog.cost_usd > Decimal(rows[0]["cost_usd"])
    messages.post_message(dialog.pk, "And now?")
    drive(dialog.pk)
    assert [is_title(body) for body in server.bodies] == [False, True, False]


def test_a_dialog_that_is_erased_meanwhile_gets_none(server: LocalDouble) -> None:
    _, dialog = begun(server)
    plain = server.brain

    def erased(prompt: Prompt) -> Reply:
        if is_title(prompt.body):
            expiry.erase_now(dialog.pk)
        return plain(prompt)

    server.brain = erased
    drive(dialog.pk)
    assert Dialog._base_manager.get(pk=dialog.pk).title == ""


def test_a_title_that_was_typed_meanwhile_stays(server: LocalDouble) -> None:
    _, dialog = begun(server)
    plain = server.brain

    def typed(prompt: Prompt) -> Reply:
        if is_title(prompt.body):
            messages.rename(dialog.pk, "My own")
        return plain(prompt)

    server.brain = typed
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert dialog.title == "My own"
    assert dialog.generations.count() == 2


def test_a_typed_title_or_the_switch_saves_the_call(server: LocalDouble) -> None:
    _, renamed = begun(server)
    messages.rename(renamed.pk, "My own")
    SiteSettings.objects.create(write_titles=False)
    _, unnamed = begun(server)
    opened = messages.create_dialog(unnamed.owner, unnamed.agent_id)  # as programs do
    messages.post_message(opened.pk, QUESTION)
    for dialog in (renamed, unnamed, opened):
        drive(dialog.pk)
    assert not any(is_title(body) for body in server.bodies)
    assert len(server.bodies) == 3


def test_a_failed_call_leaves_the_beginning_of_the_message(server: LocalDouble) -> None:
    _, dialog = begun(server)
    plain = server.brain
    server.brain = lambda prompt: Reply(error=(400, {})) if is_title(prompt.body) else plain(prompt)
    drive(dialog.pk)
    message = dialog.title
    dialog.refresh_from_db()
    assert (dialog.title, dialog.state, dialog.awaits_title) == (message, "idle", False)
    assert dialog.generations.get(purpose="title").outcome == "failed"


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("\n\n# Failing exports\n\nmore", "Failing exports"),
        ('Title: "Failing  exports."', "Failing exports"),
        ("导出失败的原因", "导出失败的原因"),
        ("word " * 30, ""),
        ("Here is a title:\n\n| Port | Fee | Note |\n|---|---|---|\n", ""),
        ("```\nFees of the ports\n```", "Fees of the ports"),
        (" \n***\n", ""),
        ("You said: BEGIN\nuser: Hello\nEND", ""),
        ("", ""),
    ],
)
def test_a_title_is_the_first_line_without_its_marks(answer: str, title: str) -> None:
    assert title_in(answer) == title
