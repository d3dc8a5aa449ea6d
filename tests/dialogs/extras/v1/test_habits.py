"""Habits of programs, each by its name: however one tells its history, it stays one dialog."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from dialogs.extras.v1 import conversations, runs
from dialogs.extras.v1.parsing import chat_request
from dialogs.models import ApiKey, Dialog, Turn
from dialogs.runtime.driver import drive
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory

pytestmark = pytest.mark.django_db(transaction=True)

Message = dict[str, Any]
PORT = {"type": "object", "properties": {"name": {"type": "string"}, "depth": {"type": "integer"}}}
BASH = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def tool(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


class Program:
    def __init__(self, key: ApiKey, **fields: Any) -> None:
        self.key, self.agent, self.fields = key, str(AgentFactory.create().pk), fields
        self.dialogs: list[Any] = []

    def ask(self, messages: list[Message], **fields: Any) -> Message:
        """Return the answer as the official client gives it back."""
        request = chat_request({"model": self.agent, "messages": messages, **self.fields, **fields})
        run = conversations.begin(self.key, request)
        drive(run.dialog_id)
        answer = Turn.objects.filter(dialog=run.dialog_id, role=Turn.Role.ASSISTANT).latest("seq")
        runs.note_answer(run, answer.text)
        self.dialogs.append(run.dialog_id)
        calls = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in answer.tool_calls or ()
        ]
        return {"role": "assistant", "content": answer.text or None, **({"tool_calls": calls} if calls else {})}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def is_called(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


@dataclass
class Port:
    """A value as a program holds it: with fields in its own order, and one that the model left out."""

    depth: float
    name: str
    berths: list[str] | None = None


TELLINGS: dict[str, Callable[[dict[str, Any]], str]] = {
    "compact": lambda value: json.dumps(value, separators=(",", ":")),
    "in its own order": lambda value: json.dumps(asdict(Port(**value)), indent=2),
    "as it is printed": lambda value: repr(Port(**value)),
    "in words": lambda value: f"{value['name']} is {value['depth']} metres deep.",
}


@pytest.mark.parametrize("asked", ["by a tool", "in words"])
@pytest.mark.parametrize("tell", TELLINGS.values(), ids=TELLINGS)
def test_instructor_tells_a_value_as_text(
    key: ApiKey, script: Script, tell: Callable[[dict[str, Any]], str], asked: str
) -> None:
    """Of two dialogs that begin alike, each goes on with its own value."""
    chosen = {"type": "function", "function": {"name": "Port"}}
    by_tool = {"tools": [tool("Port", PORT)], "tool_choice": chosen}
    program = Program(key, **(by_tool if asked == "by a tool" else {}))
    ports = [{"name": "Porto Antico", "depth": 15}, {"name": "Prà", "depth": 15}]
    talks: list[list[Message]] = [[user("How deep is it?")], [user("How deep is it?")]]
    for question in ("", "And that one?", "And the other?"):
        for port, messages in zip(ports, talks, strict=True):
            fenced = f"Here it is:\n```json\n{json.dumps(port, indent=1)}\n```"
            script(is_called("Port", **port) if asked == "by a tool" else {"text": fenced})
            if question:
                messages.extend([{"role": "assistant", "content": tell(port)}, user(question)])
            program.ask(messages)
    begun = program.dialogs[:2]
    assert begun[0] != begun[1]
    assert program.dialogs == begun * 3


def test_instructor_asks_again_for_a_value_that_does_not_hold(key: ApiKey, script: Script) -> None:
    script(
        {"match": "Validation", **is_called("Port", name="Genua", depth=15)},
        is_called("Port", name="genua", depth=-15),
    )
    chosen = {"type": "function", "function": {"name": "Port"}}
    program = Program(key, tools=[tool("Port", PORT)], tool_choice=chosen)
    messages = [user("The harbour of Genua is fifteen metres deep.")]
    answer = program.ask(messages)
    messages.append(answer)
    for call in answer["tool_calls"]:
        failed = "Validation Error found:\n1 validation error for Port\nRecall the function correctly"
        messages.append({"role": "tool", "tool_call_id": call["id"], "name": "Port", "content": failed})
    answer = program.ask(messages)
    assert json.loads(answer["tool_calls"][0]["function"]["arguments"]) == {"name": "Genua", "depth": 15}
    assert len(set(program.dialogs)) == 1


SUMMARY_PROMPT = (
    "<role>\nContext Extraction Assistant\n</role>\n\n<primary_objective>\nYour sole objective in this task is to "
    "extract the highest quality/most relevant context from the conversation history below.\n</primary_objective>\n\n"
    "<instructions>\nThe conversation history below will be replaced with the context you extract in this step."
    "\n</instructions>\n\n<messages>\nMessages to summarize:\n{messages}\n</messages>"
)
SUMMED = "The harbour of Genua is fifteen metres deep, that of Trieste seventeen, and Rijeka comes next in the list."


@pytest.mark.parametrize(("with_tools", "kept"), [(False, 3), (False, 2), (True, 5), (True, 4), (True, 2)])
def test_langchains_middleware_puts_a_summary_before_the_newest_messages(
    key: ApiKey, script: Script, with_tools: bool, kept: int
) -> None:
    """What it keeps begins with an exchange, or in the middle of one."""
    steps = [{"match": "Context Extraction Assistant", "text": SUMMED}]
    if with_tools:
        steps.append({"match": "metres", "text": "Noted in the list of harbours."})
        steps.append(is_called("sound_depth", port="next"))
    script(*steps, {"text": "It is answered here: {{last_user}}."})
    program = Program(key, tools=[tool("sound_depth", PORT)])
    system = {"role": "system", "content": "You keep a list of harbours."}
    messages: list[Message] = []
    for number, town in enumerate(["Genua", "Trieste", "Rijeka", "Venezia", "Ancona"]):
        messages.append(user(f"How deep is the harbour of {town}, and what may enter it?"))
        if number > 2:
            told = "\n".join(
                f"{one['role'].title()}: {one['content'] or one['tool_calls']}" for one in messages[:-kept]
            )
            aside = program.ask([user(SUMMARY_PROMPT.format(messages=told))], tools=[])
            assert Dialog.objects.get(pk=program.dialogs.pop()).origin == Dialog.Origin.BACKGROUND
            messages[:-kept] = [user(f"Here is a summary of the conversation to date:\n\n{aside['content']}")]
        answer = program.ask([system, *messages])
        messages.append(answer)
        for call in answer.get("tool_calls", ()):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": "15 metres"})
        if "tool_calls" in answer:
            messages.append(program.ask([system, *messages]))
    assert len(set(program.dialogs)) == 1


@pytest.mark.parametrize("with_tools", [True, False])
def test_langchains_middleware_sums_up_short_talk(key: ApiKey, script: Script, with_tools: bool) -> None:
    """Before any model call, also between a call and its result's answer; what it keeps may be a few words."""
    look = {"match": r"^Task \d+$", "text": "I begin.", **is_called("sound_depth", port="next")}
    script({"match": "Context Extraction", "text": SUMMED}, *([look] if with_tools else []), {"text": "Done."})
    program = Program(key, tools=[tool("sound_depth", PORT)])
    messages: list[Message] = []

    def ask() -> Message:
        if len(messages) > 20:
            kept = 6 if messages[-6]["role"] != "tool" else 7
            told = "\n".join(f"{one['role']}: {one['content']} {one.get('tool_calls', '')}" for one in messages[:-kept])
            summary = program.ask([user(SUMMARY_PROMPT.format(messages=told))], tools=[])["content"]
            assert Dialog.objects.get(pk=program.dialogs.pop()).origin == Dialog.Origin.BACKGROUND
            messages[:-kept] = [user(f"Here is a summary of the conversation to date:\n\n{summary}")]
        messages.append(program.ask(messages))
        return messages[-1]

    for number in range(14):
        messages.append(user(f"Task {number}"))
        for call in ask().get("tool_calls", ()):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": "15 metres"})
            ask()
    (dialog_id,) = set(program.dialogs)
    assert Turn.objects.filter(dialog=dialog_id, role=Turn.Role.USER).count() == 14


