"""What the system checks say of plug-ins, at every start."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dialogs.checks import policies_are_sound
from remediation.policies.registry import GROUP, OWN, policies, registry


@pytest.fixture
def broken_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    described = tmp_path / "broken-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(f"[{GROUP}]\nbroken = no_such_module:POLICY\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.cache_clear()
    yield
    monkeypatch.undo()
    registry.cache_clear()


def test_without_plugins_nothing_is_said() -> None:
    assert policies_are_sound() == []


def test_a_plugin_that_cannot_be_loaded_is_named_and_not_in_the_way(broken_plugin: None) -> None:
    (warning,) = policies_are_sound()
    assert warning.id == "dialogs.W003"
    assert "broken (no_such_module:POLICY)" in warning.msg
    assert "No module named 'no_such_module'" in warning.msg
    assert policies() == OWN
