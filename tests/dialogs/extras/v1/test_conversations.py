"""Which dialog a request goes on with, while a worker may still hold it."""

import re
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from dialogs.accounts import api_keys
from dialogs.actions.messages import post_message
from dialogs.errors import Refusal
from dialogs.extras.v1 import chat, conversations
from dialogs.extras.v1.chat import ChatWriter
from dialogs.extras.v1.history import Call, ClientMessage, conversation_of
from dialogs.extras.v1.matching.incoming import Incoming
from dialogs.extras.v1.messages.answer import MessageWriter
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.extras.v1.placing import places
from dialogs.extras.v1.posting import post
from dialogs.extras.v1.preparing import prepare
from dialogs.extras.v1.responses import retrieval
from dialogs.extras.v1.responses.answer import ResponseWriter
from dialogs.extras.v1.responses.stored import Place
from dialogs.extras.v1.responses.tools import Tools
from dialogs.extras.v1.wire import Sent
from dialogs.models import ApiKey, ConnectedProvider, Dialog, Turn
from dialogs.runtime.driver import drive
from dialogs.store import copying
from dialogs.store.change import open_change
from dialogs.store.lease import release
from dominds.budgets import FORK_ROWS
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory
from tests.pixels import picture

ID = re.compile(rb'"id": ?"[^"]+"')
pytestmark = pytest.mark.django_db(transaction=True)

WEATHER = {"name": "get_weather", "description": "", "parameters": {"type": "object", "properties": {}}}
ASKED = ClientMessage("user", "How is the weather?")


@pytest.fixture
def agent(script: Script) -> str:
    call = {"text": "Let me look.", "tool_calls": [{"name": "get_weather", "arguments": {}}]}
    script({"match": "weather", **call}, {"match": "degrees", "text": "It is warm."}, {"text": "Nice."})
    return str(AgentFactory.create().pk)


def begun(key: ApiKey, agent: str, *messages: ClientMessage, tools: Sequence[dict[str, Any]] = (WEATHER,)) -> Dialog:
    run = conversations.begin(key, ChatRequest(model=agent, messages=messages, tools=list(tools)))
    return Dialog.objects.get(pk=run.dialog_id)


def results(dialog: Dialog) -> tuple[ClientMessage, ...]:
    """What a client sends back: the conversation with the call and its result."""
    answer = dialog.turns.filter(role=Turn.Role.ASSISTANT).latest("seq")
    calls = tuple(Call(call["id"], call["name"], call["arguments"]) for call in answer.tool_calls or ())
    given = ClientMessage("tool", "30 degrees", call_id=calls[0].id)
    return ASKED, ClientMessage("assistant", answer.text, calls), given


@pytest.mark.parametrize("state", ["idle", "generating", "failed"])
def test_results_go_to_the_dialog_of_their_call_whatever_its_state(key: ApiKey, agent: str, state: str) -> None:
    dialog = begun(key, agent, ASKED)
    drive(dialog.pk)
    with open_change(dialog.pk) as change:
        if state == "generating":  # its worker has handed the call over, and not let go yet
            change.dialog.lease_owner, change.lease_seconds = "a worker", 60
        elif state == "failed":
            change.dialog.failure = "Something else failed."
    assert begun(key, agent, *results(dialog)).pk == dialog.pk
    with open_change(dialog.pk) as change:
        release(change)
    drive(dialog.pk)
    assert Dialog.objects.count() == 1
    assert dialog.turns.filter(text="It is warm.").exists()


def test_a_response_keeps_its_own_state_whatever_is_said_after_it(key: ApiKey, script: Script) -> None:
    script({"match": "slow", "error": {"kind": "refused_for_good", "message": "Gone."}}, {"text": "Fine."})
    agent = AgentFactory.create().pk
    run = conversations.begin(key, ChatRequest(model=agent, messages=(ClientMessage("user", "slow"),)))
    response = Place.of_run(run).id("resp")
    post_message(run.dialog_id, "Another one")
    assert retrieval.response_of(key, response)["status"] == "in_progress", "a message behind it is no end"
    drive(run.dialog_id)
    ended = retrieval.response_of(key, response)
    assert (ended["status"], ended["output"], ended["usage"]) == ("failed", [], None)
    with open_change(run.dialog_id) as change:
        change.dialog.failure = ""
    assert retrieval.response_of(key, response)["status"] == "failed", "also when nobody knows why any more"


