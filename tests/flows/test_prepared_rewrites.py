"""Rewrites made while a dialog rests: the message after the trigger waits for no summary, and for no preparation."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from dialogs.actions import rewrite_requests
from dialogs.context import prepared
from dialogs.models import Agent, Dialog, Generation
from dialogs.runtime import prepare
from dialogs.runtime.materials import materials_of
from dialogs.runtime.policy_context import context_of
from remediation.context import Context
from remediation.models import PreparedRewrite, RemediationRun
from remediation.policies.ahead import rewrite_ahead
from remediation.policies.policy import Policy
from tests.doubles.brains import Prompt, Reply
from tests.doubles.local_servers import LocalDouble
from tests.flows import pruner
from tests.flows.conftest import OVER, Serve, dialog_with, overflows, say
from tests.flows.texts import is_summary, prose
from tests.harness.stack import eventually

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 8_000


class Clerk:
    """Answers, and writes summaries that quote what it is given. ``held`` keeps a summary back until it is set;
    ``fails`` is what it says in place of one."""

    def __init__(self) -> None:
        self.held: threading.Event | None = None
        self.asked = threading.Event()
        self.fails: Reply | None = None

    def __call__(self, prompt: Prompt) -> Reply:
        if pruner.is_asked(prompt.body):
            return pruner.prune(prompt)
        if not is_summary(prompt.body["messages"]):
            return Reply("Understood, and done.")
        self.asked.set()
        if self.held:
            self.held.wait(20)
        if self.fails:
            return self.fails
        texts = [line for line in prompt.last.text.splitlines() if "person:" in line]
        return Reply(
            "## Goal\n" + "\n".join(f"{line.partition('person: ')[2][:160].rsplit(' ', 1)[0]}." for line in texts)
        )


@pytest.fixture
def clerk() -> Iterator[Clerk]:
    clerk = Clerk()
    yield clerk
    if clerk.held:
        clerk.held.set()


@pytest.fixture
def server(serve: Serve, clerk: Clerk) -> LocalDouble:
    result = serve(window=LIMIT, context_length=LIMIT, prices=[{"in": 1, "out": 2}])
    result.brain = clerk
    return result


def message(number: int, words: int = 300) -> str:
    return f"Please go on with step {number}. {prose(number, words)}"


def nearly_full(server: LocalDouble, policy: str = "summarize", **agent: Any) -> tuple[Dialog, int]:
    """A dialog whose next rewrite is near, and how many messages it took."""
    dialog = dialog_with(server, **{"context_policy": policy, "prepare_rewrites": True, **agent})
    for number in range(20):
        say(dialog, message(number))
        if is_near(dialog):
            return dialog, number + 1
    raise AssertionError("twenty long messages should have come near a rewrite")


def is_near(dialog: Dialog) -> bool:
    return rewrite_ahead(*judged_by(dialog)) is not None


def judged_by(dialog: Dialog) -> tuple[Policy, Context]:
    served, view, _, sizes = materials_of(dialog)
    return served.policy, context_of(dialog, served, view, sizes)


def is_ready(dialog: Dialog) -> bool:
    return PreparedRewrite.objects.filter(dialog=dialog, content__isnull=False).exists()


def said_until_rewritten(dialog: Dialog, number: int) -> RemediationRun:
    for following in range(number, number + 20):
        say(dialog, message(following))
        if run := RemediationRun.objects.filter(dialog=dialog).first():
            return run
    raise AssertionError("twenty long messages more should have been rewritten")


@pytest.mark.parametrize("policy", ["summarize", "breaking", "autocompaction"])
def test_the_message_after_the_trigger_asks_for_no_summary(serve: Serve, clerk: Clerk, policy: str) -> None:
    kind = {"api_type": "lmstudio"} if policy == "autocompaction" else {"context_length": LIMIT}
    server = serve(window=LIMIT, prices=[{"in": 1, "out": 2}], **kind)
    server.brain = clerk
    dialog, number = nearly_full(server, policy, **({"context_limit": LIMIT} if policy == "breaking" else {}))
    eventually(lambda: is_ready(dialog))
    asked = dialog.generations.filter(purpose__in=["summary", "prune"], outcome="kept")
    made, before = asked.count(), Dialog.objects.get(pk=dialog.pk)
    assert made >= 1 and all(call.cost_usd for call in asked)
    assert before.state == "idle" and before.cost_usd == sum(row.cost_usd or 0 for row in dialog.generations.all())
    run = said_until_rewritten(dialog, number)
    assert asked.filter(started_at__lt=run.created_at).count() == made, "a summary was asked for before the answer"
    assert prepared.NOTE in run.steps[-1]["note"] and run.policy == policy
    assert run.est_after < run.est_before * 9 // 10
    assert overflows(server) == 0
    answered = [body for body in server.bodies if body.get("tools")][-1]
    since = {message(text) for text in range(number, number + 20)} & set(texts_of(dialog))
    assert since and since <= {text["content"] for text in answered["messages"]}  # word for word


def texts_of(dialog: Dialog) -> list[str]:
    return list(dialog.turns.filter(role="user").values_list("text", flat=True))


def test_what_was_prepared_is_thrown_away_when_an_undo_came_between(server: LocalDouble, staff: User) -> None:
    dialog, number = nearly_full(server)
    eventually(lambda: is_ready(dialog))
    said_until_rewritten(dialog, number)
    used = PreparedRewrite.objects.get(dialog=dialog).key
    for following in range(40, 60):
        say(dialog, message(following))
        if is_near(dialog):
            break
    eventually(lambda: PreparedRewrite.objects.get(dialog=dialog).key != used)
    assert knows(dialog)
    runs = RemediationRun.objects.filter(dialog=dialog)
    rewrite_requests.undo(runs.get().pk, staff)
    assert not knows(dialog)
    say(dialog, message(60))
    assert prepared.NOTE not in runs.latest("pk").steps[-1]["note"]
    assert runs.count() == 2


def knows(dialog: Dialog) -> bool:
    dialog.refresh_from_db()
    return prepared.is_known(dialog, "summarize", materials_of(dialog).sizes.own)


def test_a_message_does_not_wait_for_a_preparation(server: LocalDouble, clerk: Clerk) -> None:
    clerk.held = threading.Event()
    dialog, number = nearly_full(server)
    assert clerk.asked.wait(10)
    say(dialog, message(number, 20))  # while the summary is being written
    assert dialog.turns.filter(role="user").last().status == "answered"  # type: ignore[union-attr]
    assert not clerk.held.is_set() and not is_ready(dialog)
    given_up = dialog.generations.filter(purpose="summary").order_by("pk")
    eventually(lambda: given_up[0].outcome == Generation.Outcome.STOPPED)
    assert not RemediationRun.objects.filter(dialog=dialog).exists()
    clerk.held.set()
    eventually(lambda: is_ready(dialog))  # at the next rest


def test_a_dialog_that_went_on_waits_for_its_next_rest(server: LocalDouble, clerk: Clerk) -> None:
    dialog, number = nearly_full(server, prepare_rewrites=False)  # so that nothing but this test prepares
    earlier = Dialog.objects.get(pk=dialog.pk).epoch
    say(dialog, message(number, 20))
    prepare.prepare(dialog.pk, earlier)
    assert not clerk.asked.is_set() and not is_ready(dialog)
    prepare.prepare(dialog.pk, Dialog.objects.get(pk=dialog.pk).epoch)
    assert is_ready(dialog)


def test_a_call_that_fails_for_good_is_not_repeated_each_rest(server: LocalDouble, clerk: Clerk) -> None:
    clerk.fails = OVER
    dialog, number = nearly_full(server)
    eventually(lambda: PreparedRewrite.objects.filter(dialog=dialog, content__isnull=True).exists())
    asked = dialog.generations.filter(purpose="summary")
    made = asked.count()
    say(dialog, message(number, 20))
    prepare.prepare(dialog.pk)
    assert asked.count() == made >= 1
    clerk.fails = None
    assert prepared.NOTE not in said_until_rewritten(dialog, number + 1).steps[-1]["note"]  # it asks when it is due


def test_nothing_is_prepared_where_it_is_switched_off_or_was_lost(server: LocalDouble, clerk: Clerk) -> None:
    dialog, _ = nearly_full(server)
    eventually(lambda: is_ready(dialog))
    calls = len(server.bodies)
    prepare.prepare(dialog.pk)  # once more: it is known
    assert len(server.bodies) == calls
    sizes = materials_of(dialog).sizes.own
    for damaged in ({"prompts": 7}, {"content": 7}, {"content": {"view": [None]}}):
        PreparedRewrite.objects.update(**damaged)
        assert prepared.prepared_for(dialog, "summarize", sizes) is None
    PreparedRewrite.objects.all().delete()  # as by a worker that died before it had stored it
    prepare.prepare(dialog.pk)
    assert is_ready(dialog) and len(server.bodies) > calls
    for change in ({"origin": Dialog.Origin.KEY}, {"agent__proxy": True}, {"agent__prepare_rewrites": False}):
        dialog = Dialog.objects.get(pk=dialog.pk)
        assert Agent().prepare_rewrites and prepare.may_be_near(dialog, *judged_by(dialog))
        for name, value in change.items():
            of, _, column = name.rpartition("__")
            setattr(dialog.agent if of else dialog, column, value)
        assert not prepare.may_be_near(dialog, *judged_by(dialog))
    connections.close_all()
