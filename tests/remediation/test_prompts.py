"""Prompts are files with a version, an operator's own text goes before ours, and a mistake in it is named."""

import os
import re
from pathlib import Path

import pytest

from remediation.prompts import NAMES, SHIPPED, PromptError, load, preview, problems, render


def own(folder: Path, name: str, text: str) -> Path:
    (folder / f"{name}.md").write_text(text)
    return folder


def test_every_file_is_a_prompt_and_every_prompt_a_file() -> None:
    assert {path.stem for path in SHIPPED.glob("*.md")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_can_be_seen_as_it_would_be_sent(name: str) -> None:
    shown = preview(name)
    assert shown
    assert "$" not in shown
    assert "purpose:" not in shown
    assert load(name).number >= 1


def test_the_version_tells_any_change_of_the_text(tmp_path: Path) -> None:
    shipped = load("guidance")
    changed = load("guidance", own(tmp_path, "guidance", f"---\nversion: 1\n---\n{shipped.text} Now."))
    assert shipped.version.startswith("1-")
    assert changed.version.startswith("1-")
    assert changed.version != shipped.version


def test_an_operators_text_goes_first_and_is_read_anew(tmp_path: Path) -> None:
    folder = own(tmp_path, "loop_nudge", "Stop repeating $calls.")
    assert render(load("loop_nudge", folder), calls="ls", times=4, result="") == "Stop repeating ls."
    path = folder / "loop_nudge.md"
    path.write_text("Enough of $calls.")
    os.utime(path, ns=(1, 1))
    assert render(load("loop_nudge", folder), calls="ls") == "Enough of ls."
    assert load("guidance", folder) == load("guidance")


@pytest.mark.parametrize(
    ("text", "says"),
    [("$colour", r"\$colour.*It knows: \$calls, \$result, \$times"), ("costs 5$", "dollar sign"), (" \n", "is empty")],
)
def test_a_mistake_is_named_and_our_text_stands_in(tmp_path: Path, text: str, says: str) -> None:
    folder = own(tmp_path, "loop_nudge", text)
    ((name, why),) = problems(folder)
    assert name == "loop_nudge.md"
    assert re.search(says, why)
    assert load("loop_nudge", folder) == load("loop_nudge")


def test_a_file_that_is_no_prompt_is_named(tmp_path: Path) -> None:
    assert problems(tmp_path / "absent") == []
    ((name, why),) = problems(own(tmp_path, "guidence", "Clear your mind."))
    assert name == "guidence.md"
    assert "guidance" in why


def test_a_value_is_not_looked_at_for_placeholders() -> None:
    assert "$attempt" in render(load("re_entry_package"), package="costs $5, see $attempt")


def test_a_missing_value_is_named() -> None:
    with pytest.raises(PromptError, match=r"needs a value for \$package"):
        render(load("re_entry_package"))
