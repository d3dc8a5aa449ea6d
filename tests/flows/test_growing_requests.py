"""Requests that only grow while nothing is rewritten, and what of earlier reasoning is sent when something was."""

import json
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from dialogs.actions import reminders, rewrite_requests
from dialogs.models import Dialog
from remediation.models import RemediationRun
from remediation.tokens.counting import counter_for
from tests.dialogs.factories import UserFactory
from tests.doubles.binding import CONTROLS, blocks_of
from tests.doubles.brains import GUIDANCE
from tests.doubles.messages import MessagesDouble
from tests.doubles.serving import Double
from tests.flows.conftest import Minds, go_on, say
from tests.flows.doubled import DIALECTS, dialog_at, start
from tests.flows.mind import BOUND, YELLOW, Mind

pytestmark = pytest.mark.django_db(transaction=True)

Body = dict[str, Any]


def messages_of(body: Body) -> list[Any]:
    """Blocks of the messages without thinking, cache marks and what stands in one request alone."""
    blocks = [
        (message["role"], json.dumps({name: value for name, value in block.items() if name != "cache_control"}))
        for message in body["messages"]
        for block in blocks_of(message["content"])
        if block["type"] != "thinking"
    ]
    return [block for block in blocks if GUIDANCE not in block[1]]


def signatures(body: Body) -> list[str]:
    blocks = (block for message in body["messages"] for block in blocks_of(message["content"]))
    return [block["signature"] for block in blocks if block["type"] == "thinking"]


def grows(before: Body, after: Body) -> bool:
    kept = signatures(before)
    same_frame = all(json.dumps(before[name]) == json.dumps(after[name]) for name in ("system", "tools"))
    return (
        same_frame
        and messages_of(after)[: len(messages_of(before))] == messages_of(before)
        and signatures(after)[: len(kept)] == kept
    )


@pytest.fixture
def mind() -> Mind:
    counter_for("claude-opus-5-5").count("loads the vocabulary, as a worker does when it starts")
    return Mind()


@pytest.fixture
def double(mind: Mind) -> Iterator[MessagesDouble]:
    with start(BOUND, mind) as running:
        assert isinstance(running, MessagesDouble)
        yield running


@pytest.fixture
def dialog(double: Double, minds: Minds, monkeypatch: Any) -> Dialog:
    return dialog_at(double, minds, monkeypatch, BOUND, tools=["list_files"], recall=False)


def test_tools_reminders_and_guidance_change_nothing_that_was_sent(
    double: MessagesDouble, dialog: Dialog, mind: Mind
) -> None:
    for text in ("hello", "look", "remember this", "hello", "remember that", "look"):
        say(dialog, text)
    reminders.delete(dialog.pk, dialog.reminders.latest("pk").pk)
    mind.usage = YELLOW
    say(dialog, "hello")
    say(dialog, "hello again")
    mind.usage = None
    say(dialog, "look")
    bodies = [body for body in double.bodies if "tools" in body]  # without calls for summaries
    assert double.refusals == []
    assert all(grows(*pair) for pair in pairwise(bodies))
    assert [GUIDANCE in json.dumps(body["messages"][-1]) for body in bodies].count(True) == 1
    assert len(signatures(bodies[-1])) == len(bodies) - 2  # all but this answer's and the guided one's
    assert all("block_binding" not in body.get("thinking", {}) for body in bodies)


def test_nothing_bound_to_removed_turns_is_sent(double: MessagesDouble, dialog: Dialog, mind: Mind) -> None:
    for text in ("look", "remember this", "hello " * 400, "look", "hello"):
        say(dialog, text)
    _rewrite(dialog)
    _nothing_bound_is_sent(double, dialog, "look")
    rewrite_requests.undo(RemediationRun.objects.latest("pk").pk, dialog.owner)
    _nothing_bound_is_sent(double, dialog, "hello")
    mind.usage = YELLOW
    say(dialog, "hello")
    mind.usage = None
    _nothing_bound_is_sent(double, dialog, "please clear")
    assert dialog.round_number == 2 and double.refusals == []


def _rewrite(dialog: Dialog) -> None:
    rewrite_requests.request(dialog.pk, "fresh_start", dialog.owner)
    go_on(dialog)


