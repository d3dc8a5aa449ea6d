"""Long talks in windows of every size: rewrites stay rare, pay, and nothing that fits is suspended, refused or cut."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.flows.conftest import Serve, dialog_with, say
from tests.harness.talks import HEAD, SHAPES, Measured, Shape, Talker, measured, messages_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(3600)]

MOST = int(os.environ.get("DOMINDS_WINDOW_MESSAGES", "20"))
WINDOWS = [int(part) for part in os.environ.get("DOMINDS_WINDOWS", "4096").split(",")]
POLICIES = os.environ.get("DOMINDS_WINDOW_POLICIES", "autocompaction").split(",")
NAMES = os.environ.get("DOMINDS_WINDOW_SHAPES", "paragraphs,tools").split(",")
BREAKING_LIMIT = 5_000


def limit_of(policy: str, window: int) -> int:
    return min(window, BREAKING_LIMIT) if policy == "breaking" else window


TALKS = [
    pytest.param(policy, window, shape, id=f"{policy}-{window}-{shape.name}")
    for policy in POLICIES
    for window in WINDOWS
    for shape in SHAPES
    if shape.name in NAMES and shape.messages(limit_of(policy, window), MOST)
]


@pytest.fixture(autouse=True)
def _requests_made_again() -> None:
    """Hundreds of requests are not made again here; all other flows are."""


def talk(serve: Serve, settings: Any, shape: Shape, window: int, policy: str, recall: bool) -> Measured:
    limit = limit_of(policy, window)
    server = serve(window=window, api_type="lmstudio", refuses="too long")
    server.brain = talker = Talker(shape, limit, Path(settings.WORKSPACE_DIR))
    tools = ["read_file"] if shape.results else []
    dialog = dialog_with(server, recall=recall, context_policy=policy, tools=tools)
    for text in messages_of(shape, limit, shape.messages(limit, MOST)):
        if dialog.state == "suspended":
            break
        say(dialog, text)
    return measured(dialog, limit, len([one for one in server.refusals if one.rule != "path"]), talker)


@pytest.mark.parametrize("recall", [True, False], ids=["recall", "alone"])
@pytest.mark.parametrize(("policy", "window", "shape"), TALKS)
def test_a_long_talk_is_rewritten_seldom_and_loses_nothing_that_fits(
    serve: Serve, settings: Any, shape: Shape, window: int, policy: str, recall: bool
) -> None:
    began = time.monotonic()
    result = talk(serve, settings, shape, window, policy, recall)
    row = f"{window} | {policy} | {'on' if recall else 'off'} | {shape.name} | {result.row()}"
    out = os.environ.get("DOMINDS_WINDOW_TABLE")
    if out:
        with Path(out).open("a") as file:
            file.write(f"{row} | {time.monotonic() - began:.0f}\n")
    print("\n" + HEAD + "\n" + row)
    assert (result.answered, result.state) == (result.messages, "idle")
    if policy == "none":  # a refusal or a forced clear is its way to make room
        return
    assert (result.flips, result.clears, result.refused, result.cut_results) == (0, 0, 0, 0)
    if not result.rewrites:
        return
    assert result.rises == 0 and result.extra_calls <= 2
    if window < 4_096:  # tools and instructions alone take a quarter
        return
    assert result.too_large == 0
    assert result.rewrites == 1 or result.between >= 0.8 * result.held
    if not shape.results and not shape.paste:  # a newest message or result of 40 % stays whole
        assert result.gauge_after <= 0.6
        assert result.made_at >= 0.65
        assert result.reduction >= 0.35
