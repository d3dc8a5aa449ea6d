"""A summary that a client asked its model for stands for its conversation, wherever the client puts it."""

from typing import Any

import pytest

from dialogs.extras.v1 import conversations, runs
from dialogs.extras.v1.history import Call, ClientMessage
from dialogs.extras.v1.matching.incoming import RESULT_FOLLOWS
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.models import ApiKey, Dialog, Turn
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.extras.v1.conversing import ANSWER, as_history, conversation, noted, posted, texts_in, tool
from tests.dialogs.factories import AgentFactory

pytestmark = pytest.mark.django_db(transaction=True)

ASKED = "Create a detailed summary of the conversation so far."
SUMMED = (
    "<analysis>It was about a voyage.</analysis>\n\n<summary>\n1. The log of the voyage holds what was said of "
    "cats and of dogs.\n2. The cat may stay, and forty barrels of oil are to be sold in the next harbour.\n</summary>"
)
PART = SUMMED.partition("<summary>")[2].removesuffix("</summary>")


@pytest.fixture
def summed_up(key: ApiKey, script: Script) -> Dialog:
    """A conversation whose client has just asked its model for a summary."""
    script({"match": "summary of", "text": SUMMED}, ANSWER)
    agent = str(AgentFactory.create().pk)
    conversation(key, agent, "Tell of cats", "Tell of dogs")
    return posted(key, agent, *as_history("Tell of cats", "Tell of dogs"), ASKED)


def sent(key: ApiKey, dialog: Dialog, *lines: tuple[str, str], **fields: Any) -> Dialog:
    """Messages with their roles, sent and answered."""
    messages = tuple(ClientMessage(role, text) for role, text in lines)
    run = conversations.begin(key, ChatRequest(model=dialog.agent_id, messages=messages, **fields))
    drive(run.dialog_id)
    goes_on = Dialog.objects.get(pk=run.dialog_id)
    runs.note_answer(run, goes_on.turns.filter(role=Turn.Role.ASSISTANT).latest("seq").text)
    return goes_on


CONTINUED = f"This session is continued from another that ran out of context. Summary:\n{PART}"
SUMMED_UP: dict[str, tuple[list[tuple[str, str]], dict[str, str]]] = {
    "as the only message before the newest": ([("user", CONTINUED)], {}),
    "behind what the user said": ([("user", "Tell of cats"), ("user", "Tell of dogs"), ("user", CONTINUED)], {}),
    "before the last answer": ([("user", CONTINUED), ("assistant", noted("Tell of dogs"))], {}),
    "as the answer to other words": ([("user", "What did we do so far?"), ("assistant", SUMMED)], {}),
    "among the instructions": (
        [("user", "Tell of dogs"), ("assistant", noted("Tell of dogs"))],
        {"instructions": f"Be brief.\n\nSummary of conversation earlier: {PART}"},
    ),
}


@pytest.mark.parametrize(("head", "fields"), SUMMED_UP.values(), ids=SUMMED_UP)
def test_a_summary_that_the_model_made_stands_for_its_conversation(
    key: ApiKey, summed_up: Dialog, head: list[tuple[str, str]], fields: dict[str, str]
) -> None:
    """As clients compact by themselves: they ask for a summary, and tell it in the place of all that was said."""
    known = texts_in(summed_up)
    goes_on = sent(key, summed_up, *head, ("user", "Hi"), **fields)
    assert goes_on.pk == summed_up.pk
    assert texts_in(goes_on) == [*known, "Hi", noted("Hi")], "what the summary stands for is not stored again"
    again = sent(key, summed_up, *head, ("user", "Hi"), ("assistant", noted("Hi")), ("user", "Yes"), **fields)
    assert (again.pk, Dialog.objects.count()) == (summed_up.pk, 1)
    assert texts_in(again) == [*known, "Hi", noted("Hi"), "Yes", noted("Yes")]