def test_crewai_tells_its_newest_message_in_a_frame_and_later_without(key: ApiKey, script: Script) -> None:
    """Of what was answered it keeps the end alone, behind the calls of tools."""
    script(
        {"match": "metres", "text": "All of it stands in the list of harbours now, with what may enter there."},
        {"text": "I look for it in the pilot's book.", **is_called("sound_depth", port="next")},
    )
    program = Program(key, tools=[tool("sound_depth", PORT)])
    messages: list[Message] = [{"role": "system", "content": "You keep a list of harbours."}]
    for town in ("Genua", "Trieste", "Rijeka"):
        task = f"How deep is the harbour of {town}, and what may enter it?"
        framed = [*messages, user(f"\nCurrent Task: {task}")]
        answer = program.ask(framed)
        result = {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "15 metres"}
        messages += [user(task), program.ask([*framed, answer, result])]
    assert len(set(program.dialogs)) == 1


TASK = "Please solve this issue: the harbour's depth is printed in feet where the chart has it in metres. Mend it."
NO_CALL = "Tool call error: no tool calls found in the response. Every response must include at least one tool call."


def test_mini_swe_agent_runs_bash_by_text_and_by_a_tool(key: ApiKey, script: Script) -> None:
    script(
        {"match": "returncode.*0", "text": "THOUGHT: It is printed here.\n\n```bash\nsed -n 1,9p depth.py\n```"},
        {"text": "THOUGHT: I look where it is printed.\n\n```bash\ngrep -rn feet .\n```"},
    )
    program = Program(key)
    messages = [{"role": "system", "content": "You are a helpful assistant."}, user(TASK)]
    for number in range(4):
        messages.append(program.ask(messages))
        messages.append(user(f"<returncode>{number}</returncode>\n<output>\nline {number}\n</output>"))
    assert len(set(program.dialogs)) == 1