def test_each_answer_of_a_tool_loop_has_its_own_id(key: ApiKey, agent: str) -> None:
    """LangChain.js takes what comes under one id for one message."""
    first = ChatRequest(model=agent, messages=(ASKED,), tools=[WEATHER])
    run = conversations.begin(key, first)
    drive(run.dialog_id)
    asked = replace(first, messages=results(Dialog.objects.get(pk=run.dialog_id)))
    again = conversations.begin(key, asked)
    assert again.seq == run.seq
    for writer in (
        lambda run: ChatWriter(first, run),
        lambda run: MessageWriter((), run),
        lambda run: ResponseWriter({}, Tools(), encrypts=False, run=run),
    ):
        ids = {ID.search(writer(one).begin()[0])[0] for one in (run, again)}  # type: ignore[index]
        assert len(ids) == 2


@pytest.mark.parametrize("held", [True, False])
def test_results_may_come_with_other_tools_than_were_called(key: ApiKey, agent: str, held: bool) -> None:
    """As where a last answer is asked for without any tool, also in a conversation that was held elsewhere."""
    dialog = begun(key, agent, ASKED)
    drive(dialog.pk)
    if not held:
        api_keys.create_key(UserFactory.create())
    goes_on = begun(ApiKey.objects.latest("pk"), agent, *results(dialog), tools=())
    assert (goes_on.pk == dialog.pk) == held
    drive(goes_on.pk)
    assert goes_on.turns.latest("position").text == "It is warm."
    assert goes_on.title == ASKED.text


def test_words_behind_a_result_may_be_sent_again(key: ApiKey, agent: str) -> None:
    drive(begun(key, agent, ASKED).pk)
    told = (*results(Dialog.objects.get()), ClientMessage("user", "And the wind?"))
    for number in range(3):
        dialog = begun(key, agent, *told)
        drive(dialog.pk)
        said = list(dialog.turns.filter(position__isnull=False).order_by("position").values_list("text", flat=True))
        assert said == [ASKED.text, "Let me look.", "30 degrees", "And the wind?", "It is warm."], number


def test_results_of_somebody_else_open_a_dialog(key: ApiKey, agent: str) -> None:
    dialog = begun(key, agent, ASKED)
    drive(dialog.pk)
    again = results(dialog)
    assert begun(key, agent, *again).pk == dialog.pk
    drive(dialog.pk)
    assert begun(key, agent, *again).pk != dialog.pk
    stranger = UserFactory.create()
    api_keys.create_key(stranger)
    assert begun(ApiKey.objects.get(owner=stranger), agent, *again).owner == stranger


ERROR = (
    "Error:\nError executing tool 'get_weather' with arguments {}: no answer from the station\n"
    "Now let's retry: take care not to repeat previous errors!\n"
)


def answered(key: ApiKey, agent: str, *messages: ClientMessage) -> Dialog:
    dialog = begun(key, agent, *messages)
    drive(dialog.pk)
    dialog.refresh_from_db()
    return dialog


@pytest.mark.parametrize("split", [True, False], ids=["a message of its own", "in the same message"])
@pytest.mark.parametrize("earlier", [True, False], ids=["in a conversation", "as the first message"])
def test_a_call_that_failed_and_is_told_no_more_goes_on(
    key: ApiKey, script: Script, *, split: bool, earlier: bool
) -> None:
    """As smolagents tries again: with what became of the call behind the user's words, and without the call."""
    script(
        {"match": "Hello", "text": "Good morning to you, and to all who sail with you."},
        {"match": "degrees", "text": "It is warm."},
        {"match": "weather|Error", "tool_calls": [{"name": "get_weather", "arguments": {}}]},
    )
    agent = str(AgentFactory.create().pk)
    greeting = (
        ClientMessage("user", "Hello"),
        ClientMessage("assistant", "Good morning to you, and to all who sail with you."),
    )
    before = greeting if earlier else ()
    if earlier:
        answered(key, agent, greeting[0])

    def retold(*errors: str) -> list[ClientMessage]:
        if split:
            return [*before, ASKED, *(ClientMessage("user", error) for error in errors)]
        return [*before, ClientMessage("user", "\n".join([ASKED.text, *errors]))]

    other = ERROR.replace("no answer", "nor this time")
    dialog = answered(key, agent, *retold())
    assert {answered(key, agent, *retold(*errors)).pk for errors in ([ERROR], [ERROR, other])} == {dialog.pk}
    kept = dialog.turns.filter(role="tool").order_by("position").values_list("text", flat=True)
    assert list(kept) == [ERROR.strip(), other.strip()], "as results, each once"
    (made,) = dialog.turns.filter(role="assistant").latest("seq").tool_calls or []
    call = made["id"]
    calling, seen = (
        ClientMessage("assistant", f"Calling tools: {call}"),
        ClientMessage("user", "Observation: 30 degrees"),
    )
    assert answered(key, agent, *retold(ERROR, other), calling, seen).pk == dialog.pk
    assert Dialog.objects.count() == 1
    assert dialog.turns.latest("position").text == "It is warm."
    assert dialog.turns.filter(role="user").count() == 2 + earlier


