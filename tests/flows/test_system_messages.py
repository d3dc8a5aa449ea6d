"""System messages that programs say in the middle of a conversation: each request reaches its model
as it would without us."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from dialogs.accounts.api_keys import create_key, key_of
from dialogs.extras.v1 import chat, conversations, runs
from dialogs.extras.v1.messages import request as messages
from dialogs.extras.v1.responses import request as responses
from dialogs.extras.v1.responses.stored import Place
from dialogs.extras.v1.wire import Sent
from dialogs.models import Dialog, Turn
from dialogs.queries.sent_requests import sent_request
from dialogs.runtime import repeats
from dialogs.runtime.driver import drive
from tests.dialogs.factories import AgentFactory, UserFactory
from tests.doubles.brains import Prompt, Reply
from tests.doubles.local_servers import LMStudioDouble, VLLMDouble
from tests.doubles.serving import Double
from tests.flows.conftest import Minds
from tests.flows.doubled import name_server, start

pytestmark = pytest.mark.django_db(transaction=True)

Messages = list[dict[str, Any]]
READERS = {"chat/completions": chat.read, "responses": responses.read, "messages": messages.read}
SPEAK_LATIN = "Speak Latin."


def brain(prompt: Prompt) -> Reply:
    asked = [message.text for message in prompt.messages if message.role == "user"][-1]
    return Reply(f"On {asked[:40]}: that is noted in the log of this voyage.", reasoning="Let me see.")


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


class Program:
    """Speaks one protocol: with us, and with the model's server itself."""

    def __init__(self, protocol: str, double: Double, provider: str = "double", **agent: Any) -> None:
        self.protocol, self.double = protocol, double
        key = key_of(create_key(UserFactory.create()))
        assert key is not None
        self.key = key
        about = {"proxy": True, "instructions": "", "context_policy": "retention", **agent}
        self.agent = AgentFactory.create(provider=provider, model=double.model, **about)
        self.dialogs: list[Dialog] = []
        self.response = ""  # the id of the newest

    @property
    def dialog(self) -> Dialog:
        assert len({dialog.pk for dialog in self.dialogs}) == 1, "one conversation"
        dialog: Dialog = Dialog.objects.get(pk=self.dialogs[-1].pk)
        return dialog

    def ask(self, message: Messages, **fields: Any) -> str:
        sent = Sent(self.body(self.agent.pk, message, **fields), "", "", self.key)
        run = conversations.begin(self.key, READERS[self.protocol](sent).request)
        drive(run.dialog_id)
        dialog = Dialog.objects.get(pk=run.dialog_id)
        assert dialog.failure == ""
        self.dialogs.append(dialog)
        self.response = Place.of_run(run).id("resp")
        answer = str(dialog.turns.filter(role=Turn.Role.ASSISTANT).latest("seq").text)
        runs.note_answer(run, answer)
        return answer

    def ask_itself(self, message: Messages) -> str:
        path = f"{self.double.url}/v1/{self.protocol}"
        headers = {"x-api-key": "k", "Authorization": "Bearer k", "anthropic-version": "2023-06-01"}
        answer = httpx2.post(path, json=self.body(self.double.model, message), headers=headers, timeout=30)
        assert answer.status_code == 200, answer.text
        return str(brain(self.double.requests[-1].prompt).text)  # type: ignore[arg-type]

    def body(self, model: str, message: Messages, **fields: Any) -> dict[str, Any]:
        match self.protocol:
            case "chat/completions":
                return {"model": model, "messages": message, **fields}
            case "responses":
                return {"model": model, "instructions": SPEAK_LATIN, "input": message, "store": False, **fields}
            case _:
                return {"model": model, "max_tokens": 1000, "system": SPEAK_LATIN, "messages": message, **fields}

    def arrived(self, ask: Callable[[Messages], str], texts: list[Messages]) -> list[list[tuple[str, str]]]:
        """The requests that reached the model while a whole history went along with each turn."""
        before, message = len(self.double.bodies), Messages()
        for new in texts:
            message += new
            message.append({"role": "assistant", "content": ask(list(message))})
        return [plain(body) for body in self.double.bodies[before:]]


