"""Refusals of strict doubles: forced calls, requests that no repeat helps, and output that does not fit."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from dialogs.models import Dialog, ForcingRefusal
from remediation.budget import LEAST_ANSWER
from remediation.strategies.left_out import LEFT_OUT_MESSAGES
from tests.dialogs.factories import make_dialog
from tests.doubles.brains import GUIDANCE, LAST_RESORT, Prompt, Reply, Story
from tests.doubles.local_servers import VLLMDouble
from tests.doubles.serving import Double
from tests.flows.conftest import Minds, say
from tests.flows.doubled import dialog_at, start

pytestmark = pytest.mark.django_db(transaction=True)

BOUND = "anthropic/claude-opus-5-5"
RED = (1_040_000, 5)


def refused(double: Double) -> list[str]:
    return [refusal.rule for refusal in double.refusals if refusal.rule != "path"]  # LM Studio is asked for its socket


class Reporting:
    """A story whose every answer reports ``usage``; the provider's ``error`` meets each forced attempt."""

    def __init__(self, story: Story, usage: tuple[int, int] | None = None, error: Any = None) -> None:
        self.story, self.usage, self.error = story, usage, error

    def __call__(self, prompt: Prompt) -> Reply:
        if self.error and LAST_RESORT in prompt.last.text:
            return Reply(error=self.error)
        return replace(self.story(prompt), usage=self.usage)


def purposes(dialog: Dialog) -> list[tuple[str, str, int]]:
    return list(dialog.generations.order_by("id").values_list("purpose", "outcome", "attempt"))


def test_a_refusal_to_be_forced_is_remembered(minds: Minds, monkeypatch: Any) -> None:
    brain = Reporting(Story(reasoning="Let me see.", heeds=""), RED)
    with start(BOUND, brain) as double:
        dialog = dialog_at(double, minds, monkeypatch, BOUND, {"forced_tool": "named"})
        say(dialog, "fill it")
        brain.story.words = "Answer."
        _next_is_green(brain)
        say(dialog, "next")
        assert refused(double) == ["forced tool"]
        assert purposes(dialog)[1:3] == [("forced_clear", "failed", 1), ("forced_clear", "kept", 1)]
        assert (dialog.round_number, dialog.state, dialog.repeats) == (2, "idle", {})
        assert "tool_choice" in ForcingRefusal.objects.get().reason
        other = make_dialog(provider="anthropic", model="claude-opus-5-5")
        brain.usage = RED
        say(other, "fill it")
        _next_is_green(brain)
        say(other, "next")
        assert refused(double) == ["forced tool"] and other.round_number == 2


def _next_is_green(brain: Reporting) -> None:
    brain.usage = None


def test_a_forced_attempt_refused_for_good_asks_a_person(minds: Minds, monkeypatch: Any) -> None:
    error = (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "no such beta"}})
    brain = Reporting(Story(heeds=""), RED, error)
    with start("anthropic/claude-opus-5", brain) as double:
        dialog = dialog_at(double, minds, monkeypatch, "anthropic/claude-opus-5")
        say(dialog, "fill it")
        say(dialog, "next")
        forced = [body.get("tool_choice") for body in double.bodies[1:]]
        assert forced == [{"type": "tool", "name": "clear_mind"}, None]
        assert dialog.state == "suspended" and "no such beta" in dialog.questions.get().text
        assert dialog.turns.get(text="next").status == "suspended"


def test_a_request_refused_for_good_asks_a_person(minds: Minds, monkeypatch: Any) -> None:
    gone = Reply(error=(404, {"type": "error", "error": {"type": "not_found_error", "message": "model: gone"}}))
    with start(BOUND, lambda _: gone) as double:
        dialog = dialog_at(double, minds, monkeypatch, BOUND)
        say(dialog, "hello")
        assert (dialog.state, len(double.bodies)) == ("suspended", 1)
        question = dialog.questions.get()
        assert question.kind == "provider_refused"
        assert "model: gone. Check the account, or choose another model. Message 1 " in question.text


