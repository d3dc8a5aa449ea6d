"""Clients that send their whole history back, each in its own way: over HTTP, with a worker and a strict model server.

A conversation of twelve turns is one dialog for all of them, with as many model calls as one that names its dialog, and
what was rewritten on the way is not rewritten again.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from dialogs.accounts.api_keys import create_key
from dialogs.models import Dialog, Turn
from remediation.models import RemediationRun
from tests.dialogs.factories import UserFactory
from tests.doubles.brains import Prompt, Reply
from tests.doubles.local_servers import LMStudioDouble
from tests.harness.live import with_agents
from tests.harness.stack import Api, Stack

TURNS = 12
WINDOW = 8_000
MODEL = "qwen3-14b"

Message = dict[str, Any]
Exchange = tuple[str, str]  # what was asked, and what was answered
Shape = Callable[[list[Exchange], str], list[Message]]


def answer(prompt: Prompt) -> Reply:
    """Says something of its own to each message, in about 400 tokens."""
    # What the runtime recalls stands last, for a model to read and not to answer.
    said = [message.text for message in prompt.messages if not message.text.startswith("[Recalled by the runtime")]
    asked = said[-1].strip().splitlines()[-1]
    return Reply(f"On **{asked}**: " + " ".join(f"point {number} of `{asked}` is settled." for number in range(24)))


@dataclass
class Server:
    stack: Stack
    double: LMStudioDouble


@pytest.fixture(scope="module")
def server(shared_stack: Stack, django_db_blocker: Any) -> Iterator[Server]:
    with LMStudioDouble(answer, model=MODEL, window=WINDOW) as double:
        entry = {"apiType": "lmstudio", "baseUrl": f"{double.url}/v1", "models": {MODEL: {"context_length": WINDOW}}}
        member = {"name": "Agent", "provider": "lmstudio", "model": MODEL, "instructions": "Be brief."}
        minds = {"llm": {"providers": {"lmstudio": entry}}, "team": {"members": {"agent": member}}}
        with with_agents(shared_stack, django_db_blocker, **minds) as stack:
            yield Server(stack, double)


# -- shapes ------------------------------------------------------------------------------------------------------------


def as_sent(history: list[Exchange], new: str) -> list[Message]:
    messages: list[Message] = []
    for asked, answered in history:
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    return [*messages, {"role": "user", "content": new}]


def sliding_window(history: list[Exchange], new: str) -> list[Message]:
    return as_sent(history[-3:], new)


def window_that_begins_with_an_answer(history: list[Exchange], new: str) -> list[Message]:
    return as_sent(history, new)[-4:]


def own_summary(history: list[Exchange], new: str) -> list[Message]:
    if len(history) < 5:
        return as_sent(history, new)
    summary = (f"Summary of our {len(history)} exchanges so far: they went well.", "Understood, let us go on.")
    return as_sent([summary, *history[-2:]], new)


def own_summary_as_a_message(history: list[Exchange], new: str) -> list[Message]:
    summary: list[Message] = [{"role": "user", "content": f"[Summary of {len(history)} exchanges]"}]
    return [*(summary if len(history) > 4 else ()), *as_sent(history[-2:], new)]


def retrieval_in_the_last_message(history: list[Exchange], new: str) -> list[Message]:
    result = f"<context>\nDocument {len(history)} says that all is well.\n</context>"
    return as_sent(history, f"Answer with the help of this:\n{result}\n\n{new}")


def trimmed_answers(history: list[Exchange], new: str) -> list[Message]:
    return as_sent([(asked, f"{answered[:300]} [...]") for asked, answered in history], new)


def rewritten_answers(history: list[Exchange], new: str) -> list[Message]:
    plain = [
        (asked, answered.replace("*", "").replace("`", "'").replace("settled", "done")) for asked, answered in history
    ]
    return as_sent(plain, new)


def reasoning_details(history: list[Exchange], new: str) -> list[Message]:
    thought = (
        '<details type="reasoning" done="true" duration="3">\n<summary>Thought for 3 seconds</summary>\n> '
        "Hm.\n</details>\n"
    )
    return as_sent([(asked, thought + answered) for asked, answered in history], new)


def split_user_messages(history: list[Exchange], new: str) -> list[Message]:
    messages = []
    for message in as_sent(history, new):
        parts = message["content"].split(". ", 1) if message["role"] == "user" else [message["content"]]
        messages += [{**message, "content": part} for part in parts]
    return messages


def changing_system_prompt(history: list[Exchange], new: str) -> list[Message]:
    return [{"role": "system", "content": f"It is {time.time_ns()} now."}, *as_sent(history, new)]


def content_parts(history: list[Exchange], new: str) -> list[Message]:
    payload = as_sent(history, new)
    for message in payload[len(payload) % 4 :: 2]:
        message["content"] = [{"type": "text", "text": message["content"]}]
    return payload


def named_speakers(history: list[Exchange], new: str) -> list[Message]:
    """Two people and an agent, as programs for groups tell them."""
    payload = as_sent(history, new)
    for number, message in enumerate(payload):
        message["name"] = ("Ada", "agent", "Ben", "agent")[number % 4]
    return payload


def system_message_before_the_last(history: list[Exchange], new: str) -> list[Message]:
    message = as_sent(history, new)
    return [*message[:-1], {"role": "system", "content": f"It is {time.time_ns()} now."}, message[-1]]


def several_system_messages(history: list[Exchange], new: str) -> list[Message]:
    first = [{"role": "system", "content": text} for text in ("Be brief.", f"{len(history)} exchanges so far.")]
    return [*first, *as_sent(history, new)]


def edits_in_the_middle(history: list[Exchange], new: str) -> list[Message]:
    edited = list(history)
    if len(history) > 4:
        edited[1] = ("Something else was asked here.", history[1][1])
        edited[2] = (history[2][0], "The client made this answer up.")
        del edited[3]
    return as_sent(edited, new)


SHAPES = (
    as_sent,
    sliding_window,
    window_that_begins_with_an_answer,
    own_summary,
    own_summary_as_a_message,
    retrieval_in_the_last_message,
    trimmed_answers,
    rewritten_answers,
    reasoning_details,
    split_user_messages,
    changing_system_prompt,
    content_parts,
    named_speakers,
    system_message_before_the_last,
    several_system_messages,
    edits_in_the_middle,
)


def talk(server: Server, shape: Shape, **named: Any) -> list[str]:
    """Twelve turns with a key of their own; the dialogs that they went to."""
    person = UserFactory.create(username=f"resending-{time.time_ns()}")
    api = Api(server.stack.base_url, create_key(person))
    history: list[Exchange] = []
    dialogs: list[str] = []
    for number in range(TURNS):
        asked = f"This is message {number}. What do you think of it"
        body = {"model": "agent", "messages": shape(history, asked), **(named if dialogs else {})}
        reply = api.post("/v1/chat/completions", json=body).json()
        history.append((asked, reply["choices"][0]["message"]["content"]))
        dialogs.append(reply["metadata"]["dialog_id"])
        if named:
            named["metadata"] = {"dialog_id": dialogs[0]}
    return dialogs


@pytest.fixture(scope="module")
def expected(server: Server) -> tuple[int, int]:
    """Model calls and rewrites of a conversation whose client names its dialog, as the web page does."""
    (dialog_id,) = set(talk(server, lambda history, new: as_sent([], new), metadata={}))
    dialog = Dialog.objects.get(pk=dialog_id)
    return dialog.generations.count(), RemediationRun.objects.filter(dialog=dialog).count()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_conversation_is_one_dialog_however_it_is_resent(
    server: Server, expected: tuple[int, int], shape: Shape
) -> None:
    calls, rewrites = expected
    assert 0 < rewrites < TURNS // 3, "a rewrite happens on the way"
    asked_before = len(server.double.bodies)
    dialogs = talk(server, shape)
    assert len(set(dialogs)) == 1, dialogs
    dialog = Dialog.objects.get(pk=dialogs[0])
    assert Dialog.objects.filter(owner=dialog.owner).count() == 1
    messages = 2 * TURNS if shape is split_user_messages else TURNS
    assert dialog.turns.filter(role=Turn.Role.USER).count() == messages, "what is told again is not stored again"
    assert dialog.turns.filter(role=Turn.Role.ASSISTANT, status=Turn.Status.COMPLETE).count() == TURNS
    more = RemediationRun.objects.filter(dialog=dialog).count() - rewrites
    assert more <= 1, "what a client puts into its messages may fill the window sooner"
    # A model that takes no system message there refuses one request; the worker remembers it.
    refused = shape is system_message_before_the_last
    assert len(server.double.bodies) - asked_before <= calls + 3 * max(more, 0) + refused
