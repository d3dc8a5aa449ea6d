"""``evaluate --window`` tells what the product does: talks are played through the driver and simulated, and the same
facts stay in sight."""

from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from dominds.llm.messages import Message, Role
from remediation.budget import RECALL_SHARE
from remediation.evaluation.dialogs import Dialog, Turn, question_unit
from remediation.evaluation.policies import POLICIES, toolbox_of
from remediation.evaluation.simulation import Recalling, Setup, Simulation
from remediation.similarity.embeddings import LexicalEmbedder
from remediation.tokens.counting import counter_for
from tests.doubles.brains import Prompt, Reply
from tests.flows.conftest import MODEL, Serve, dialog_with, say
from tests.quality.facts import Fact, in_sight, load_dialogs

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

COUNTER = counter_for(MODEL)
QUESTION = "Where are we, and what is left to do?"
AT_ONCE = 3  # dialogs that make one talk, of some 4,000 tokens together
Exchange = tuple[str, str]


@pytest.fixture(autouse=True)
def _requests_made_again() -> None:
    """Hundreds of requests are not made again here; all other flows are."""


def exchanges_of(said: Sequence[tuple[str, str]]) -> Iterator[Exchange]:
    """Join what one speaker says in a row, since the driver answers each message once."""
    asked: list[str] = []
    answered: list[str] = []
    for role, text in said:
        if role == "user" and answered:
            yield "\n".join(asked), "\n".join(answered)
            asked, answered = [], []
        (asked if role == "user" else answered).append(text)
    if asked and answered:
        yield "\n".join(asked), "\n".join(answered)


def talks() -> Iterator[tuple[list[Exchange], list[Fact]]]:
    """What people and agents say to each other in our dialogs, without tools, with the facts that it tells."""
    dialogs = load_dialogs()
    for start in range(0, len(dialogs), AT_ONCE):
        chosen = dialogs[start : start + AT_ONCE]
        said = [
            (one["role"], one["content"])
            for dialog in chosen
            for one in dialog.messages
            if one["role"] in ("user", "assistant") and (one.get("content") or "").strip()
        ]
        text = "\n".join(words for _, words in said)
        yield list(exchanges_of(said)), [fact for each in chosen for fact in each.facts if in_sight(fact, text)]


def played(serve: Serve, exchanges: Sequence[Exchange], policy: str, window: int) -> tuple[str, int]:
    """Return the request that asks the question, and the tokens that stand in each request beside messages."""
    server = serve(window=window, api_type="lmstudio", refuses="too long")
    dialog = dialog_with(server, recall=True, context_policy=policy)
    requests: list[str] = []
    frame = 0
    for message, answer in (*exchanges, (QUESTION, "Nothing.")):
        server.brain = partial(_answer, requests, answer)
        say(dialog, message)
        assert dialog.state == "idle"
        frame = frame or (dialog.prompt_tokens or 0) - COUNTER.count(message)
    return requests[-1], frame


def _answer(requests: list[str], answer: str, prompt: Prompt) -> Reply:
    if not prompt.tools:  # a call beside the conversation, without an answer
        return Reply()
    requests.append("\n".join(message.text for message in prompt.messages))
    return Reply(answer)


def simulated(exchanges: Sequence[Exchange], policy: str, window: int, frame: int) -> str:
    turns = [
        Turn(f"{number}-{role}", role, Message(role, text), text)
        for number, pair in enumerate(exchanges)
        for role, text in zip((Role.USER, Role.ASSISTANT), pair, strict=True)
    ]
    dialog = Dialog("talk", "talk", tuple(turns), instructions="so " * frame)
    toolbox = toolbox_of(COUNTER, LexicalEmbedder())
    setup = Setup(POLICIES[policy], window, Recalling(RECALL_SHARE), COUNTER, toolbox, window=window)
    simulation = Simulation(dialog, setup)
    for _ in simulation.steps():
        pass
    question = question_unit(QUESTION, len(turns) + 1, COUNTER.count_messages)
    return simulation.request(simulation.entered(question)).text("")


@pytest.mark.parametrize("policy", ["retention", "autocompaction"])
def test_as_many_facts_stay_in_sight_as_evaluated(serve: Serve, policy: str) -> None:
    kept = expected = due = left_out = 0
    for exchanges, facts in talks():
        for window in (2_600, 3_400):
            request, frame = played(serve, exchanges, policy, window)
            simulation = simulated(exchanges, policy, window, frame)
            if abs(len(request) - len(simulation)) > len(request) / 5:
                left_out += 1  # a few tokens decided that only one of them was rewritten for the question itself
                continue
            kept += sum(in_sight(fact, request) for fact in facts)
            expected += sum(in_sight(fact, simulation) for fact in facts)
            due += len(facts)
    assert left_out <= 2
    assert abs(kept - expected) <= due * 0.05, f"{kept} played and {expected} simulated of {due}"
