"""What a request is answered whose dialog a person closed, archived, deleted or went on with, or that is suspended."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test import RequestFactory

from dialogs.accounts.api_keys import create_key
from dialogs.actions import folders, messages
from dialogs.actions.questions import ASK_HUMAN
from dialogs.errors import Refusal
from dialogs.extras.v1 import answers, chat, conversations, runs
from dialogs.extras.v1.errors import ApiError, of_refusal
from dialogs.extras.v1.gemini.request import read as read_content
from dialogs.extras.v1.messages.request import read as read_message
from dialogs.extras.v1.responses.request import read as read_response
from dialogs.extras.v1.responses.stored import Place
from dialogs.extras.v1.runs import Run
from dialogs.extras.v1.wire import Reading, Sent
from dialogs.models import ApiKey, Dialog, Turn
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory

pytestmark = pytest.mark.django_db(transaction=True)

READERS: dict[str, Callable[[Sent, str], Reading]] = {
    "chat": lambda sent, agent: chat.read(sent),
    "responses": lambda sent, agent: read_response(sent),
    "messages": lambda sent, agent: read_message(sent),
    "gemini": partial(read_content, stream=False),
}
ASKED, TOLD, MORE = "How deep is the harbour of Genua?", "It is fifteen metres deep.", "And that of Trieste?"
CALLED = {"tool_calls": [{"name": "sound_depth", "arguments": {"port": "Genua"}}]}
FULL = {"text": TOLD, "usage": {"prompt_tokens": 950, "completion_tokens": 5}}
PARAMETERS = {"type": "object", "properties": {"port": {"type": "string"}}}


def body_of(protocol: str, texts: tuple[str, ...], agent: str, call_id: str = "") -> dict[str, Any]:
    """Texts of user and agent in turn, or one text, a call and its result."""
    said = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    call, result = {"name": "sound_depth"}, "15 m"
    match protocol:
        case "chat":
            function = {**call, "arguments": "{}"}
            loop: list[dict[str, Any]] = [
                {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]},
                {"role": "tool", "tool_call_id": call_id, "content": result},
            ]
            tool = {"type": "function", "function": {**call, "parameters": PARAMETERS}}
            return {"model": agent, "messages": [*said, *(loop if call_id else [])], "tools": [tool]}
        case "responses":
            loop = [
                {"type": "function_call", "call_id": call_id, **call, "arguments": "{}"},
                {"type": "function_call_output", "call_id": call_id, "output": result},
            ]
            tool = {"type": "function", **call, "parameters": PARAMETERS}
            return {"model": agent, "input": [*said, *(loop if call_id else [])], "tools": [tool]}
        case "gemini":
            loop = [
                {"role": "model", "parts": [{"functionCall": {"id": call_id, **call, "args": {}}}]},
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"id": call_id, **call, "response": {"output": result}}}],
                },
            ]
            told = [{"role": ("user", "model")[at % 2], "parts": [{"text": text}]} for at, text in enumerate(texts)]
            declared = [{**call, "parametersJsonSchema": PARAMETERS}]
            return {"contents": [*told, *(loop if call_id else [])], "tools": [{"functionDeclarations": declared}]}
    loop = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, **call, "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": result}]},
    ]
    tool = {**call, "input_schema": PARAMETERS}
    return {"model": agent, "max_tokens": 99, "messages": [*said, *(loop if call_id else [])], "tools": [tool]}


class Program:
    """A client of one protocol that held a conversation with an agent. ``way``: how it goes on."""

    def __init__(self, key: ApiKey, agent: str, protocol: str) -> None:
        self.key, self.agent, self.protocol = key, agent, protocol
        self.run: Run | None = None

    def send(self, *texts: str, call_id: str = "", header: str = "", **fields: Any) -> Run:
        sent = Sent(body_of(self.protocol, texts, self.agent, call_id) | fields, header, "", self.key)
        return conversations.begin(self.key, READERS[self.protocol](sent, self.agent).request)

    def talk(self) -> Dialog:
        self.run = self.send(ASKED)
        drive(self.run.dialog_id)
        dialog = Dialog.objects.get(pk=self.run.dialog_id)
        answer = dialog.turns.filter(role=Turn.Role.ASSISTANT).latest("seq")
        runs.note_answer(self.run, answer.text)
        return dialog

    def go_on(self, way: str) -> Run:
        assert self.run is not None
        match way:
            case "by its history":
                return self.send(ASKED, TOLD, MORE)
            case "with results":
                calling = Turn.objects.get(dialog=self.run.dialog_id, tool_calls__0__name="sound_depth")
                (call,) = calling.tool_calls or []
                return self.send(ASKED, call_id=call["id"])
            case "by the dialog's id" if self.protocol == "gemini":
                return self.send(MORE, header=str(self.run.dialog_id))
            case "by the dialog's id" if self.protocol != "responses":
                return self.send(MORE, metadata={"dialog_id": str(self.run.dialog_id)})
        if way == "by the dialog's id":
            return self.send(MORE, previous_response_id=Place.of_run(self.run).id("resp"))
        raise ValueError(way)


def closed(dialog: Dialog) -> None:
    messages.close(dialog.pk, dialog.owner)


def suspended(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Fill it up.")
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert dialog.state == "suspended"


def waiting(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Which one?")
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert dialog.state == "waiting"


def failed(dialog: Dialog) -> None:
    messages.post_message(dialog.pk, "Fail.")
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert dialog.state == "failed"


def archived(dialog: Dialog) -> None:
    folders.archive(dialog.owner, [dialog.pk], away=True)


def deleted(dialog: Dialog) -> None:
    folders.delete(dialog.owner, [dialog.pk])
    assert not Dialog.objects.filter(pk=dialog.pk).exists()


def outcome(program: Program, way: str) -> tuple[int, str]:
    try:
        run = program.go_on(way)
    except ApiError as error:
        return error.status, error.code
    except Refusal as refusal:
        return of_refusal(refusal).status, of_refusal(refusal).code
    assert program.run is not None
    return 200, "the same" if run.dialog_id == program.run.dialog_id else "another"


HISTORY, RESULTS, BY_ID = "by its history", "with results", "by the dialog's id"
ASKS = {"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "Genua or Trieste?"}}]}
MATCHES: dict[Any, dict[str, Any]] = {
    waiting: {"match": "Which one", **ASKS},
    failed: {"match": "Fail", "error": "refused"},
}
EXPECTED = [
    (closed, HISTORY, (409, "dialog_closed")),
    (closed, RESULTS, (409, "dialog_closed")),
    (closed, BY_ID, (409, "dialog_closed")),
    (suspended, HISTORY, (409, "dialog_suspended")),
    (suspended, BY_ID, (409, "dialog_suspended")),
    (waiting, HISTORY, (200, "another")),
    (waiting, RESULTS, (200, "another")),
    (waiting, BY_ID, (200, "the same")),
    (failed, HISTORY, (200, "another")),
    (failed, RESULTS, (200, "another")),
    (failed, BY_ID, (200, "the same")),
    (archived, HISTORY, (200, "the same")),
    (archived, RESULTS, (200, "the same")),
    (archived, BY_ID, (200, "the same")),
    (deleted, HISTORY, (200, "another")),
    (deleted, RESULTS, (200, "another")),
    (deleted, BY_ID, (404, "dialog_not_found")),
]


@pytest.mark.parametrize("protocol", READERS)
@pytest.mark.parametrize(("put_away", "way", "expected"), EXPECTED, ids=lambda value: getattr(value, "__name__", None))
def test_each_protocol_is_answered_alike(
    key: ApiKey, script: Script, protocol: str, put_away: Callable[[Dialog], None], way: str, expected: tuple[int, str]
) -> None:
    if put_away is suspended:
        script(FULL, context_length=1000)
    elif put_away in MATCHES:
        script(MATCHES[put_away], CALLED if way == RESULTS else {"text": TOLD})
    else:
        script(CALLED if way == RESULTS else {"text": TOLD})
    program = Program(key, str(AgentFactory.create().pk), protocol)
    dialog = program.talk()
    put_away(dialog)
    if protocol == "responses" and expected[0] == 404:
        expected = (400, "previous_response_not_found")
    elif protocol == "responses" and way == BY_ID and put_away in MATCHES:
        expected = (200, "another")  # the response that it names is no longer the end
    before = Dialog.objects.count()
    assert [outcome(program, way) for _ in range(2 if expected[0] > 200 else 1)] == [expected] * (
        1 + (expected[0] > 200)
    )
    assert Dialog.objects.count() == before + (expected == (200, "another"))
    assert Dialog.objects.filter(pk=dialog.pk, archived_at__isnull=False).exists() == (
        put_away is archived and way == RESULTS
    )


@pytest.mark.parametrize("put_away", [closed, archived, deleted])
def test_another_answer_is_asked_for_beside_what_was_put_away(
    key: ApiKey, script: Script, put_away: Callable[[Dialog], None]
) -> None:
    """From an older place of it, and where it has the same first message."""
    script({"text": TOLD})
    program = Program(key, str(AgentFactory.create().pk), "chat")
    dialog = program.talk()
    run = program.send(ASKED, TOLD, MORE)
    drive(run.dialog_id)
    put_away(dialog)
    another = program.send(ASKED, TOLD, "And that of Rijeka?").dialog_id
    anew = program.send(ASKED).dialog_id
    assert len({dialog.pk, another, anew}) == 3


def test_an_open_dialog_is_found_before_a_closed_one(key: ApiKey, script: Script) -> None:
    script({"text": TOLD})
    program = Program(key, str(AgentFactory.create().pk), "chat")
    goes_on, put_away = program.talk(), program.talk()
    closed(put_away)
    assert program.send(ASKED, TOLD, MORE).dialog_id == goes_on.pk


def test_of_two_that_follow_one_response_the_slower_one_branches_off(key: ApiKey, script: Script) -> None:
    """Both were read while that response was the end of its dialog."""
    script({"text": TOLD})
    program = Program(key, str(AgentFactory.create().pk), "responses")
    dialog = program.talk()
    assert program.run is not None
    previous = {"previous_response_id": Place.of_run(program.run).id("resp")}
    request = RequestFactory().post(
        "/v1/responses",
        body_of("responses", (MORE,), program.agent) | previous,
        content_type="application/json",
        headers={"Authorization": f"Bearer {create_key(key.owner)}"},
    )
    faster: list[Run] = []

    def read_slowly(sent: Sent) -> Reading:
        reading = read_response(sent)
        if not faster:
            faster.append(program.send(MORE, **previous))
        return reading

    with ThreadPoolExecutor(1) as threads:  # it gives its database connection back
        slower = threads.submit(answers.begin, request, read_slowly).result()[2]
    assert isinstance(slower, Run)
    drive(slower.dialog_id)
    assert faster[0].dialog_id == dialog.pk != slower.dialog_id
    turns = Turn.objects.filter(dialog=slower.dialog_id, role__in=["user", "assistant"]).order_by("position")
    assert list(turns.values_list("text", flat=True)) == [ASKED, TOLD, MORE, TOLD]


def test_a_response_that_waits_for_its_answer_is_gone_on_with(key: ApiKey, script: Script) -> None:
    """What follows it waits behind it; what would branch off from it is told that it has to wait."""
    script({"text": TOLD})
    program = Program(key, str(AgentFactory.create().pk), "responses")
    waits = program.send(ASKED)
    previous = {"previous_response_id": Place.of_run(waits).id("resp")}
    assert program.send(MORE, **previous).dialog_id == waits.dialog_id
    with pytest.raises(ApiError) as refused:
        program.send(MORE, **previous)
    assert (refused.value.status, refused.value.code) == (409, "previous_response_under_way")
    drive(waits.dialog_id)
    turns = Turn.objects.filter(dialog=waits.dialog_id, role__in=["user", "assistant"]).order_by("position")
    assert list(turns.values_list("text", flat=True)) == [ASKED, TOLD, MORE, TOLD]
    assert program.send(MORE, **previous).dialog_id != waits.dialog_id


@pytest.mark.postgresql
def test_another_answer_waits_for_no_version_that_a_request_holds(key: ApiKey, script: Script) -> None:
    """That request may wait for this one. The version stays in the list, then."""
    script({"text": TOLD})
    program = Program(key, str(AgentFactory.create().pk), "chat")
    dialog = program.talk()
    drive(program.send(ASKED, TOLD, MORE).dialog_id)
    versions = []
    for _ in range(2):
        versions.append(program.send(ASKED, TOLD, MORE).dialog_id)
        drive(versions[-1])
    folders.archive(dialog.owner, versions[:1], away=False)  # a person went back to it
    other = connection.copy()
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute("SELECT 1 FROM dialogs_dialog WHERE id = %s FOR UPDATE", versions[:1])
        assert program.send(ASKED, TOLD, MORE).dialog_id not in (dialog.pk, *versions)
    finally:
        other.rollback()
        other.close()
    shown = Dialog.objects.filter(pk__in=versions, archived_at=None).values_list("pk", flat=True)
    assert list(shown) == versions[:1]