@pytest.mark.parametrize("step", [0, 1])
def test_mini_swe_agent_leaves_out_an_answer_without_a_call(key: ApiKey, script: Script, step: int) -> None:
    """Its next request has what was wrong in the place of that answer."""
    script(
        {"match": "no tool calls found", **is_called("bash", command="ls")},
        *([is_called("bash", command="pwd")] if step else []),
        {"text": "I would look into the directory first, and then at the file that prints the depth."},
    )
    if step:
        script(
            {"match": "no tool calls found", **is_called("bash", command="ls")},
            {"match": "returncode", "text": "I would look into the directory first, then at what prints the depth."},
            {"text": "Let me see where I am in the tree of files.", **is_called("bash", command="pwd")},
        )
    program = Program(key, tools=[tool("bash", BASH)])
    messages = [{"role": "system", "content": "You are a helpful assistant."}, user(TASK)]
    if step:
        messages.append(program.ask(messages))
        call = messages[-1]["tool_calls"][0]
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": "<returncode>0</returncode>"})
    program.ask(messages)
    messages.append(user(NO_CALL))
    answer = program.ask(messages)
    assert answer["tool_calls"][0]["function"]["name"] == "bash"
    messages += [answer, {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "depth.py"}]
    program.ask(messages)
    assert len(set(program.dialogs)) == 1
    assert Dialog.objects.count() == 1


@pytest.mark.parametrize("together", [False, True], ids=["by OpenAI's API", "by Anthropic's"])
def test_mini_swe_agent_takes_one_task_after_another(key: ApiKey, script: Script, together: bool) -> None:
    """Where it gives up on one, two answers are left out at once. LiteLLM makes one message of the user's for
    Anthropic's API."""
    script(
        {"match": "solve", **is_called("bash", command="ls")},
        {"text": "It is done, and there is nothing left to do."},
    )
    program = Program(key, tools=[tool("bash", BASH)])
    messages = [{"role": "system", "content": "You are a helpful assistant."}]

    def ask() -> Message:
        sent: list[Message] = []
        for message in messages:
            if together and message["role"] == "user" and sent[-1]["role"] == "user":
                sent[-1] = user(f"{sent[-1]['content']}\n\n{message['content']}")
            else:
                sent.append(message)
        return program.ask(sent)

    for number in range(3):
        messages.append(user(f"{TASK} {number}"))
        answer = ask()
        messages.append(answer)
        messages.append({"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "depth.py"})
        ask()
        messages.append(user(NO_CALL))
        ask()
        messages.append(user(NO_CALL))
    assert len(set(program.dialogs)) == 1


def test_a_page_may_frame_the_words_of_a_short_talk(key: ApiKey, script: Script) -> None:
    """It tells the words alone later. One exchange of two words may be of any talk, several in order are of one."""
    script({"text": "Ok."})
    program = Program(key)
    messages: list[Message] = []
    for number, text in enumerate(["Hi", "Yes", "Ok", "Yes"]):
        found = user(f"<context>Page {number} of the log</context>\n{text}")
        answer = program.ask([*messages, found])
        messages += [user(text), answer]
    assert len(set(program.dialogs[1:])) == 1
    assert program.dialogs[0] != program.dialogs[1]