def test_a_summary_may_be_the_newest_message(key: ApiKey, summed_up: Dialog) -> None:
    """As where a client compacts between two calls of tools."""
    known = texts_in(summed_up)
    goes_on = sent(key, summed_up, ("user", "Tell of cats"), ("user", "Tell of dogs"), ("user", CONTINUED))
    assert texts_in(goes_on)[: len(known) + 1] == [*known, CONTINUED]
    assert goes_on.pk == summed_up.pk


def test_a_summary_finds_no_conversation_that_does_not_hold_it(key: ApiKey, summed_up: Dialog) -> None:
    """A summary of a document, an answer that is given to another agent, and somebody else's words."""
    alone = sent(key, summed_up, ("user", f"{ASKED} Here it is: ..."))
    assert alone.pk != summed_up.pk
    assert sent(key, summed_up, ("user", CONTINUED.replace("barrels", "crates")), ("user", "Hi")).pk != summed_up.pk
    assert sent(key, summed_up, ("user", CONTINUED), ("user", "Hi"), end_user="ada").pk != summed_up.pk
    talk = conversation(key, summed_up.agent_id, "Tell of birds", "Tell of fish and of all that swims in the deep sea")
    quoted = noted("Tell of fish and of all that swims in the deep sea")
    assert sent(key, summed_up, ("user", f"Improve this text: {quoted}")).pk != talk.pk


def test_a_summary_may_be_asked_for_beside_the_conversation(key: ApiKey, script: Script) -> None:
    """As Goose does: the conversation stands among the instructions. What it tells then begins with the summary."""
    script({"match": "Please sum up", "text": SUMMED}, ANSWER)
    agent = str(AgentFactory.create().pk)
    talk = conversation(key, agent, "Tell of cats", "Tell of dogs")
    known = texts_in(talk)
    history = "\n".join(known)
    beside = posted(key, agent, "Please sum up what is above.", instructions=f"Here it is:\n{history}\nBe structured.")
    assert (beside.pk == talk.pk, beside.origin) == (False, "key"), (
        "its words do not say that it sums up the conversation"
    )
    head = [("user", SUMMED), ("assistant", "That was the summary. Let us go on.")]
    asked = "Now the weather, please"
    goes_on = sent(key, talk, *head, ("user", asked))
    assert texts_in(goes_on) == [*known, asked, noted(asked)]
    again = sent(key, talk, *head, ("user", asked), ("assistant", noted(asked)), ("user", "Yes"))
    assert (goes_on.pk, again.pk) == (talk.pk, talk.pk)
    assert sent(key, talk, ("user", f"Improve this text: {SUMMED}")).pk != talk.pk


LOOP_GOES_ON = (
    "Your context was compacted. The previous message contains a summary of the conversation so far.\n"
    "Do not mention that you read a summary or that conversation summarization occurred.\n"
    "Continue calling tools as necessary to complete the task."
)


