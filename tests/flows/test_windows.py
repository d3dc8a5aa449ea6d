"""Long talks in windows of every size: rewrites stay rare, pay, and nothing that fits is suspended, refused or cut."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.flows.conftest import Serve, dialog_with, say
from tests.harness.talks import HEAD, SHAPES, Measured, Shape, Talker, measured, messages_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(3600)]

NUMBER = int(os.environ.get("DOMINDS_WINDOW_MESSAGES", "24"))
WINDOWS = [int(part) for part in os.environ.get("DOMINDS_WINDOWS", "4096").split(",")]
POLICIES = os.environ.get("DOMINDS_WINDOW_POLICIES", "autocompaction").split(",")
NAMES = os.environ.get("DOMINDS_WINDOW_SHAPES", "paragraphs,tools").split(",")


def talk(serve: Serve, settings: Any, shape: Shape, window: int, policy: str, recall: bool) -> Measured:
    server = serve(window=window, api_type="lmstudio", refuses="too long")
    server.brain = talker = Talker(shape, window, Path(settings.WORKSPACE_DIR))
    tools = ["read_file"] if shape.results else []
    dialog = dialog_with(server, recall=recall, context_policy=policy, tools=tools)
    for text in messages_of(shape, window, NUMBER):
        if dialog.state == "suspended":
            break
        say(dialog, text)
    return measured(dialog, window, len([one for one in server.refusals if one.rule != "path"]), talker)


@pytest.mark.parametrize("recall", [True, False], ids=["recall", "alone"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.name in NAMES], ids=lambda shape: shape.name)
def test_a_long_talk_is_rewritten_seldom_and_loses_nothing_that_fits(
    serve: Serve, settings: Any, shape: Shape, window: int, policy: str, recall: bool
) -> None:
    result = talk(serve, settings, shape, window, policy, recall)
    line = f"{window} | {policy} | {'on' if recall else 'off'} | {shape.name} | {result.row()}\n"
    out = os.environ.get("DOMINDS_WINDOW_TABLE")
    if out:
        with Path(out).open("a") as file:
            file.write(line)
    print("\n" + HEAD + "\n" + line)
    assert (result.answered, result.state, result.refused) == (NUMBER, "idle", 0)
    assert (result.flips, result.clears, result.cut_results) == (0, 0, 0)
    if not result.rewrites:
        return
    assert result.rises == 0 and result.extra_calls <= 2
    if window < 4_096:  # tools and instructions alone take half of 2,048
        return
    assert result.too_large == 0
    assert result.rewrites == 1 or result.between >= 0.8 * result.held
    if not shape.results:
        assert result.gauge_after <= 0.6
        assert result.made_at >= 0.65
        assert result.reduction >= 0.35
