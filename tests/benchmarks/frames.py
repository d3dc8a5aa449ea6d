"""Frames of a long conversation in Chromium, while one scrolls and while an answer streams:
``python -m tests.benchmarks.frames``.

A frame is what the page's ``requestAnimationFrame`` gets; 16.7 ms apart are 60 a second. A machine that is busy with
other things loses frames that the page is not to blame for, so the processor time of the page's main thread is given as
well, out of Chromium's trace: a task that takes more than 16.7 ms of it costs a frame on any machine like this one.
``--texts`` takes the words of a dialog out of a JSON file, whatever its form: all its strings of 20 characters and
more.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from statistics import quantiles
from typing import Any

from tests.benchmarks.rig import Rig, load, progress, report, rig, table
from tests.harness.stack import ROOT

FRAME_MS = 1000 / 60
LEAST_CHARS = 20
WHEEL_PX = 240  # two notches
CODE_EVERY = 5  # answers; real dialogs of people with agents hold code, those of benchmarks do not
WATCH = """() => {
    window.frames = [];
    let last = performance.now();
    const note = (now) => { window.frames.push(now - last); last = now; requestAnimationFrame(note); };
    requestAnimationFrame(note);
}"""


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) >= LEAST_CHARS:
            yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


def texts_of(path: Path | None) -> list[str]:
    """Of a JSON file, or the sections of our own documents."""
    if path is not None:
        return list(strings(json.loads(path.read_text())))
    sections = "\n".join(file.read_text() for file in sorted((ROOT / "docs").glob("*.md"))).split("\n\n")
    return [section for section in sections if len(section) >= LEAST_CHARS]


def long_dialog(owner: Any, agent: Any, turns: int, texts: Sequence[str]) -> Any:
    from django.db import connection

    from dialogs.actions.messages import create_dialog
    from dialogs.models import Dialog, Turn

    code = "\n".join(f"def step_{n}(row: int) -> int:\n    return row + {n}  # {n}" for n in range(10))
    dialog = create_dialog(owner, agent.pk, "Frames")
    rows = []
    for number, sentence in enumerate(islice(cycle(texts), turns), 1):
        is_user = number % 2 == 1
        text = sentence if is_user or number % (2 * CODE_EVERY) else f"{sentence}\n\n```python\n{code}\n```\n"
        role, status = ("user", "answered") if is_user else ("assistant", "complete")
        rows.append(
            Turn(dialog=dialog, seq=number, position=number, round_number=1, role=role, status=status, text=text)
        )
    Turn.objects.bulk_create(rows, batch_size=500)
    Dialog.objects.filter(pk=dialog.pk).update(last_turn_seq=turns, last_position=turns)
    connection.close()
    return dialog


class Trace:
    """Processor time of the tasks of the page's main thread, ms."""

    def __init__(self, page: Any) -> None:
        self._cdp = page.context.browser.new_browser_cdp_session()
        self._events: list[dict[str, Any]] = []
        self._cdp.on("Tracing.dataCollected", lambda data: self._events.extend(data["value"]))
        self._page = page

    def start(self) -> None:
        self._events.clear()
        categories = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
        self._cdp.send("Tracing.start", {"traceConfig": {"includedCategories": categories}})

    def stop(self) -> tuple[list[float], dict[str, float]]:
        """Of each task, and by what was done in them."""
        done: list[bool] = []
        self._cdp.on("Tracing.tracingComplete", lambda _: done.append(True))
        self._cdp.send("Tracing.end")
        while not done:
            self._page.wait_for_timeout(50)
        names = {
            (event["pid"], event["tid"]): event["args"]["name"]
            for event in self._events
            if event.get("name") == "thread_name"
        }
        main = [event for event in self._events if names.get((event["pid"], event["tid"])) == "CrRendererMain"]
        tasks = [event["tdur"] / 1000 for event in main if event["name"] == "RunTask" and "tdur" in event]
        parts: dict[str, float] = {}
        for event in main:
            if event["name"] in PARTS and "tdur" in event:
                parts[event["name"]] = parts.get(event["name"], 0) + event["tdur"] / 1000
        return tasks, parts


PARTS = tuple(
    """
    FunctionCall TimerFire FireAnimationFrame UpdateLayoutTree Layout PrePaint Paint ParseHTML Layerize HitTest
    EventDispatch IntersectionObserverController::computeIntersections
    """.split()
)