@pytest.mark.parametrize(
    "head",
    [[("user", SUMMED), ("assistant", LOOP_GOES_ON)], [("user", "What did we do so far?"), ("assistant", SUMMED)]],
    ids=["Goose", "opencode, with nothing kept"],
)
@pytest.mark.parametrize("earlier", [True, False], ids=["in a conversation", "as the first task"])
def test_a_client_may_compact_while_a_call_waits(
    key: ApiKey, script: Script, head: list[tuple[str, str]], *, earlier: bool
) -> None:
    """As Goose does in a loop of tools: the summary of a request of its own holds what the last call gave,
    and the task is told again."""
    script(
        {"match": "Please summarize", "text": SUMMED},
        {"match": "Tell", **ANSWER},
        {"match": "Sell", "tool_calls": [{"name": "look", "arguments": {"path": "/var/log/of the voyage.txt"}}]},
        {"match": "Continue|so far", "text": "Sold."},
    )
    agent = str(AgentFactory.create().pk)
    look_tool = tool("look")
    earlier_messages = as_history("Tell of cats") if earlier else []
    if earlier:
        posted(key, agent, "Tell of cats", tools=[look_tool])
    task = "Sell the oil"
    talk = posted(key, agent, *earlier_messages, task, tools=[look_tool])
    known = texts_in(talk)
    lines = [f"[{('user', 'assistant')[number % 2]}]: {text}" for number, text in enumerate(earlier_messages)]
    lines += [
        f"[user]: {task}",
        '[assistant]: tool_request(look): {"path":"/var/log/of the voyage.txt"}',
        "[user]: tool_response: 40 barrels",
    ]
    posted(
        key,
        agent,
        "Please summarize the conversation history provided in the system prompt.",
        instructions="\n".join(lines),
    )
    assert Dialog.objects.latest("created_at").origin == Dialog.Origin.BACKGROUND
    goes_on = sent(key, talk, *head, ("user", task), tools=[look_tool])
    assert goes_on.pk == talk.pk
    new = texts_in(goes_on)[len(known) :]
    assert new[:3] == [RESULT_FOLLOWS, SUMMED, task], "the model reads what the call gave"
    (call,) = goes_on.turns.filter(role=Turn.Role.ASSISTANT).latest("position").tool_calls or []
    result = ClientMessage("tool", "40 barrels", call_id=call["id"])
    answer = ClientMessage("assistant", "", (Call(**call),))
    messages = tuple(ClientMessage(role, text) for role, text in [*head, ("user", task)])
    run = conversations.begin(key, ChatRequest(model=agent, messages=(*messages, answer, result), tools=[look_tool]))
    assert run.dialog_id == talk.pk


def test_a_summary_of_another_call_is_no_sign_of_a_dialog(key: ApiKey, script: Script) -> None:
    script(
        {"match": "Please summarize", "text": SUMMED},
        {"match": "Sell", "tool_calls": [{"name": "look", "arguments": {"path": "/var/log/of the voyage.txt"}}]},
        ANSWER,
    )
    agent, look_tool = str(AgentFactory.create().pk), tool("look")
    talk = posted(key, agent, "Sell the oil", tools=[look_tool])
    history = '[user]: Sell the oil\n[assistant]: tool_request(look): {"path":"/var/log/of another.txt"}'
    posted(key, agent, "Please summarize the conversation history provided in the system prompt.", instructions=history)
    goes_on = sent(
        key, talk, ("user", SUMMED), ("assistant", LOOP_GOES_ON), ("user", "Sell the oil"), tools=[look_tool]
    )
    assert goes_on.pk != talk.pk


def test_a_request_for_a_summary_may_leave_the_last_answer_out(key: ApiKey, script: Script) -> None:
    """And begin with the result of a call that was answered."""
    call = {"text": "Let me look.", "tool_calls": [{"name": "look", "arguments": {}}]}
    script(
        {"match": "summary of", "text": SUMMED},
        {"match": "weather", **call},
        {"match": "degrees", "text": "It is warm."},
    )
    agent = str(AgentFactory.create().pk)
    tool = {"name": "look", "description": "", "parameters": {"type": "object", "properties": {}}}

    def begun(*lines: ClientMessage) -> Dialog:
        run = conversations.begin(key, ChatRequest(model=agent, messages=lines, tools=[tool]))
        drive(run.dialog_id)
        return Dialog.objects.get(pk=run.dialog_id)

    asked = ClientMessage("user", "How is the weather on the sea, where we are to sail with all of the forty barrels?")
    first = begun(asked)
    calls = tuple(Call(**made) for made in first.turns.get(role=Turn.Role.ASSISTANT).tool_calls or ())
    result = ClientMessage("tool", "30 degrees", call_id=calls[0].id)
    so_far = (asked, ClientMessage("assistant", "Let me look.", calls), result)
    begun(*so_far)
    last = begun(*so_far, ClientMessage("user", ASKED))
    assert (last.pk, Dialog.objects.count()) == (first.pk, 1)
    assert texts_in(last)[-3:] == ["It is warm.", ASKED, SUMMED]
    other = begun(*so_far)
    assert other.pk != first.pk, "another answer to the result"
