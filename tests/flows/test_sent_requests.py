"""Each request of a dialog, made again from rows, equals the bytes that its model's server received."""

import os
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import orjson
import pytest

from dialogs.accounts.api_keys import create_key
from dialogs.actions import messages, reminders, rewrite_requests
from dialogs.actions.attachments import check_files
from dialogs.context.sent import Category, Sent
from dialogs.extras.v1.conversations import begin
from dialogs.extras.v1.parsing import parse
from dialogs.models import ApiKey, Dialog, Generation, RequestPart
from dialogs.queries.sent_requests import SIDE_CALL, sent_request
from dialogs.runtime.driver import drive
from remediation.guidance import CLEAR_OR_REMIND
from remediation.models import RemediationRun
from remediation.policies.registry import by_hand
from tests.dialogs.factories import AgentFactory, UserFactory
from tests.doubles.brains import GUIDANCE, Call, Prompt
from tests.doubles.messages import MessagesDouble
from tests.flows.conftest import Minds, Serve, go_on, say
from tests.flows.doubled import dialog_at, start
from tests.flows.mind import BOUND, YELLOW, Mind
from tests.pixels import picture

pytestmark = pytest.mark.django_db(transaction=True)

RED = (950_000, 5)
FACT = "The archive's clerk is Ottoline Marchbanks of Wexcombe."
STORY = "The bridge at Wexcombe was built in nine weeks, and nobody has said since who paid for its stones. " * 12


ASKED = "Who is the archive's clerk of Wexcombe?"


class Listener(Mind):
    """Heeds what was said word for word, and not what came back of it."""

    def _act(self, prompt: Prompt) -> tuple[str, tuple[Call, ...]]:
        if prompt.required_tools or GUIDANCE in prompt.last.text:
            return super()._act(prompt)
        commands = ("look", "remember this", "remember that", "hello", "please clear", STORY.strip(), FACT, ASKED)
        said = [replace(message, text=message.text.partition("[Recalled ")[0].strip()) for message in prompt.messages]
        events = [message for message in said if message.role == "tool" or message.text in commands]
        return super()._act(replace(prompt, messages=tuple(events))) if events else ("Yes.", ())


@pytest.fixture
def double() -> Iterator[MessagesDouble]:
    with start(BOUND, Listener()) as running:
        assert isinstance(running, MessagesDouble)
        yield running


@pytest.fixture
def dialog(double: MessagesDouble, minds: Minds, monkeypatch: Any) -> Dialog:
    return dialog_at(double, minds, monkeypatch, BOUND, tools=["list_files"])


def undo(dialog: Dialog) -> None:
    if (run := RemediationRun.objects.filter(dialog=dialog, undone_at=None).last()) is not None:
        rewrite_requests.undo(run.pk, dialog.owner)


def live_through(dialog: Dialog, mind: Any, verb: str) -> None:
    """Tools, reminders, images, the rewrite ``verb``, recall, its undo, guidance, a clear, other instructions."""
    for text in ("look", "remember this", STORY, "look", STORY, "hello", "remember that"):
        say(dialog, text)
    messages.post_message(dialog.pk, "hello", attached=check_files([("a.png", picture())]))
    go_on(dialog)
    rewrite_requests.request(dialog.pk, verb, dialog.owner)
    go_on(dialog)
    for text in (ASKED, "look"):
        say(dialog, text)
    undo(dialog)
    mind.usage = YELLOW
    for text in ("hello", "please clear"):
        say(dialog, text)
    mind.usage = None
    reminders.delete(dialog.pk, dialog.reminders.latest("pk").pk)
    dialog.agent.instructions += " Be kind."
    dialog.agent.save()
    say(dialog, ASKED)


def test_every_request_of_an_eventful_dialog(double: MessagesDouble, dialog: Dialog) -> None:
    least = int(os.environ.get("DOMINDS_GENERATIONS", "60"))
    say(dialog, FACT)
    while dialog.generations.count() < least:
        for policy in by_hand():
            assert policy.by_hand is not None
            live_through(dialog, double.brain, policy.by_hand.verb)
    mind: Any = double.brain
    mind.usage = RED
    say(dialog, "hello")
    mind.usage = None
    say(dialog, "look")
    rows = list(dialog.generations.exclude(purpose__in=["prune", "summary"]).order_by("pk"))
    received = [each.digest for each in double.requests if each.digest in {Sent.of(row.sent).digest for row in rows}]
    assert len(rows) >= least
    assert [Sent.of(row.sent).digest for row in rows] == received, "each went out as it is remembered"
    assert {row.pk: differs for row in rows if (differs := sent_request(row).differs)} == {}
    kinds = {piece.category for row in rows for piece in sent_request(row).pieces}
    assert kinds == set(Category)
    assert len({row.base for row in rows}) >= 5 and dialog.round_number >= 3
    assert {row.guided for row in rows} == {True, False} and "forced_clear" in {row.purpose for row in rows}