def _nothing_bound_is_sent(double: MessagesDouble, dialog: Dialog, text: str) -> None:
    """Judged by the double as if no request had asked to drop what is stale."""
    bound = {signature for body in double.bodies for signature in signatures(body)}
    asked = len(double.requests)
    say(dialog, text)
    say(dialog, "look")
    fresh = double.requests[asked:]
    for record in fresh:
        double.binder.check(record.body, record.account, "enforce", has_header=True)
        assert record.body["thinking"]["block_binding"] and CONTROLS in record.headers["anthropic-beta"]
    assert not bound & set(signatures(fresh[-1].body)) and signatures(fresh[-1].body)


def test_other_instructions_or_tools_leave_earlier_reasoning_behind(double: MessagesDouble, dialog: Dialog) -> None:
    say(dialog, "look")
    dialog.agent.instructions = "Be kind."
    dialog.agent.save()
    _nothing_bound_is_sent(double, dialog, "hello")
    dialog.agent.tools = []
    dialog.agent.save()
    _nothing_bound_is_sent(double, dialog, "hello")
    assert double.refusals == []


@pytest.mark.parametrize("seed", range(4))
def test_any_dialog_is_accepted_and_grows_between_rewrites(
    double: MessagesDouble, dialog: Dialog, mind: Mind, seed: int
) -> None:
    random, rewritten = Random(seed), set[int]()
    for _ in range(14):
        match random.choice(
            ["hello", "look", "look", "remember", "yellow", "green", "edit", "rewrite", "undo", "kind"]
        ):
            case "yellow":
                mind.usage = YELLOW
            case "green":
                mind.usage = None
            case "edit" if (newest := dialog.reminders.order_by("pk").last()) is not None:
                reminders.update(dialog.pk, newest.pk, text=f"edited {random.random()}")
            case "rewrite":
                _rewrite(dialog)
                rewritten.add(sum("tools" in body for body in double.bodies))
            case "undo" if (run := RemediationRun.objects.filter(dialog=dialog, undone_at=None).last()) is not None:
                rewrite_requests.undo(run.pk, UserFactory.create())
                rewritten.add(sum("tools" in body for body in double.bodies))
            case "kind":
                dialog.agent.instructions += " Be kind."
                dialog.agent.save()
                rewritten.add(sum("tools" in body for body in double.bodies))
            case text:
                say(dialog, text)
    say(dialog, "look")
    bodies = [body for body in double.bodies if "tools" in body]  # without calls for summaries
    assert double.refusals == [] and dialog.state == "idle"
    for record in double.requests:
        double.binder.check(record.body, record.account, "enforce", has_header=True)
    for at, pair in enumerate(pairwise(bodies), 1):
        assert at in rewritten or grows(*pair), at


@pytest.mark.parametrize("name", DIALECTS)
def test_a_whole_story_is_accepted_everywhere(name: str, mind: Mind, minds: Minds, monkeypatch: Any) -> None:
    with start(name, mind) as double:
        dialog = dialog_at(double, minds, monkeypatch, name, {"optimal_max_tokens": 60_000}, tools=["list_files"])
        for text in ("look", "remember this", "hello"):
            say(dialog, text)
        mind.usage = (61_000, 5)
        say(dialog, "hello")
        say(dialog, "look")
        mind.usage = None
        _rewrite(dialog)
        say(dialog, "look")
        say(dialog, "remember that")
        # LM Studio is asked for its socket, which the double has not.
        refused = [refusal for refusal in double.refusals if refusal.rule != "path"]
        assert (refused, dialog.failure, dialog.state) == ([], "", "idle")
        assert dialog.reminders.exists()


def test_refused_reasoning_is_left_out_for_good(double: MessagesDouble, dialog: Dialog, minds: Minds) -> None:
    minds.providers["anthropic"]["models"]["claude-opus-5-5"] = {"bound_thinking": False}  # the catalog knows no better
    minds.write()
    say(dialog, "look")
    Dialog.objects.filter(pk=dialog.pk).update(beginning="")  # as if what stood before had changed unnoticed
    dialog.agent.instructions = "Be kind."
    dialog.agent.save()
    say(dialog, "hello")
    say(dialog, "look")
    assert [refusal.rule for refusal in double.refusals] == ["bound thinking"]
    assert list(dialog.generations.filter(outcome="failed").values_list("error_kind", flat=True)) == ["stale_reasoning"]
    dialog.refresh_from_db()
    assert (dialog.failure, dialog.tries, dialog.repeats, dialog.context_epoch) == ("", 0, {}, 1)
