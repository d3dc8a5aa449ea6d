"""One task, by one agent under each policy and by a lead with two workers: ``python -m tests.benchmarks.team``.

The task is to read a repository of 300 files, three of which state a fact, and to say the facts. The model is played:
it reads batch after batch, repeats a fact in the answer in which it sees it, and in the end says the facts that still
stand in its request. A summary that it is asked for holds the facts that it is given. So what is counted is what the
runtime leaves in a prompt, and no model's luck. Prints Markdown.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

FILES, BATCH = 300, 5
FACTS = {
    37: "FACT: the archive listens on port 7443.",
    141: "FACT: the importer belongs to Oda.",
    262: "FACT: the release is on a Tuesday.",
}
WINDOW = 32_768
PRICES = [{"in": 1, "out": 4}]  # USD per million tokens
POLICIES = ("none", "breaking", "retention", "summarize")  # those that a model of any kind can have
MOST_STEPS = 40
SAYS = "Now say the three facts: port of the archive, owner of the importer, day of the release."
WORDS = "open close read write batch index entry token queue lease event round share store merge parse".split()


def content_of(number: int) -> str:
    """Return a file of some 2,000 characters, which is like no other."""
    lines = [f"# module_{number:03}.py"]
    for line in range(40):
        first, second = WORDS[(number + line) % len(WORDS)], WORDS[(number * 7 + line * 3) % len(WORDS)]
        lines.append(f"def {first}_{second}_{line}(value): return value * {number * 41 + line}")
    if number in FACTS:
        lines.insert(20, f"# {FACTS[number]}")
    return "\n".join(lines)


def readings(first: int, last: int) -> list[dict[str, Any]]:
    """Return the steps that read these files, and then say what is known."""
    calls = [
        {"name": "read_files", "arguments": {"first": at, "last": at + BATCH - 1}} for at in range(first, last, BATCH)
    ]
    return [*({"text": "Read on. {{new}}", "tool_calls": [call]} for call in calls), {"text": "{{known}}"}]


def asks(agent: str, first: int, last: int) -> dict[str, Any]:
    task = f"Read the files {first} to {last}, and report each line that begins with FACT."
    return {"name": "ask_agent", "arguments": {"agent": agent, "task": task}}


SCRIPTS = {
    "alone": readings(0, FILES),
    "first": readings(0, FILES // 2),
    "second": readings(FILES // 2, FILES),
    "lead": [{"tool_calls": [asks("first", 0, 149), asks("second", 150, 299)]}, {"text": "{{known}}"}],
}


def set_up(folder: Path) -> None:
    import yaml

    minds = folder / "minds"
    minds.mkdir()
    models = {}
    for name, steps in SCRIPTS.items():
        (minds / f"{name}.yaml").write_text(yaml.safe_dump({"steps": steps, "chunk_chars": 4_000}))
        models[name] = {"name": name, "script": f"{name}.yaml", "context_length": WINDOW, "prices": PRICES}
    providers = {"test": {"name": "Test", "apiType": "scripted", "models": models}}
    (minds / "llm.yaml").write_text(yaml.safe_dump({"providers": providers}))
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "dominds.settings",
        "DATABASE_URL": f"sqlite:///{folder / 'team.sqlite3'}",
        "DOMINDS_DATA_DIR": str(folder / "data"),
        "DOMINDS_MINDS_DIR": str(minds),
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "DOMINDS_MESSAGES_PER_MINUTE": "0",
        "DOMINDS_LOG_LEVEL": "ERROR",
    }
    (folder / "data").mkdir()
    import django

    django.setup()
    from dominds.db import fresh

    fresh.lay()


def play_the_model() -> dict[str, str]:
    """Let the scripted provider say the facts that it sees. Returns the newest request of each dialog, which fills."""
    from dominds.llm.messages import ToolCall
    from dominds.llm.providers import scripted
    from dominds.llm.providers.script_file import Step
    from remediation.guidance import CLEAR_MIND

    choose, say, seen = scripted.step_for, scripted.text_of, dict[str, str]()

    def step_for(script: Any, request: Any) -> tuple[Step, str]:
        text = f"{request.instructions}\n" + "\n".join(message.text for message in request.messages)
        if ":" in request.conversation:  # a side call, for a title or a summary
            return Step(text=known_in(text)), request.cursor
        seen[request.conversation] = text
        if request.force == CLEAR_MIND:
            package = {"reminder_content": f"Read on where you were. {known_in(text)}"}
            return Step(tool_calls=(ToolCall("clear", CLEAR_MIND, json.dumps(package)),)), request.cursor
        return choose(script, request)

    def text_of(step: Any, script: Any, request: Any) -> str:
        newest = "\n".join(message.text for message in scripted.newest_messages(request.messages))
        text = replace(step, text=step.text.replace("{{new}}", " ".join(facts_in(newest))))
        text = replace(text, text=text.text.replace("{{known}}", known_in(seen.get(request.conversation, ""))))
        return say(text, script, request)

    vars(scripted)["step_for"], vars(scripted)["text_of"] = step_for, text_of
    return seen


def facts_in(text: str) -> list[str]:
    return [fact for fact in FACTS.values() if fact in text]


def known_in(text: str) -> str:
    return " ".join(facts_in(text)) or "No fact is known."


def offer_files() -> None:
    from dialogs.context.tool_calls import Result
    from dialogs.tools.registry import builtin_tools
    from dialogs.tools.tool import Tool, parameters
    from dominds.llm.messages import ToolSpec

    number = {"type": "integer"}
    spec = ToolSpec(
        "read_files", "Read files of the repository.", parameters(["first", "last"], first=number, last=number)
    )

    def read(call: Any) -> Result:
        return Result("\n\n".join(map(content_of, range(call.arguments["first"], call.arguments["last"] + 1))))

    builtin_tools()["read_files"] = Tool(spec, outside=read)  # type: ignore[index]  # a dict, in truth


def agent_of(name: str, model: str, **columns: Any) -> Any:
    from dialogs.models import Agent

    columns = {"provider": "test", "model": model, "tools": ["read_files"], "tool_approval": "never"} | columns
    return Agent.objects.create(id=name, name=name.title(), instructions="You read code.", **columns)


def work(owner: Any, agent: str) -> list[Any]:
    """Give the task to an agent, drive all that works for it, and return the dialogs, the first one first."""
    from dialogs.actions import messages
    from dialogs.extras.teams import side_dialogs
    from dialogs.models import Dialog
    from dialogs.runtime.driver import drive

    root = messages.create_dialog(owner, agent)
    before = set(Dialog.objects.values_list("pk", flat=True)) - {root.pk}
    for text in ("Read the repository, and find the three facts.", SAYS):
        messages.post_message(root.pk, text)
        for _ in range(MOST_STEPS):
            side_dialogs.sweep()
            working = Dialog.objects.exclude(pk__in=before).filter(state="queued")
            if not working.exists():
                break
            for dialog in list(working):
                drive(dialog.pk)
    return list(Dialog.objects.exclude(pk__in=before).order_by("created_at"))


def row(who: str, dialogs: Iterable[Any], seen: dict[str, str]) -> str:
    from django.db.models import Max, Sum

    from dialogs.models import Generation

    root, *_ = dialogs = list(dialogs)
    calls = Generation.objects.filter(dialog__in=dialogs)
    sums = calls.aggregate(prompt=Sum("prompt_tokens"), output=Sum("completion_tokens"), usd=Sum("cost_usd"))
    largest = [
        f"{Generation.objects.filter(dialog=one).aggregate(most=Max('prompt_tokens'))['most']:,}" for one in dialogs
    ]
    kept = len(facts_in(seen.get(str(root.pk), "")))
    rewrites = sum(one.remediations.counted().count() + one.round_number - 1 for one in dialogs)
    state = "" if root.state == "idle" else f" ({root.state})"
    return (
        f"| {who}{state} | {calls.count()} | {sums['prompt']:,} | {sums['output']:,} | ${sums['usd']:.2f} "
        f"| {rewrites} | {', '.join(largest)} | {kept} of {len(FACTS)} |"
    )


def rows() -> Iterator[str]:
    from django.contrib.auth.models import User

    seen = play_the_model()
    offer_files()
    owner = User.objects.create(username="ada")
    heads = (
        "calls",
        "prompt tokens",
        "output",
        "cost",
        "rewrites",
        "largest prompt of each",
        "facts in the last prompt",
    )
    yield f"| | {' | '.join(heads)} |"
    yield "|---|---|---|---|---|---|---|---|"
    for policy in POLICIES:
        for recall in (False, True):
            name = f"{policy}{'-recall' if recall else ''}"
            agent_of(name, "alone", context_policy=policy, recall=recall)
            yield row(f"one agent, {policy}{', recall' if recall else ''}", work(owner, name), seen)
    for name in ("first", "second"):
        agent_of(name, name, context_policy="retention", recall=True)
    agent_of("lead", "lead", context_policy="retention", extras={"colleagues": ["first", "second"]})
    yield row("lead and two workers, retention, recall", work(owner, "lead"), seen)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="dominds-team-") as folder:
        set_up(Path(folder))
        for line in rows():
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