def plain(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Who says what, in any protocol; without reasoning, which we hold and the program does not."""
    first = "".join(block["text"] for block in body.get("system") or () if isinstance(block, dict))
    first = first or (body["system"] if isinstance(body.get("system"), str) else body.get("instructions", ""))
    messages = [*([system(first)] if first else []), *(body.get("input") or body["messages"])]
    return [(text["role"], _text(text["content"])) for text in messages if text.get("type") != "reasoning"]


def _text(content: Any) -> str:
    blocks = [{"text": content}] if isinstance(content, str) else content
    return "\n\n".join(block["text"] for block in blocks if "thinking" not in block.get("type", ""))


CHAT: list[Messages] = [
    [system(SPEAK_LATIN), user("Hi")],
    [system("Rhyme from now on."), user("Go on")],
    [user("And now?"), system("In one word.")],
    [user("Well?")],
]
RESPONSES: list[Messages] = [
    [user("Hi")],
    [{"role": "developer", "content": "Rhyme from now on."}, user("Go on")],
    [user("And now?"), {"role": "developer", "content": "In one word."}],
    [user("Well?")],
]
MESSAGES: list[Messages] = [
    [user("Hi")],
    [user("Go on"), system("Rhyme from now on.")],
    [user("And now?"), system("In one word.")],
    [user("Well?")],
]
DIALECTS = {"responses": "openai/gpt-5.6-terra", "messages": "anthropic/claude-opus-5-5"}


def of_dialect(protocol: str, minds: Minds, monkeypatch: Any) -> tuple[Double, str]:
    """A double that speaks this protocol, and the provider's name."""
    if protocol == "chat/completions":
        return VLLMDouble(brain, model="local", window=8_000), "double"
    double = start(DIALECTS[protocol], brain)
    return double, DIALECTS[protocol].split("/")[0]


@pytest.mark.parametrize(
    ("protocol", "requests"), [("chat/completions", CHAT), ("responses", RESPONSES), ("messages", MESSAGES)]
)
def test_a_request_equals_the_one_that_its_model_would_get_directly(
    minds: Minds, monkeypatch: pytest.MonkeyPatch, protocol: str, requests: list[Messages]
) -> None:
    double, provider = of_dialect(protocol, minds, monkeypatch)
    with double:
        if provider == "double":
            minds.serve(double, "vllm")
        else:
            name_server(double, minds, monkeypatch, DIALECTS[protocol])
        program = Program(protocol, double, provider)
        directly = program.arrived(program.ask_itself, requests)
        assert program.arrived(program.ask, requests) == directly
        assert sum("Rhyme" in text for _, text in directly[-1]) == 1
        assert program.dialog.context_epoch == 0, "what was sent before stands as it stood"
        shown = sent_request(program.dialog.generations.latest("pk")).pieces
        assert [piece.text for piece in shown if piece.label == "System message"] == [
            "Rhyme from now on.",
            "In one word.",
        ]
        assert double.refusals == []


def test_what_moves_or_goes_moves_and_goes(minds: Minds) -> None:
    """A note that a program keeps two messages before the end, as it does with each request;
    and a conversation that it cut."""
    with VLLMDouble(brain, model="local", window=8_000) as double:
        minds.serve(double, "vllm")
        program = Program("chat/completions", double)
        message: Messages = []
        for number in range(4):
            message.append(user(f"Message {number} of this long conversation"))
            sent = [*message[:-1], system(f"It is {number} o'clock, and the harbour is calm."), message[-1]]
            message.append({"role": "assistant", "content": program.ask(sent)})
            assert plain(double.bodies[-1]) == plain({"messages": sent})
        assert len(program.dialog.client.system_messages or ()) == 1, "storage grows by what is new"
        assert program.dialog.context_epoch == 3
        assert plain(double.bodies[-1])[0][0] == "user"
        program.ask([*message, user("Without the note")])
        assert "system" not in [role for role, _ in plain(double.bodies[-1])]
        assert program.dialog.client.system_messages is None


def test_a_stored_response_brings_the_system_messages_before_it_along(
    minds: Minds, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = DIALECTS["responses"]
    with start(name, brain) as double:
        name_server(double, minds, monkeypatch, name)
        program = Program("responses", double, "openai")
        directly = program.arrived(program.ask_itself, RESPONSES)
        ids: list[str] = []
        for new in RESPONSES:
            program.ask(new, previous_response_id=ids[-1] if ids else None)
            ids.append(program.response)
        assert [plain(body) for body in double.bodies[-4:]] == directly
        origin = program.dialog
        program.ask([user("Another thing")], previous_response_id=ids[1])  # from an older place
        assert program.dialogs[-1].pk != origin.pk
        assert plain(double.bodies[-1])[:-1] == directly[2][:6]
        assert double.refusals == []


def test_in_other_protocols_it_stands_in_the_next_place(minds: Minds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anthropic takes them between a user's turn and an answer: what was said before that turn waits for its end."""
    name = DIALECTS["messages"]
    with start(name, brain) as double:
        name_server(double, minds, monkeypatch, name)
        program = Program("chat/completions", double, "anthropic")
        program.arrived(program.ask, CHAT)
        assert (
            [role for role, _ in plain(double.bodies[-1])]
            == """
            system user assistant user system assistant user system assistant user
            """.split()
        )
        assert double.refusals == []
        assert program.dialog.context_epoch == 0


def test_a_model_that_takes_none_gets_them_as_the_users(minds: Minds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_without_system", set())
    with LMStudioDouble(brain, model="studio", window=8_000) as double:
        minds.serve(double, "lmstudio")
        program = Program("chat/completions", double)
        program.arrived(program.ask, CHAT)
        assert [refusal.rule for refusal in double.refusals if refusal.rule != "path"] == ["late system"], "once"
        assert plain(double.bodies[-1])[3] == ("user", "<system>\nRhyme from now on.\n</system>")
        assert program.dialog.generations.filter(outcome="failed").count() == 1


def test_no_rewrite_drops_one(minds: Minds) -> None:
    long = "the harbour of this town has boats and cranes, and the master counts them. " * 25
    rule = "Never name the harbour master."
    texts = [[user(f"Note {number}: {long}")] for number in range(14)]
    texts[1].append(system(rule))
    with VLLMDouble(brain, model="local", window=6_000) as double:
        minds.serve(double, "vllm")
        program = Program("chat/completions", double)
        program.arrived(program.ask, texts)
        assert program.dialog.remediations.exists()
        message = plain(double.bodies[-1])
        assert [text for role, text in message if role == "system"] == [rule]
        assert 0 < message.index(("system", rule)) < len(message) - 1, "behind what stands for the messages before it"
        assert {refusal.rule for refusal in double.refusals} <= {"no room"}, (
            "a summary is asked for again with less output"
        )
