"""Loops of two hundred turns with a tool, in a window of 16,000 tokens, which official clients and programs have
compacted here."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from openai import OpenAI

from dialogs.context.view import view_of
from dialogs.models import Dialog
from remediation.models import RemediationRun, RemovedUnit
from tests.clients import programs
from tests.clients.programs import Place
from tests.clients.rig import SMALL, SMALL_WINDOW, Rig
from tests.dialogs.browsing import browser_of

TURNS = 200
THRESHOLD = 9_000  # tokens, from which on the clients want a compaction
NOTE = "The harbour master wrote down what came in, what went out, and which of the boats lay at which quay. " * 12
COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def messages_loop(url: str, key: str) -> Iterator[tuple[str, int]]:
    """Yield the answer of each turn, and how many compactions came with it."""
    client: Any = Anthropic(base_url=url, api_key=key, max_retries=0)
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": THRESHOLD}}
    messages: list[Any] = []
    for number in range(TURNS):
        messages.append({"role": "user", "content": f"Task {number}"})
        compactions = 0
        while True:
            answer = client.beta.messages.create(
                model=SMALL,
                max_tokens=500,
                betas=["compact-2026-01-12"],
                context_management={"edits": [edit]},
                tools=[{"name": "bash", "description": "Runs it.", "input_schema": COMMAND}],
                messages=messages,
            )
            compactions += sum(block.type == "compaction" for block in answer.content)
            messages.append({"role": "assistant", "content": answer.content})
            if answer.stop_reason != "tool_use":
                break
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": f"made-{number}\n{NOTE}"}
                for block in answer.content
                if block.type == "tool_use"
            ]
            messages.append({"role": "user", "content": results})
        yield "".join(block.text for block in answer.content if block.type == "text"), compactions


def responses_loop(url: str, key: str) -> Iterator[tuple[str, int]]:
    client: Any = OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
    items: list[Any] = []
    for number in range(TURNS):
        items.append({"role": "user", "content": f"Task {number}"})
        compactions = 0
        while True:
            answer = client.responses.create(
                model=SMALL,
                input=items,
                store=False,
                context_management=[{"type": "compaction", "compact_threshold": THRESHOLD}],
                tools=[{"type": "function", "name": "bash", "parameters": COMMAND, "strict": False}],
            )
            compactions += sum(item.type == "compaction" for item in answer.output)
            items += answer.output
            calls = [item for item in answer.output if item.type == "function_call"]
            items += [
                {"type": "function_call_output", "call_id": call.call_id, "output": f"made-{number}\n{NOTE}"}
                for call in calls
            ]
            if not calls:
                break
        yield answer.output_text, compactions


@pytest.mark.parametrize("loop", [messages_loop, responses_loop], ids=["anthropic", "openai"])
def test_a_loop_of_two_hundred_turns_is_compacted_here_and_undone(
    served: Rig, loop: Callable[[str, str], Iterator[tuple[str, int]]]
) -> None:
    person, key = served.key()
    double = served.doubles[SMALL]
    answers, counts = zip(*loop(served.stack.base_url, key), strict=True)
    compactions = sum(counts)
    wrong = {number: answer for number, answer in enumerate(answers) if not answer.endswith(f"Task {number} is done.")}
    assert wrong == {}
    (dialog,) = Dialog.objects.filter(owner=person)
    runs = RemediationRun.objects.filter(dialog=dialog, undone_at=None).order_by("-pk")
    largest = max(count or 0 for count in dialog.generations.values_list("prompt_tokens", flat=True))
    print(f"{compactions} compactions, {runs.count()} rewrites, {len(double.requests)} model calls, most {largest}")
    assert compactions >= 5 and largest < SMALL_WINDOW
    newest = runs.first()
    assert newest is not None
    assert browser_of(person).post(f"/d/{dialog.pk}/archive/{newest.pk}/undo/").status_code == 302
    newest.refresh_from_db()
    assert newest.undone_at is not None


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "loop", [programs.claude_code_compacted, programs.codex_compacted], ids=["claude code", "codex"]
)
def test_a_program_loses_nothing_in_two_hundred_turns(
    served: Rig, loop: Callable[[Place, Sequence[str], int], Iterator[str]], tmp_path: Path
) -> None:
    person, key = served.key()
    facts = [f"locker {number} holds the key K{number * 7919}." for number in range(TURNS)]
    texts = [f"Task {number}: {fact} {NOTE[:800]}" for number, fact in enumerate(facts)]
    with served.recorded() as recorder:
        answers = list(loop(Place(tmp_path, recorder.url, key, SMALL), texts, THRESHOLD))
        assert recorder.failures == []
        compactions = sum('"type":"compaction"' in one.answer for one in recorder.answered)
    assert answers == [f"Task {number} is done." for number in range(TURNS)]
    (dialog,) = Dialog.objects.filter(owner=person)
    runs = list(RemediationRun.objects.filter(dialog=dialog, undone_at=None).order_by("-pk"))
    largest = max(count or 0 for count in dialog.generations.values_list("prompt_tokens", flat=True))
    print(f"{compactions} compactions, {len(runs)} rewrites, most {largest}")
    assert 5 <= compactions <= len(runs) < TURNS / 2 and largest < SMALL_WINDOW
    archived = "\n".join(RemovedUnit.objects.filter(dialog=dialog).values_list("text", flat=True))
    assert [fact for fact in facts if fact not in _seen(dialog) and fact not in archived] == []
    browser = browser_of(person)
    assert {browser.post(f"/d/{dialog.pk}/archive/{run.pk}/undo/").status_code for run in runs} == {302}
    assert [fact for fact in facts if fact not in _seen(dialog)] == []


def _seen(dialog: Dialog) -> str:
    return "\n".join(unit.text for unit in view_of(Dialog.objects.get(pk=dialog.pk)).units)
