"""Real clients hold ten turns with tools against ``/v1``, and against the model's own server:
what comes of it is the same.

`make clients` runs these; it takes the clients' packages from the registries.
"""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from dialogs.models import Dialog
from tests.clients import programs
from tests.clients.programs import TURNS, Place, Turns
from tests.clients.rig import CLAUDE, CODER, COMPACT, FLAWED, FULL, LOCAL, SMALL, WITH_PROGRAMS, Rig

TASKS = [f"Task {number}" for number in range(TURNS)]
SEARCH = 'Call ToolSearch {"query": "select:CronList", "max_results": 3}'
CLIENTS: dict[str, tuple[Turns, str]] = {
    "codex": (programs.codex, CODER),
    "claude code": (programs.claude_code, CLAUDE),
    "llm": (programs.llm, LOCAL),
    "langgraph": (programs.script("langgraph_agent.py"), LOCAL),
    "pydantic-ai": (programs.script("pydantic_agent.py"), LOCAL),
    "litellm": (programs.script("litellm_chat.py"), LOCAL),
    "agents sdk, chat": (programs.script("openai_agents.py"), LOCAL),
    "agents sdk, responses": (programs.script("openai_agents.py", "responses"), CODER),
    "ai sdk, chat": (programs.script("vercel_ai.mjs"), LOCAL),
    "ai sdk, responses": (programs.script("vercel_ai.mjs", "responses"), CODER),
    "ai sdk, messages": (programs.script("vercel_ai.mjs", "messages"), CLAUDE),
    "openai for python, chat": (programs.script("openai_python.py"), LOCAL),
    "openai for python, responses": (programs.script("openai_python.py", "responses"), CODER),
    "openai for node, chat": (programs.script("openai_node.mjs"), LOCAL),
    "openai for node, responses": (programs.script("openai_node.mjs", "responses"), CODER),
}
CLIENTS |= {
    "smolagents": (programs.script("smolagents_calls.py", python=programs.AGENTS), LOCAL),
    "agno": (programs.script("agno_agent.py", python=programs.AGENTS), LOCAL),
    "autogen": (programs.script("autogen_chat.py", python=programs.AGENTS), LOCAL),
    "opencode": (programs.opencode, LOCAL),
    "qwen code": (programs.qwen_code, LOCAL),
    "pi": (programs.pi, LOCAL),
    "continue": (programs.continue_cli, LOCAL),
    "copilot, chat": (programs.copilot("completions"), LOCAL),
    "copilot, responses": (programs.copilot("responses"), CODER),
    "copilot, messages": (programs.copilot("messages"), CLAUDE),
    "agents sdk for node, chat": (programs.script("openai_agents.mjs"), LOCAL),
    "agents sdk for node, responses": (programs.script("openai_agents.mjs", "responses"), CODER),
    "langchain for node, chat": (programs.script("langchain_agent.mjs"), LOCAL),
    "langchain for node, chat, streamed": (programs.script("langchain_agent.mjs", "chat-streamed"), LOCAL),
    "langchain for node, responses": (programs.script("langchain_agent.mjs", "responses"), CODER),
    "langchain for node, responses, streamed": (programs.script("langchain_agent.mjs", "responses-streamed"), CODER),
    "langchain for node, messages": (programs.script("langchain_agent.mjs", "messages"), CLAUDE),
    "langchain for node, messages, streamed": (programs.script("langchain_agent.mjs", "messages-streamed"), CLAUDE),
    "deepagents": (programs.script("deep_agent.py", python=programs.DEEP), LOCAL),
    "llamaindex": (programs.script("llama_index_agent.py", "100000", python=programs.VALUES), LOCAL),
    "llamaindex, short memory": (programs.script("llama_index_agent.py", "150", python=programs.VALUES), LOCAL),
    "open webui": (programs.script("open_webui.py", python=programs.OPEN_WEBUI), LOCAL),
}
# With the number of model calls a turn: some use their tool before they fill in the form.
FORMS: dict[str, tuple[Turns, str, int]] = {
    "llm": (programs.llm_with_schema, LOCAL, 1),
    "pydantic-ai": (programs.script("pydantic_agent.py", form="on"), LOCAL, 2),
    "agents sdk, chat": (programs.script("openai_agents.py", form="on"), LOCAL, 2),
    "agents sdk, responses": (programs.script("openai_agents.py", "responses", form="on"), CODER, 2),
    "ai sdk, chat": (programs.script("vercel_objects.mjs"), LOCAL, 1),
    "ai sdk, responses": (programs.script("vercel_objects.mjs", "responses"), CODER, 1),
    "ai sdk, messages": (programs.script("vercel_objects.mjs", "messages"), CLAUDE, 1),
}
SEARCHED = [SEARCH, "Call CronList {}", "Task 3"]


