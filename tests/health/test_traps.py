"""Contradictions between thresholds are reported with the setting to change."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.checks import INFO, WARNING
from hypothesis import given
from hypothesis import strategies as st

from dominds.llm.usage import Usage
from health.checks import catalog_is_sound
from health.levels import Level, Thresholds, judge
from health.traps import traps_of

limits = st.integers(10, 2_000_000)


@pytest.mark.parametrize(
    ("thresholds", "input_length", "words"),
    [
        (Thresholds(128_000), 128_000, []),
        (Thresholds(32_768), 32_768, ["optimal_max_tokens"]),
        (Thresholds(128_000, critical_max=100_000), None, ["optimal_max_tokens"]),  # equal: no band either
        # 90 % of 200,000 is 180,000, but prompts end at 170,000
        (Thresholds(200_000), 170_000, ["critical_max_tokens"]),
        (Thresholds(200_000), 180_000, ["critical_max_tokens"]),  # > 180,000 is needed for red
        (Thresholds(200_000), 180_001, []),
        (Thresholds(200_000, critical_max=150_000), 170_000, []),
        (Thresholds(100_000), 80_000, ["optimal_max_tokens", "critical_max_tokens"]),
        (Thresholds(None), None, []),
    ],
)
def test_each_trap_names_its_way_out(thresholds: Thresholds, input_length: int | None, words: list[str]) -> None:
    traps = traps_of(thresholds, input_length)
    assert len(traps) == len(words)
    assert all(word in trap for word, trap in zip(words, traps, strict=True))


@given(limit=limits, optimal=st.none() | limits, critical=st.none() | limits, input_length=limits)
def test_without_a_trap_every_colour_can_be_reached(
    limit: int, optimal: int | None, critical: int | None, input_length: int
) -> None:
    thresholds = Thresholds(limit, optimal, critical)
    if traps_of(thresholds, input_length):
        return
    assert judge(Usage(input_length, 0), thresholds).level is Level.CRITICAL
    assert judge(Usage(thresholds.effective_optimal_max + 1, 0), thresholds).level is Level.CAUTION


# At start-up


@pytest.fixture
def minds(tmp_path: Path, settings: Any) -> Path:
    settings.MINDS_DIR = tmp_path
    return tmp_path


def write(minds: Path, api_type: str = "openai-compatible", **model: Any) -> None:
    entry = {"apiType": api_type, "baseUrl": "http://127.0.0.1:9/v1", "models": {"m": model}}
    (minds / "llm.yaml").write_text(yaml.safe_dump({"providers": {"own": entry}}))


def test_the_shipped_catalog_holds_no_warning(minds: Path) -> None:
    assert [message for message in catalog_is_sound() if message.level >= WARNING] == []


def test_small_windows_are_told_once_and_calmly(minds: Path) -> None:
    write(minds, context_length=8_000)
    notes = [message for message in catalog_is_sound() if message.id == "health.I001" and message.level == INFO]
    assert len(notes) == 1
    assert "own/m" in str(notes[0].msg)


@pytest.mark.parametrize(
    ("model", "word"),
    [
        ({"context_length": 8_000, "optimal_max_tokens": 9_000}, "optimal_max_tokens"),
        ({"context_length": 200_000, "input_length": 100_001, "critical_max_tokens": 150_000}, "critical_max_tokens"),
        ({"context_length": -1}, "context_length"),
    ],
)
def test_what_somebody_wrote_down_is_a_warning(minds: Path, model: dict[str, Any], word: str) -> None:
    write(minds, **model)
    (warning,) = (message for message in catalog_is_sound() if message.level == WARNING)
    assert word in str(warning.msg)


def test_a_limit_stated_for_lm_studio_is_ignored_with_a_warning(minds: Path) -> None:
    write(minds, api_type="lmstudio", context_length=8_000)
    (warning,) = (message for message in catalog_is_sound() if message.level == WARNING)
    assert "own/m" in str(warning.msg)
    assert "ignored" in str(warning.msg)
