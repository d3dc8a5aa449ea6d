"""Servers that drop part of the prompt and report what is left, through the driver."""

from typing import Any

import pytest

from dialogs.actions import reminders
from health.models import HealthSnapshot
from tests.dialogs.event_lists import event_data
from tests.doubles.brains import Prompt, Reply
from tests.doubles.local_servers import OllamaDouble
from tests.flows.conftest import Minds, Serve, dialog_with, say
from tests.flows.doubled import dialog_at, start

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "x" * 8_200
SHORT = "and?"
SUSPECTED, KNOWN = ("unknown", "truncation_suspected"), ("healthy", "")


def levels(serve: Serve, texts: list[tuple[str, Any]], **fields: Any) -> list[tuple[str, str]]:
    """The level and reason after each message; ``said`` are messages and the usage reported for each."""
    server = serve(context_length=128_000, **fields)

    def answer(_: Prompt) -> Reply:
        usage = texts[len(server.bodies) - 1][1]
        return Reply("ok", usage=usage, is_reported=usage is not None)

    server.brain = answer
    dialog = dialog_with(server)
    for text, _ in texts:
        say(dialog, text)
    rows = HealthSnapshot.objects.filter(generation__dialog=dialog).order_by("generation_id")
    return list(rows.values_list("level", "reason"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param([(LONG, (5_000, 10)), (LONG, (2_000, 10))], [KNOWN, SUSPECTED], id="it fell"),
        pytest.param([(LONG, (5_000, 400)), (SHORT, (4_700, 10))], [KNOWN, KNOWN], id="it fell by less than was said"),
        pytest.param([(LONG, (5_000, 300)), (SHORT, (4_699, 10))], [KNOWN, SUSPECTED], id="it fell by one more"),
        pytest.param(
            [(LONG, (5_000, 300)), (SHORT, (4_699, 500))], [KNOWN, SUSPECTED], id="its own answer is no reason"
        ),
        pytest.param([(LONG, (5_000, 10)), (SHORT, (5_000, 10))], [KNOWN, KNOWN], id="an equal number proves nothing"),
        pytest.param([(LONG, (5_000, 10)), (LONG, (5_000, 10))], [KNOWN, SUSPECTED], id="it did not grow by 8,000"),
        pytest.param([(LONG, (5_000, 10)), (LONG, (5_001, 10))], [KNOWN, KNOWN], id="it grew"),
        pytest.param(
            [(LONG, (50_000, 10)), (LONG, (8_000, 10)), (SHORT, (8_001, 10)), (SHORT, (52_500, 10))],
            [KNOWN, SUSPECTED, SUSPECTED, KNOWN],
            id="a server that truncates goes on doing so",
        ),
        pytest.param(
            [(LONG, (5_000, 10)), (SHORT, None), (SHORT, (2_000, 10))],
            [KNOWN, ("unknown", "usage_unavailable"), KNOWN],
            id="after a gray one there is nothing to compare with",
        ),
    ],
)
def test_what_is_suspected(serve: Serve, text: list[tuple[str, Any]], expected: list[tuple[str, str]]) -> None:
    assert levels(serve, text) == expected


def test_a_fall_beside_guidance_proves_nothing(serve: Serve) -> None:
    texts = [(LONG, (6_000, 10)), (LONG, (3_000, 10)), (LONG, (2_600, 10))]
    assert levels(serve, texts, optimal_max_tokens=900)[1:] == [("caution", "")] * 2


def test_other_reminders_or_a_fresh_round_prove_nothing(serve: Serve) -> None:
    server = serve(context_length=128_000)
    usages = [(5_000, 10), (2_000, 10), (1_000, 10)]
    server.brain = lambda _: Reply("ok", usage=usages[len(server.bodies) - 1])
    dialog = dialog_with(server)
    say(dialog, LONG)
    reminders.add(dialog.pk, "new")
    say(dialog, SHORT)
    assert dialog.report == "reported"


def test_the_page_tells_a_suspected_report_and_nothing_learns_from_it(serve: Serve, minds: Minds) -> None:
    server = serve(window=60_000, api_type="lmstudio")
    usages = [None, (300, 10)]
    server.brain = lambda _: Reply("ok", usage=usages[len(server.bodies) - 1])
    dialog = dialog_with(server)
    say(dialog, LONG)
    learnt = dialog.calibration_fit
    say(dialog, LONG)
    assert (dialog.report, dialog.calibration_fit) == ("suspected", learnt) and learnt
    message = event_data(dialog, "health")[-1]
    assert (message["level"], message["reason"], message["prompt_tokens"]) == ("unknown", "truncation_suspected", 300)


def test_a_first_message_that_an_ollama_cut_is_suspected(minds: Minds, monkeypatch: Any) -> None:
    """Its window is not known before its model runs, so the message is sent."""
    with start("ollama/qwen3", lambda _: Reply("ok"), window=4_096) as server:
        assert isinstance(server, OllamaDouble)
        server.serve_json("GET", "/api/ps", lambda: {"models": []})
        dialog = dialog_at(server, minds, monkeypatch, "ollama/qwen3")
        say(dialog, "The shelf holds books on bees and boats. " * 700)
        assert server.refusals == []
    assert (dialog.report, dialog.calibration_fit) == ("suspected", None)
    page = event_data(dialog, "health")[-1]
    assert page["prompt_tokens"] < 4_096 and page["level"] == "unknown"