def talk(served: Rig, turns: Turns, model: str, texts: list[str], folder: Path) -> tuple[list[str], str, list[Dialog]]:
    """The answers and what the tools wrote, the same here and with the model itself; and the dialogs that are kept.
    What a search for tools says is the protocol's: there alone the answers differ."""
    double = served.doubles[model]
    person, key = served.key()
    before = len(double.refusals)
    with served.recorded() as recorder:
        here = Place(folder / "here", recorder.url, key, model)
        answers = turns(here, texts)
        assert recorder.failures == []
    assert double.refusals[before:] == []
    itself = Place(folder / "itself", double.url, "sk-itself", model)
    same = slice(SEARCH in texts, None)
    assert (answers[same], here.made) == (turns(itself, texts)[same], itself.made)
    kept = Dialog.objects.filter(owner=person).exclude(origin=Dialog.Origin.BACKGROUND)
    return answers, here.made, list(kept.order_by("created_at"))


@pytest.mark.parametrize(("turns", "model"), CLIENTS.values(), ids=CLIENTS)
def test_ten_turns_are_one_dialog(served: Rig, turns: Turns, model: str, tmp_path: Path) -> None:
    answers, made, dialogs = talk(served, turns, model, TASKS, tmp_path)
    assert [re.findall(r"Task \d+ is done", answer) for answer in answers] == [[f"{task} is done"] for task in TASKS]
    assert made == "".join(f"made-{number}\n" for number in range(TURNS))
    (dialog,) = dialogs
    texts = dialog.turns.filter(role="user", status="answered").order_by("position").values_list("text", flat=True)
    assert [task for text in texts for task in re.findall(r"Task \d+\b(?! is done)", text)] == TASKS
    assert "Task 0" in dialog.title
    assert dialog.generations.count() == 2 * TURNS


@pytest.mark.parametrize(("turns", "model", "calls"), FORMS.values(), ids=FORMS)
def test_ten_values_of_a_schema_are_one_dialog(
    served: Rig, turns: Turns, model: str, calls: int, tmp_path: Path
) -> None:
    answers, made, dialogs = talk(served, turns, model, TASKS, tmp_path)
    assert [json.loads(answer) for answer in answers] == [
        {"task": number, "outcome": "three"} for number in range(TURNS)
    ]
    assert made == ("".join(f"made-{number}\n" for number in range(TURNS)) if calls > 1 else "")
    (dialog,) = dialogs
    assert dialog.generations.count() == calls * TURNS


@pytest.mark.parametrize("mode", ["TOOLS", "PARALLEL_TOOLS", "JSON_SCHEMA", "RESPONSES_TOOLS"])
def test_ten_values_by_instructor_are_one_dialog(served: Rig, mode: str, tmp_path: Path) -> None:
    instructor = programs.script("instructor_values.py", mode, python=programs.VALUES)
    texts = [f"{task}, and tell its outcome" for task in TASKS]
    answers, _, dialogs = talk(served, instructor, CODER if mode == "RESPONSES_TOOLS" else LOCAL, texts, tmp_path)
    assert [json.loads(answer)["task"] for answer in answers] == list(range(TURNS))
    (dialog,) = dialogs
    assert dialog.generations.count() == TURNS


@pytest.mark.parametrize(("wire", "model"), [("chat", LOCAL), ("messages", CLAUDE)])
def test_mini_swe_agent_does_ten_tasks_in_one_dialog(served: Rig, wire: str, model: str, tmp_path: Path) -> None:
    mini = programs.script("mini_swe_agent.py", wire, python=programs.VALUES)
    _, made, dialogs = talk(served, mini, model, TASKS, tmp_path)
    assert made == "".join(f"made-{number}\n" for number in range(TURNS))
    (dialog,) = dialogs
    assert dialog.generations.count() == 3 * TURNS  # what was answered without a call is asked for once more


def test_langchain_sums_up_for_its_one_dialog(served: Rig, tmp_path: Path) -> None:
    langchain = programs.script("langchain_agent.mjs", "chat-summarised")
    as_before = (
        "write one line into the file, as for the tasks before, and change nothing else that lies in the folder."
    )
    texts = [f"{task}: {as_before}" for task in TASKS]
    answers, _, dialogs = talk(served, langchain, SMALL, texts, tmp_path)
    assert answers == [f"{task} is done." for task in TASKS]
    assert len(dialogs) == 1


SUMMARISED = [
    (wire + way, model)
    for wire, model in {"chat": SMALL, "responses": CODER, "messages": CLAUDE}.items()
    for way in ("", "-streamed")
]