def measured(page: Any, trace: Trace, what: str, act: Any) -> list[str]:
    trace.start()
    page.evaluate("() => { window.frames = []; }")
    act()
    frames = page.evaluate("() => window.frames")
    tasks, parts = trace.stop()
    print(what, {name: round(ms) for name, ms in sorted(parts.items(), key=lambda part: -part[1])}, flush=True)
    cut = quantiles(frames, n=100)
    late = sum(1 for frame in frames if frame > 1.5 * FRAME_MS)
    elements = page.evaluate("() => document.querySelectorAll('*').length")
    return [
        what,
        f"{1000 * len(frames) / sum(frames):.0f}",
        f"{cut[49]:.1f}, {cut[94]:.1f}, {max(frames):.0f}",
        f"{100 * late / len(frames):.0f} %",
        f"{sum(tasks) / len(frames):.1f}",
        f"{sum(task > FRAME_MS for task in tasks)}, {max(tasks):.0f}",
        f"{elements:,}",
    ]


def lab_agent(running: Rig, texts: list[str]) -> Any:
    """Its model streams a long answer of these texts."""
    from dialogs.models import Agent

    answer = "".join(f"{text}\n\n" for text in islice(cycle(texts), 60))
    (running.stack.minds_dir / "long.yaml").write_text(
        json.dumps({"chunk_chars": 12, "chunk_delay_ms": 15, "steps": [{"text": answer[:12_000]}]})
    )
    known = running.stack.minds_dir / "llm.yaml"
    known.write_text(
        known.read_text()
        + "  lab:\n    name: Lab\n    apiType: scripted\n    models:\n"
        + "      long: {script: long.yaml, context_length: 100000000}\n"
    )
    return Agent.objects.create(
        id="bench-long", name="Bench", provider="lab", model="long", instructions="", context_policy="none"
    )


def scenes(page: Any, bar: Any, turns: int, steps: int) -> list[list[str]]:
    """A row for each: older messages, rest, scrolling through all, streaming."""
    trace, lines = Trace(page), []
    page.evaluate(WATCH)
    page.locator("#transcript").hover()

    def wheel(direction: int) -> None:
        for _ in range(steps):
            page.mouse.wheel(0, direction * WHEEL_PX)
            page.wait_for_timeout(FRAME_MS)

    lines.append(measured(page, trace, "scrolling up, older messages come", lambda: wheel(-1)))
    task = bar.add_task("to the first turn", total=turns)
    while page.locator("#turn-1").count() == 0:
        page.mouse.wheel(0, -20_000)
        page.wait_for_timeout(60)
        bar.update(task, completed=page.locator("#entries > [data-position]").count())
    page.wait_for_timeout(1_000)
    lines.append(measured(page, trace, "at rest, all turns loaded", lambda: page.wait_for_timeout(3_000)))
    lines.append(measured(page, trace, "scrolling down through all", lambda: wheel(1)))
    lines.append(measured(page, trace, "scrolling up through all", lambda: wheel(-1)))
    page.locator("#jump").click()
    page.wait_for_timeout(1_000)

    def stream() -> None:
        page.fill("#text", "Go")
        page.press("#text", "Enter")
        page.wait_for_selector("#live", timeout=30_000)
        page.wait_for_selector("#live", state="detached", timeout=120_000)

    lines.append(measured(page, trace, "an answer streams, at the end", stream))
    page.evaluate("() => document.querySelector('#transcript').scrollTo(0, 100000)")
    lines.append(measured(page, trace, "an answer streams, one reads above", stream))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2_000)
    parser.add_argument("--texts", type=Path, help="a JSON file; default: our own documents")
    parser.add_argument("--steps", type=int, default=300, help="of the wheel, in each direction")
    asked = parser.parse_args()
    texts = texts_of(asked.texts)
    with rig(workers=1) as running, progress() as bar, ThreadPoolExecutor(1) as rows:
        from playwright.sync_api import sync_playwright

        from tests.harness.browser import FLAGS, chromium, session_key

        owner = running.people(1)[0]
        cookie, dialog = (
            session_key(owner),
            rows.submit(long_dialog, owner, lab_agent(running, texts), asked.turns, texts).result(),
        )
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": running.stack.base_url}])
            page = context.new_page()
            page.goto(f"{running.stack.base_url}/d/{dialog.pk}/")
            page.wait_for_timeout(2_000)
            lines = scenes(page, bar, asked.turns, asked.steps)
            browser.close()
    head = [
        f"{asked.turns:,} turns",
        "frames/s",
        "ms: p50, p95, most",
        "late",
        "CPU a frame, ms",
        "tasks over 16.7 ms, longest",
        "elements",
    ]
    report(f"## Frames of a long conversation ({load()})\n\n" + table(head, lines))


if __name__ == "__main__":
    main()
