"""A running Dominds in front of strict model servers, and a worker for a model:
it does what it is told with the client's tools."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from dialogs.accounts.api_keys import create_key
from tests.dialogs.factories import UserFactory
from tests.doubles.brains import Call, Prompt, Reply
from tests.doubles.local_servers import VLLMDouble
from tests.doubles.messages import MessagesDouble
from tests.doubles.responses import ResponsesDouble
from tests.doubles.serving import Answer, Double, Exchange
from tests.harness.services import start_postgres
from tests.harness.stack import Stack, running

CODER, CLAUDE, LOCAL = "coder", "claude-opus-5-5", "local"

TASK, CALL, MADE = re.compile(r"Task (\d+)"), re.compile(r"Call (\w+) (\{.*\})"), re.compile(r"made-(\d+)")
WORD = re.compile(r"[a-z]+")
JOKE = {"type": "object", "properties": {"setup": {"type": "string"}, "punchline": {"type": "string"}}}
FILES_TO_EDIT = "added these files to the chat"  # aider
PAIR, COMPACT = re.compile(r"Pair (\d+)"), "CHECKPOINT COMPACTION"  # Codex
HALF = (
    "Of pair {} the first half is made, by a command that wrote a line into a file here; what is left is the "
    "second half, by another."
)
SUMMARISE = "Messages to summarize:"  # LangChain
FINAL = "final_answer"  # smolagents
FLAWED = "at the second try"  # asked for so, a task's first command fails
WITH_PROGRAMS = "gpt-6-luna"  # a model that Codex knows: its tools are called from programs that the model writes
WINDOW = 1_000_000
SMALL, SMALL_WINDOW = "small", 16_384
FULL = 60_000  # tokens
PASSED_ON = frozenset(
    """
    authorization x-api-key x-goog-api-key accept anthropic-version anthropic-beta x-stainless-helper-method
    """.split()
)


def worker(prompt: Prompt) -> Reply:
    """Runs a command for each task, or the tool that it is told by name, and says what came of it.
    Where a form is asked for, it is filled in at last."""
    if SUMMARISE in prompt.last.text:
        return _summary(prompt)
    task = next(
        (TASK.findall(answer.text)[-1] for answer in reversed(prompt.messages) if TASK.search(answer.text)), "3"
    )
    if any(FILES_TO_EDIT in answer.text for answer in prompt.messages):
        return Reply(_edited(int(task)))
    is_told_to_call = prompt.required_tools or (prompt.last.role == "user" and _shell(prompt, ""))
    if (schema := _schema_asked(prompt)) and not is_told_to_call:
        return Reply(json.dumps(_filled(schema, int(task))))
    if pairs := [pair for answer in prompt.messages if answer.role == "user" for pair in PAIR.findall(answer.text)]:
        return _half_of_pair(prompt, pairs[-1])
    if FINAL in prompt.tools:
        return _with_final_answer(prompt, int(task))
    if name := next((name for name in prompt.required_tools or prompt.tools if _is_wanted(name, prompt)), ""):
        return Reply(calls=(Call(name, _filled(_parameters(prompt, name), int(task))),))
    for message in reversed(prompt.messages):
        if message.role == "tool":
            made = MADE.search(message.text)
            return Reply(f"Task {made[1]} is done." if made else f"It says: {message.text[:200]}")
        if message.role == "user" and (named := CALL.search(message.text)):
            return Reply("I use it.", calls=(Call(named[1], json.loads(named[2])),))
        if message.role == "user" and (tasks := TASK.findall(message.text)):
            if call := _shell(prompt, f"echo made-{tasks[-1]} | tee -a made.txt"):
                return Reply(f"I begin task {tasks[-1]}.", calls=(call,))
            return Reply(f"There is no tool for task {tasks[-1]}.")
    return Reply("I see.")


def forgetful_worker(prompt: Prompt) -> Reply:
    """The same, which sums up when it has no tools."""
    return worker(prompt) if prompt.tools else _summary(prompt)


def _summary(prompt: Prompt) -> Reply:
    done = [number for answer in prompt.messages for number in TASK.findall(answer.text)]
    newest = max(map(int, done), default=0)
    goal = "Do one task after another, as they are named, each by one call of the tool that runs commands."
    return Reply(f"## Goal\n{goal}\n\n## Done\nAll up to task {newest}.")


def _half_of_pair(prompt: Prompt, pair: str) -> Reply:
    """A task of two commands, after the first of which the context is reported as full."""
    if COMPACT in prompt.last.text:
        return Reply(HALF.format(pair))
    made = {
        half
        for answer in prompt.messages
        if answer.role == "tool"
        for half in re.findall(rf"made-{pair}([ab])", answer.text)
    }
    if "b" in made:
        return Reply(f"Pair {pair} is done.")
    half = "b" if "a" in made or any(HALF.format(pair) in answer.text for answer in prompt.messages) else "a"
    call = _shell(prompt, f"echo made-{pair}{half} | tee -a made.txt")
    assert call is not None
    return Reply("I begin.", calls=(call,), usage=(FULL, 20) if half == "a" else None)


def _with_final_answer(prompt: Prompt, task: int) -> Reply:
    """An answer, too, is a call; a result comes as the user's message."""
    made = MADE.search(prompt.last.text) if "Observation:" in prompt.last.text else None
    if made and int(made[1]) == task:
        return Reply(calls=(Call(FINAL, {"answer": f"Task {task} is done."}),))
    is_flawed = FLAWED in prompt.last.text and "Error" not in prompt.last.text
    call = _shell(prompt, "false" if is_flawed else f"echo made-{task} | tee -a made.txt")
    return Reply(calls=(call,) if call else ())


