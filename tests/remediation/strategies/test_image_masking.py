"""Old images give way before words, to lines that say which they were."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dominds.llm.messages import ImagePart, Message
from remediation.config import ContextConfig
from remediation.context import Rewritten, Toolbox, Unit, Units, total_tokens
from remediation.policies.images_first import images_first
from remediation.policies.policy import RewriteTask
from remediation.strategies.image_masking import mask_old_images
from tests.remediation.building import count, model, numbered, toolbox, user

IMAGE_TOKENS = 1_000


def counted(messages: Sequence[Message]) -> int:
    return count(messages) + IMAGE_TOKENS * sum(len(message.parts) for message in messages)


def shows(name: str) -> Unit:
    unit = user(f"look at {name}")
    messages = (replace(unit.messages[0], parts=(ImagePart("image/png", name=name, key="1", pixels=(640, 480)),)),)
    return replace(unit, messages=messages, est_tokens=counted(messages))


TOOLS: Toolbox = replace(toolbox(), count=counted)
VIEW = numbered(shows("a.png"), model("a cat"), shows("b.png"), model("a dog"), shows("c.png"), model("a cow"))


def images(units: Units) -> list[str]:
    return [part.name for unit in units for message in unit.messages for part in message.parts if part.name]


@pytest.mark.parametrize(
    ("target", "left"),
    [(5_000, ["a.png", "b.png", "c.png"]), (2_100, ["b.png", "c.png"]), (1, ["c.png"])],  # the newest is looked at
)
def test_the_oldest_go_first_and_only_as_many_as_needed(target: int, left: list[str]) -> None:
    masked = mask_old_images(VIEW, target, TOOLS)
    assert images(masked) == left
    assert [unit.id for unit in masked] == [unit.id for unit in VIEW]
    assert ("b.png" in left) or masked[2].text == (
        "look at b.png\n[Image “b.png” (640 × 480 pixels) is no longer shown (turn 3). The user can see it in the "
        "dialog; ask for it to be attached again if you have to look at it.]"
    )


def task(target: int, limit: int) -> RewriteTask:
    return RewriteTask(VIEW, limit, target, 0, 0, limit, ContextConfig())


def shortened(task: RewriteTask, toolbox: Toolbox) -> Rewritten:
    return Rewritten(task.units[-2:], task.units[:-2], total_tokens(task.units), total_tokens(task.units[-2:]))


def failed(task: RewriteTask, toolbox: Toolbox) -> Rewritten:
    size = total_tokens(task.units)
    return Rewritten(task.units, (), size, size, failure="nothing helps")


def test_where_images_are_enough_no_word_is_lost() -> None:
    done = images_first(task(2_200, 2_500), TOOLS, failed)
    assert (images(done.units), done.failure, done.est_before) == (["b.png", "c.png"], "", total_tokens(VIEW))
    assert done.removed == VIEW[:1] and done.est_after == total_tokens(done.units)


def test_without_them_the_policy_goes_on_and_archives_all_changes() -> None:
    done = images_first(task(100, 2_500), TOOLS, shortened)
    assert done.units == VIEW[-2:] and done.removed == VIEW[:-2] and done.est_before == total_tokens(VIEW)
    assert [step.strategy for step in done.steps] == ["mask_images"]


@pytest.mark.parametrize(("limit", "failure", "left"), [(1_500, "", ["c.png"]), (900, "nothing helps", images(VIEW))])
def test_where_the_policy_fails_masked_images_may_still_do(limit: int, failure: str, left: list[str]) -> None:
    done = images_first(task(100, limit), TOOLS, failed)
    assert (done.failure, images(done.units)) == (failure, left)


def test_a_shortened_unit_names_its_images_and_has_none() -> None:
    assert VIEW[0].text == "look at a.png\n[Image “a.png” (640 × 480 pixels)]"
    assert images((VIEW[0].with_text("a cat", counted),)) == []