MORE = " of the harbour there, of the islands around it, and of the strait that lies behind them"


@pytest.mark.parametrize(
    "text",
    [
        f"{ASKED.text}{MORE}",  # nothing came of a call
        f"{ASKED.text}{MORE}, by get_weather",  # a tool without its arguments
        ERROR,  # the message is not told
        f"Do say: {ASKED.text}\n{ERROR}",
        ASKED.text,
    ],
)
def test_words_behind_a_message_awaiting_a_result_are_no_result(key: ApiKey, script: Script, text: str) -> None:
    script(
        {"match": "weather", "tool_calls": [{"name": "get_weather", "arguments": {"at": "Genua"}}]}, {"text": "Nice."}
    )
    agent = str(AgentFactory.create().pk)
    dialog = answered(key, agent, ASKED)
    assert begun(key, agent, ClientMessage("user", text)).pk != dialog.pk


def test_of_two_that_wait_for_the_same_result_neither_goes_on(key: ApiKey, script: Script) -> None:
    script({"match": "weather", "tool_calls": [{"name": "get_weather", "arguments": {}}]})
    agent = str(AgentFactory.create().pk)
    waiting = {answered(key, agent, ASKED).pk for _ in range(2)}
    assert begun(key, agent, ASKED, ClientMessage("user", ERROR)).pk not in waiting
    assert len(waiting) == 2


def test_a_branch_too_long_to_copy_is_stored_as_told(key: ApiKey, agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [ClientMessage("user", "Hello"), ClientMessage("assistant", "Nice.")]
    dialog = begun(key, agent, messages[0])
    drive(dialog.pk)
    begun(key, agent, *messages, ClientMessage("user", "More?"))
    drive(dialog.pk)
    copied = begun(key, agent, *messages, ClientMessage("user", "Something else?"))
    monkeypatch.setattr(copying, "FORK_ROWS", replace(FORK_ROWS, most=1))
    longer = begun(key, agent, *messages, ClientMessage("user", "A third way?"))
    assert (copied.forked_from_id, longer.forked_from_id) == (dialog.pk, None)
    texts = [[turn.text for turn in made.turns.order_by("seq")][:2] for made in (copied, longer)]
    assert texts == [["Hello", "Nice."]] * 2


def test_a_branch_holds_nothing_that_came_while_it_was_looked_for(key: ApiKey, agent: str) -> None:
    """Of two conversations that begin alike and go on at once, each is answered by its own words."""
    told = [ClientMessage("user", "Hello"), ClientMessage("assistant", "Nice.")]
    dialog = begun(key, agent, told[0])
    drive(dialog.pk)
    request = ChatRequest(model=agent, messages=(*told, ClientMessage("user", "Slower?")))
    served = conversations.agent_of(request)
    found = list(places(Incoming(key, *served, request, conversation_of(request.messages))))
    assert begun(key, agent, *told, ClientMessage("user", "Faster?")).pk == dialog.pk
    slower = next(run for place in found if (run := post(place, prepare(place))))
    assert slower.dialog_id != dialog.pk
    turns = Turn.objects.filter(dialog=slower.dialog_id).order_by("seq")
    assert [turn.text for turn in turns] == ["Hello", "Nice.", "Slower?"]


@pytest.mark.parametrize("kind", ["vllm", "ollama", "lmstudio"])
def test_a_models_server_is_asked_before_any_row_is_locked(key: ApiKey, script: Script, kind: str) -> None:
    """For its window, which a long message needs, and for its sight, which an image does."""
    ConnectedProvider.objects.create(
        provider_id=f"silent-{kind}", name="Silent", kind=kind, base_url="http://127.0.0.1:1/v1", model_ids="m"
    )
    agent = str(AgentFactory.create(provider=f"silent-{kind}", model="m").pk)
    image = "data:image/png;base64," + b64encode(picture()).decode()
    content = [{"type": "text", "text": "word " * 2_000}, {"type": "image_url", "image_url": {"url": image}}]
    sent = Sent({"model": agent, "messages": [{"role": "user", "content": content}]}, "", "", key)
    with suppress(Refusal):  # since no such server is there
        conversations.begin(key, chat.read(sent).request)