def _edited(task: int) -> str:
    """The whole file as it is after a task, as aider reads it."""
    lines = "".join(f"made-{number}\n" for number in range(task + 1))
    return f"Task {task} is done.\n\nmade.txt\n```\n{lines}```"


def _schema_asked(prompt: Prompt) -> Any:
    body = prompt.body
    form = body.get("response_format") or (body.get("text") or body.get("output_config") or {}).get("format") or {}
    return (form.get("json_schema") or form).get("schema") or (JOKE if form.get("type") == "json_object" else None)


def _is_wanted(name: str, prompt: Prompt) -> bool:
    """Whether a tool must be called, or the user speaks of what it is for, and names none, and there is no shell."""
    words = set(name.lower().split("_")) - {"get", "run"}
    return bool(prompt.required_tools) or (
        prompt.last.role == "user"
        and not _shell(prompt, "")
        and not CALL.search(prompt.last.text)
        and bool(words & set(WORD.findall(prompt.last.text)))
    )


def _parameters(prompt: Prompt, name: str) -> Any:
    tools = [tool.get("function") or tool for tool in prompt.body["tools"]]
    return next(
        (tool.get("parameters") or tool.get("input_schema") for tool in tools if tool.get("name") == name), None
    )


def _filled(schema: Any, number: int = 3) -> Any:
    """A value of this form: what is required. What is no form, or an odd one, asks for nothing."""
    match schema:
        case {"enum": [first, *_]}:
            return first
        case {"const": value}:
            return value
        case {"anyOf": [first, *_]} | {"oneOf": [first, *_]}:
            return _filled(first, number)
        case {"type": [first, *_]}:
            return _filled({**schema, "type": first}, number)
        case {"type": "array"}:
            return [_filled(schema.get("items", {"type": "string"}), number)]
        case {"type": "integer" | "number"}:
            return number
        case {"type": "boolean"}:
            return True
        case {"type": "string"}:
            return "three"
        case {"type": "null"}:
            return None
        case {"properties": dict(fields)}:
            asked = schema.get("required", [])
            names = fields if "required" not in schema or not isinstance(asked, list) else asked
            return {name: _filled(fields.get(name), number) for name in names if isinstance(name, str)}
    return {}


def _shell(prompt: Prompt, command: str) -> Call | None:
    """A call of the client's shell, under the name and in the form that it has there."""
    forms: dict[str, Any] = {
        "exec_command": {"cmd": command},
        "shell_command": {"command": command},
        "shell": {"command": ["bash", "-c", command]},
        "Bash": {"command": command, "description": "Do the task"},
        "bash": {"command": command, "description": "Do the task"},
        "run_shell_command": {"command": command, "is_background": False},
        "run": {"command": command},
        "functions__exec": {"input": f"text((await tools.exec_command({json.dumps({'cmd': command})})).output)"},
    }
    return next((Call(name, forms[name]) for name in forms if name in prompt.tools), None)