@pytest.mark.parametrize(("wire", "model"), SUMMARISED)
def test_langchain_for_python_sums_up_for_its_one_dialog(served: Rig, wire: str, model: str, tmp_path: Path) -> None:
    """Its tool prints so much that most of sixty turns begin with a summary."""
    langchain = programs.script("langchain_agent.py", wire, python=programs.DEEP)
    texts = [f"Task {number}" for number in range(60)]
    answers, _, dialogs = talk(served, langchain, model, texts, tmp_path)
    assert answers == [f"{text} is done." for text in texts]
    assert len(dialogs) == 1


GOOGLES: dict[str, Turns] = {
    "whole": programs.script("gemini_python.py", "whole"),
    "stream": programs.script("gemini_python.py", "stream"),
    "cli": programs.gemini_cli,
}


@pytest.mark.parametrize("turns", GOOGLES.values(), ids=GOOGLES)
def test_googles_clients_hold_ten_turns_in_one_dialog(served: Rig, turns: Turns, tmp_path: Path) -> None:
    """The model's own server does not speak its protocol, so there is nothing to compare with."""
    person, key = served.key()
    with served.recorded() as recorder:
        place = Place(tmp_path, recorder.url, key, LOCAL)
        answers = turns(place, TASKS)
        assert recorder.failures == []
    assert [re.findall(r"Task \d+ is done", answer) for answer in answers] == [[f"{task} is done"] for task in TASKS]
    assert place.made == "".join(f"made-{number}\n" for number in range(TURNS))
    (dialog,) = Dialog.objects.filter(owner=person)
    assert dialog.generations.count() == 2 * TURNS


def test_aider_edits_a_file_in_one_dialog(served: Rig, tmp_path: Path) -> None:
    """The messages of its commits, and summaries, are asked for beside the conversation."""
    aider = programs.script("aider_coder.py", python=programs.AIDER)
    _, made, dialogs = talk(served, aider, LOCAL, TASKS, tmp_path)
    assert made == "".join(f"made-{number}\n" for number in range(TURNS))
    (dialog,) = dialogs
    assert dialog.title.startswith("Task 0 ")
    assert dialog.generations.count() == TURNS


def test_a_call_that_fails_is_tried_again_in_its_dialog(served: Rig, tmp_path: Path) -> None:
    """smolagents tells such a call no more, only what became of it, as a part of the user's message."""
    texts = [f"Task {number}, {FLAWED}" if number != 1 else "Task 1" for number in range(3)]
    smolagents = programs.script("smolagents_calls.py", python=programs.AGENTS)
    answers, made, dialogs = talk(served, smolagents, LOCAL, texts, tmp_path)
    assert answers == [f"Task {number} is done." for number in range(3)]
    assert made == "made-0\nmade-1\nmade-2\n"
    (dialog,) = dialogs
    assert dialog.generations.count() == 3 + 2 + 3
    assert dialog.turns.filter(role="tool", text__startswith="Error:").count() == 2


def test_claude_code_searches_for_a_tool_and_uses_it(served: Rig, tmp_path: Path) -> None:
    answers, _, dialogs = talk(served, programs.claude_code, CLAUDE, SEARCHED, tmp_path)
    assert answers[1] == "It says: No scheduled jobs."
    assert len(dialogs) == 1


def test_codex_runs_programs_of_a_model_that_it_knows(served: Rig, tmp_path: Path) -> None:
    """Its tools come as an item of the input, in a namespace, and take free text."""
    person, key = served.key()
    with served.recorded() as recorder:
        answers = programs.codex(Place(tmp_path, recorder.url, key, WITH_PROGRAMS), TASKS[:3])
        assert recorder.failures == []
    assert answers == [f"{task} is done." for task in TASKS[:3]]
    dialog = Dialog.objects.get(owner=person)
    assert dialog.turns.filter(role="tool").count() == 3


def test_codex_compacts_between_two_calls_of_a_tool(served: Rig, tmp_path: Path) -> None:
    """The first command's result and the request for a summary; then the summary is the newest message,
    with what is left to do."""
    codex = partial(programs.codex, settings=f"model_auto_compact_token_limit = {FULL - 10_000}\n")
    answers, made, dialogs = talk(served, codex, CODER, ["Pair 0", "Pair 1"], tmp_path)
    assert answers == ["Pair 0 is done.", "Pair 1 is done."]
    assert made == "made-0a\nmade-0b\nmade-1a\nmade-1b\n"
    (dialog,) = dialogs
    assert dialog.turns.filter(role="user", text__contains=COMPACT).count() == 2
    assert dialog.generations.count() == 8


def test_langchains_standard_passes_here_as_with_the_model_itself(served: Rig, tmp_path: Path) -> None:
    double = served.doubles[LOCAL]
    _, key = served.key()
    itself = programs.langchain_standard(Place(tmp_path / "itself", double.url, "sk-itself", LOCAL))
    here = programs.langchain_standard(Place(tmp_path / "here", served.stack.base_url, key, LOCAL))
    assert len(itself) >= 40
    assert itself - here == set()