def test_guidance_is_a_category_and_never_a_text(double: MessagesDouble, dialog: Dialog, minds: Minds) -> None:
    mind: Any = double.brain
    mind.usage = YELLOW
    say(dialog, "hello")
    say(dialog, "hello again")
    guided = dialog.generations.get(guided=True)
    (piece,) = [piece for piece in sent_request(guided).pieces if piece.category is Category.GUIDANCE]
    assert (piece.text, piece.chars) == ("", len(CLEAR_OR_REMIND))
    assert piece.prompts[0].startswith("guidance ")
    assert GUIDANCE not in str(guided.sent) + str(list(RequestPart.objects.values_list("text")))
    own = minds.folder / "prompts"
    own.mkdir()
    (own / "guidance.md").write_text("Clear your mind.")
    assert sent_request(guided).differs == "", "the shipped version is still there"
    say(dialog, "hello")
    unknown = replace(Sent.of(guided.sent), guidance=(("guidance", "0-00000000", ""),))
    Generation.objects.filter(pk=guided.pk).update(sent=unknown.stored)
    guided.refresh_from_db()
    value = sent_request(guided)
    assert value.differs.startswith("The prompt guidance is gone in version 0-00000000; it is ")
    assert piece.chars == next(piece.chars for piece in value.pieces if piece.category is Category.GUIDANCE)


def test_what_changed_since_is_said(double: MessagesDouble, dialog: Dialog) -> None:
    say(dialog, "hello")
    say(dialog, "hello")
    row = dialog.generations.latest("pk")
    dialog.turns.filter(seq=1).update(text="hallo")
    assert "cannot be read as it was" in sent_request(row).differs
    RequestPart.objects.all().delete()
    assert "no longer stored" in sent_request(row).differs
    row.sent = None
    assert "before Dominds kept" in sent_request(row).differs
    dialog.turns.filter(seq=1).update(text="hello")
    dialog.generations.all().update(sent=None)


def test_a_call_to_shorten_texts_has_its_hash(double: MessagesDouble, dialog: Dialog) -> None:
    for text in ("look", STORY, STORY, "hello"):
        say(dialog, text)
    rewrite_requests.request(dialog.pk, "fresh_start", dialog.owner)
    go_on(dialog)
    side = dialog.generations.filter(purpose__in=["prune", "summary"])
    assert side.exists()
    for row in side:
        assert Sent.of(row.sent).digest in {exchange.digest for exchange in double.requests}
        assert sent_request(row).differs == SIDE_CALL


def test_equal_requests_share_their_parts(double: MessagesDouble, dialog: Dialog) -> None:
    for _ in range(3):
        say(dialog, "hello")
    first, *others = [Sent.of(row.sent) for row in dialog.generations.order_by("pk")]
    for sent in others:
        assert (sent.instructions, sent.tools, sent.traits) == (first.instructions, first.tools, first.traits)
    assert RequestPart.objects.count() == 3
    assert sha256(b"").hexdigest() != first.digest


def test_what_a_program_brings_belongs_to_its_dialog(serve: Serve) -> None:
    serve(supports_tool_choice=True)
    create_key(UserFactory.create())
    key = ApiKey.objects.latest("pk")
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "weather", "description": "Of a city.", "strict": True, "parameters": parameters}
    body = {
        "model": AgentFactory.create(provider="double", model="llama-3.1-8b-instruct").pk,
        "messages": [{"role": "system", "content": "You are a guide."}, {"role": "user", "content": "Rome?"}],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "required",
        "temperature": 0.25,
    }
    run = begin(key, parse(orjson.dumps(body)))
    drive(run.dialog_id)
    rows = Generation.objects.filter(dialog=run.dialog_id).order_by("pk")
    assert {sent_request(row).differs for row in rows} == {""}
    assert Sent.of(rows[0].sent).force == "weather"
    parts = RequestPart.objects.all()
    assert any("You are a guide." in part.text for part in parts)
    assert {part.dialog_id for part in parts} == {run.dialog_id}