def vllm(minds: Minds, double: Double, **fields: Any) -> Dialog:
    models = {double.model: {"context_length": 32_768, "output_length": 8_192, **fields}}
    minds.providers["vllm"] = {"apiType": "vllm", "baseUrl": f"{double.url}/v1", "models": models}
    minds.write()
    return make_dialog(provider="vllm", model=double.model, context_policy="none")


def test_a_small_window_is_used_up_without_a_refusal(minds: Minds) -> None:
    with VLLMDouble(Story(heeds=""), window=32_768) as double:
        dialog = vllm(minds, double)
        for number in range(24):
            say(dialog, f"Entry {number}. " + "The shelf holds books on bees and boats. " * 140)
            if dialog.round_number > 1:
                break
        assert (refused(double), dialog.round_number, dialog.failure) == ([], 2, "")
        asked = [body["max_tokens"] for body in double.bodies if GUIDANCE not in str(body["messages"][-1])]
        assert max(asked) == 8_192 and min(asked) < 8_000
        forced = [body for body in double.bodies if "tool_choice" in body]
        assert forced and all(16 <= body["max_tokens"] <= 4_000 for body in forced)


def test_a_paste_without_room_is_answered_after_a_clear(minds: Minds) -> None:
    paste = "The shelf holds books on bees and boats. " * 1_500
    with VLLMDouble(Story(heeds=""), window=32_768) as double:
        dialog = vllm(minds, double)
        for _ in range(5):
            say(dialog, paste[:16_000])
        assert dialog.generations.latest("id").snapshot.level == "healthy"
        say(dialog, paste)
        # An estimate forces nothing: the request is sent once, and the server's refusal is what forces.
        assert (refused(double), dialog.failure, dialog.state, dialog.round_number) == (["no room"], "", "idle", 2)
        forced, answered = double.bodies[-2:]
        assert LEFT_OUT_MESSAGES in str(forced) and "tool_choice" in forced
        assert answered["messages"][-1]["content"] == paste
        assert [purpose for purpose, _, _ in purposes(dialog)] == ["reply"] * 6 + ["forced_clear", "reply"]


KINDS = {
    "prose": "The shelf holds books on bees and boats. ",
    "log": '2026-03-04 10:11 INFO worker 7 took 0x3f2a91bc {"id": 7}\n',
    "code": "def step(value: int) -> int:\n    return value * 3 + 1\n",
    "czech": "Na polici stojí knihy o včelách a lodích, žlutých i červených. ",
}


@pytest.mark.parametrize("kinds", [*(pytest.param([kind], marks=pytest.mark.deep) for kind in KINDS), list(KINDS)])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep)])
def test_no_green_dialog_is_refused_and_the_forced_clear_fits(minds: Minds, kinds: list[str], seed: int) -> None:
    random = Random(seed)
    with VLLMDouble(Story(heeds=""), window=32_768) as double:
        dialog = vllm(minds, double)
        while dialog.round_number < 3 and len(double.bodies) < 150:
            text = KINDS[random.choice(kinds)]
            say(dialog, text * max(1, random.choice([40, 1_000, 4_000, 6_000]) // len(text)))
            assert (refused(double), dialog.failure, dialog.state) == ([], "", "idle")
        assert dialog.round_number == 3
        forced = dialog.generations.filter(purpose="forced_clear")
        assert set(forced.values_list("outcome", flat=True)) == {"kept"}
        shortest = min(body["max_tokens"] for body in double.bodies if "tool_choice" not in body)
        assert shortest >= LEAST_ANSWER, "an answer is not cut for fear of what might not fit"


def test_output_that_does_not_fit_is_asked_for_once_smaller(minds: Minds) -> None:
    with VLLMDouble(Story(heeds=""), window=32_768, weight=3) as double:  # counts three times what is estimated
        dialog = vllm(minds, double)
        say(dialog, "The shelf holds books on bees and boats. " * 850)
        assert refused(double) == ["no room"]
        assert purposes(dialog) == [("reply", "failed", 1), ("reply", "kept", 1)]
        assert dialog.generations.earliest("id").error_kind == "output_budget"
        asked, less = (body["max_tokens"] for body in double.bodies)
        assert less < asked == 8_192 and (dialog.failure, dialog.tries, dialog.repeats) == ("", 0, {})