@dataclass(frozen=True)
class Answered:
    """A call of ``/v1``, and the status of its answer."""

    exchange: Exchange
    status: int
    answer: str


class Recorder(Double):
    """Stands before a server, and notes what a client asks of it. A request of a path that nobody has is noted, too."""

    def __init__(self, upstream: str) -> None:
        super().__init__(model="")
        self.answered: list[Answered] = []
        self._client = httpx2.Client(base_url=upstream, timeout=120, trust_env=False)

    def answer(self, record: Exchange) -> Answer:
        headers = {name: value for name, value in record.headers.items() if name in PASSED_ON}
        request = self._client.build_request(record.method, record.path, headers=headers, json=record.body)
        response = self._client.send(request, stream=True)
        if response.headers["content-type"].startswith("text/event-stream"):
            return Answer(status=response.status_code, events=self._noted(record, response))
        text = response.read().decode()
        self.answered.append(Answered(record, response.status_code, text))
        return Answer(json.loads(text), response.status_code)

    def _noted(self, record: Exchange, response: Any) -> Iterator[bytes]:
        pieces = []
        try:
            for piece in response.iter_raw():
                pieces.append(piece)
                yield piece
        finally:
            response.close()
            self.answered.append(Answered(record, response.status_code, b"".join(pieces).decode()))

    @property
    def failures(self) -> list[str]:
        """What was refused, or failed in a stream."""
        return [
            f"{one.status} {one.exchange.method} {one.exchange.path}: {one.answer[-600:]}"
            for one in self.answered
            if one.status >= 400 or '"type":"response.failed"' in one.answer or "event: error" in one.answer
        ]


@dataclass(frozen=True)
class Rig:
    stack: Stack
    doubles: dict[str, Double]

    @contextmanager
    def recorded(self) -> Iterator[Recorder]:
        with Recorder(self.stack.base_url) as recorder:
            yield recorder

    def key(self) -> tuple[Any, str]:
        """A person of its own, and a key of theirs."""
        person = UserFactory.create(
            username=f"client-{threading.get_native_id()}-{UserFactory._meta.model.objects.count()}"
        )
        return person, create_key(person)


@contextmanager
def rig() -> Iterator[Rig]:
    """Agents have the names of their models, so that a client is set up alike for the server and for
    what stands before it."""
    made = Stack.on_new_database(
        start_postgres(), "clients", settings={"SOME_KEY": "sk-test", "DOMINDS_MESSAGES_PER_MINUTE": "0"}
    )
    with (
        ResponsesDouble("openai-5.6", worker, model="coder") as gpt,
        MessagesDouble("anthropic-5.5", worker, model="claude-opus-5-5") as claude,
        VLLMDouble(worker, model="local", window=131_072) as local,
        VLLMDouble(forgetful_worker, model=SMALL, window=SMALL_WINDOW) as small,
        running(made) as stack,
    ):
        kinds: dict[str, tuple[str, str, Any]] = {
            "gpt": ("openai", f"{gpt.url}/v1", {gpt.model: {"context_length": WINDOW}}),
            "claude": ("anthropic", claude.url, {claude.model: {"context_length": WINDOW, "output_length": 128_000}}),
            "local": ("vllm", f"{local.url}/v1", {local.model: {}}),
            "small": ("vllm", f"{small.url}/v1", {small.model: {}}),
        }
        providers = {
            name: {"name": name, "apiType": kind, "baseUrl": url, "apiKeyEnvVar": "SOME_KEY", "models": models}
            for name, (kind, url, models) in kinds.items()
        }
        members = {
            model: {"provider": name, "model": model, "proxy": True}
            for name, (_, _, models) in kinds.items()
            for model in models
        }
        members[WITH_PROGRAMS] = members["coder"]
        stack.write_minds(llm={"providers": providers}, team={"members": members})
        yield Rig(stack, {double.model: double for double in (gpt, claude, local, small)})
