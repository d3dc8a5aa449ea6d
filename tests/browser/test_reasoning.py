"""What a model thinks, on the page: while it does, after its answer, and after a reload."""

import json
import re
from collections.abc import Callable, Iterator
from threading import Semaphore
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import Page, expect

from dialogs.actions import messages
from dialogs.models import Dialog
from tests.browser.conftest import KEY_VARIABLE, SHIFTS, LogIn, answered, assert_nothing_moved, send
from tests.dialogs.factories import AgentFactory
from tests.doubles.brains import Call, Prompt, Reply
from tests.doubles.local_servers import VLLMDouble
from tests.doubles.messages import MessagesDouble
from tests.doubles.serving import Double
from tests.harness.stack import Stack

THOUGHT = "".join(f"{number}. I weigh <b>this</b> 🤔 and that.\n" for number in range(1, 41))
ANSWER = "It is **four**."


class Thinker:
    """Looks around first, and then answers after two seconds of thought. Stops in the middle of each thought and of the
    answer until it is told to go on."""

    def __init__(self) -> None:
        self._go_on = Semaphore(0)

    def __call__(self, prompt: Prompt) -> Reply:
        if prompt.last.role == "tool":
            stops = [len(THOUGHT) // 2, len(THOUGHT) + 150]  # by then the answer has begun, whatever marks it off
            return Reply(
                ANSWER * 20, reasoning=THOUGHT, chunk_chars=12, chunk_seconds=0.02, after_piece=self._stopping(stops)
            )
        listing = Call("list_files", {"path": "."})
        return Reply(
            "", (listing,), reasoning="I look first.\n" * 80, chunk_chars=12, after_piece=self._stopping([500])
        )

    def _stopping(self, stops: list[int]) -> Callable[[str], None]:
        message = 0

        def after(piece: str) -> None:
            nonlocal message
            message += len(piece)
            if stops and message >= stops[0]:
                del stops[0]
                self._go_on.acquire(timeout=60)

        return after

    def go_on(self) -> None:
        self._go_on.release()


DOUBLES: dict[str, tuple[str, Callable[[Thinker], Double], dict[str, Any]]] = {
    "Qwen3-14B": (
        "openai-compatible",
        lambda thinker: VLLMDouble(thinker, model="Qwen3-14B", reasoning="think"),
        {},
    ),
    "claude-opus-5-5": (
        "anthropic",
        lambda thinker: MessagesDouble("anthropic-5.5", thinker, model="claude-opus-5-5"),
        {"thinking": "always", "bound_thinking": True, "forced_tool": "no", "output_length": 128_000},
    ),
}


@pytest.fixture
def thinker() -> Thinker:
    return Thinker()


@pytest.fixture(params=DOUBLES)
def model(request: Any, stack: Stack, thinker: Thinker) -> Iterator[str]:
    """The name of a model and of its provider, served by a double."""
    name = str(request.param)
    kind, double_of, fields = DOUBLES[name]
    file = stack.minds_dir / "llm.yaml"
    before = file.read_text()
    with double_of(thinker) as double:
        url = double.url if kind == "anthropic" else f"{double.url}/v1"
        models = {name: {"context_length": 200_000, **fields}}
        entry = {"name": name, "apiType": kind, "baseUrl": url, "apiKeyEnvVar": KEY_VARIABLE, "models": models}
        llm = json.loads(before)
        llm["providers"][name] = entry
        file.write_text(json.dumps(llm))
        yield name
        assert double.refusals == []
    file.write_text(before)


def test_reasoning_is_shown_live_folded_after_and_survives_a_reload(
    model: str, thinker: Thinker, stack: Stack, person: User, page: Page, log_in: LogIn, complaints: list[str]
) -> None:
    agent = AgentFactory.create(provider=model, model=model, toolsets=["ws_read"])
    dialog = messages.create_dialog(person, agent.pk)
    connection.close()
    log_in(page.context, person)
    page.goto(f"{stack.base_url}/d/{dialog.pk}/")
    send(page, "How many?")
    live, text = page.locator("#live details.reasoning"), page.locator("#live .tail")
    newest = live.locator("summary")
    expect(newest).to_contain_text(re.compile(r"^Reasoning… \d+ s I look first\.$"))
    expect(live.locator(".plain")).to_be_hidden()
    page.evaluate(SHIFTS)
    newest.click()
    expect(live.locator(".plain")).to_contain_text("I look first.")
    newest.click()
    expect(live.locator(".plain")).to_be_hidden()
    thinker.go_on()
    expect(newest).to_contain_text("I weigh <b>this</b> 🤔 and")
    expect(live.locator(".plain")).to_contain_text("3. I weigh <b>this</b> 🤔 and that.")
    expect(live.locator(".plain")).not_to_contain_text("40. I weigh")
    assert text.text_content() == ""
    page.reload()  # in the middle of a thought
    expect(live.locator(".plain")).to_contain_text("1. I weigh <b>this</b> 🤔 and that.\n2. I weigh")
    expect(newest).to_contain_text(re.compile(r"^Reasoning… \d+ s .*I weigh"))
    room = live.evaluate("box => box.getBoundingClientRect().height")
    page.evaluate(SHIFTS)
    thinker.go_on()
    expect(text).to_contain_text("It is")
    assert live.evaluate("box => box.getBoundingClientRect().height") == room
    expect(newest).to_have_text(re.compile(r"^Reasoning\s*$"))
    thinker.go_on()
    answered(page, 2)
    assert_nothing_moved(page)
    assert_folded(page, dialog)
    page.reload()
    assert_folded(page, dialog)


def assert_folded(page: Page, dialog: Dialog) -> None:
    """Both thoughts stand at their answers, closed, whole, and in no answer's text."""
    kept = page.locator("#entries .turn-assistant details.reasoning")
    expect(kept).to_have_count(2)
    assert [box.get_attribute("open") for box in kept.all()] == [None, None]
    expect(kept.last.locator("summary")).to_contain_text(f"Reasoning {len(THOUGHT.strip()):,} characters, ")
    expect(kept.last.locator(".plain")).to_be_hidden()
    kept.last.locator("summary").click()
    expect(kept.last.locator(".plain")).to_be_visible()
    assert kept.last.locator(".plain").text_content() == THOUGHT.strip()
    kept.last.locator("summary").click()
    assert "weigh" not in (page.locator(".turn-assistant .md").last.text_content() or "")
    assert page.locator(".turn-assistant .md strong").count() == 20
