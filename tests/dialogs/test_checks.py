"""What the system checks say of plug-ins and files, at every start."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core import checks
from django.core.management import call_command

from dialogs.checks import policies_are_sound
from dialogs.context import connected
from dominds.llm.catalog.catalog import current_catalog
from health.checks import catalog_is_sound
from remediation.policies.registry import GROUP, own, policies, registry


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


def test_no_database_is_asked() -> None:
    """Each command checks first, and waited for one that is away. Here a query is an error."""
    connected.forget()
    assert not [result for result in checks.run_checks() if result.is_serious(checks.ERROR)]


def test_a_broken_plugin_is_named_and_not_in_the_way(broken_plugin: None) -> None:
    (warning,) = policies_are_sound()
    assert warning.id == "dialogs.W003"
    assert "broken (no_such_module:POLICY)" in warning.msg
    assert "No module named 'no_such_module'" in warning.msg
    assert policies() == own()


# -- A file of Dominds -------------------------------------------------------------------------------------------------

REMARKS = {
    "tech_spec_url": "https://example.com",
    "api_mgmt_url": "https://example.com",
    "model_param_options": {"a": 1},
}


def dominds_file(minds: Path) -> int:
    """A file of the kind that Dominds ships: 17 providers with 12 models each; how many of its keys are not read."""
    models = {
        f"model-{number}.5": {"name": "M", "context_length": 200_000, "context_window": "200K"} for number in range(12)
    }
    server = {"apiType": "openai-compatible", "baseUrl": "https://example.com/v1", "apiKeyEnvVar": "A_KEY"}
    providers: dict[str, dict[str, Any]] = {
        f"provider-{number}.io": {**server, **REMARKS, "models": models} for number in range(16)
    }
    providers["provider-7.io"] |= {"llm_retry_max_retries": 3}
    providers["codex"] = {**server, **REMARKS, "apiType": "codex", "models": models}
    minds.mkdir(parents=True, exist_ok=True)
    (minds / "llm.yaml").write_text(yaml.safe_dump({"providers": providers}, sort_keys=False))
    return 17 * (3 + 12) + 2


def test_hundreds_of_reports_are_summed_up_what_cannot_be_used_first(settings: Any, tmp_path: Path) -> None:
    settings.MINDS_DIR = tmp_path
    number = dominds_file(tmp_path)
    results = [message for message in catalog_is_sound() if message.id == "health.W001"]
    assert len(current_catalog(tmp_path).problems) == number == 257
    lines = [message.msg.replace(str(tmp_path), "") for message in results]
    assert [line[:70] for line in lines] == [
        "cannot be used: /llm.yaml: providers.codex.apiType: expected one of op",
        "ignored: /llm.yaml: providers.provider-7.io.llm_retry_max_retries: the",
        "remark without effect: /llm.yaml: providers.*.tech_spec_url (17 times,",
        "remark without effect: /llm.yaml: providers.*.api_mgmt_url (17 times, ",
        "remark without effect: /llm.yaml: providers.*.model_param_options (17 ",
        "remark without effect: /llm.yaml: providers.*.models.*.context_window ",
    ]
    assert "(204 times, first providers.provider-0.io.models.model-0.5.context_window)" in lines[-1]
    assert [message.level for message in results] == [checks.WARNING] * 2 + [checks.INFO] * 4
    assert results[-1].hint == "`dominds check_files --details` lists each."


def test_the_command_lists_all_and_fails_for_the_unusable(settings: Any, tmp_path: Path, db: None) -> None:
    settings.MINDS_DIR = tmp_path
    number = dominds_file(tmp_path)

    def warnings_with(*options: str) -> list[str]:
        out = StringIO()
        with pytest.raises(SystemExit):
            call_command("check_files", *options, stdout=out)
        return out.getvalue().splitlines()

    assert len(warnings_with()) == 7
    assert warnings_with()[-1] == f"{number} problems of 6 classes."
    detailed = warnings_with("--details")
    assert len(detailed) == 7 + number - 2
    assert (
        "    providers.codex.models.model-11.5.context_window: a remark for people, which Dominds does not read"
        in detailed
    )
    (tmp_path / "llm.yaml").unlink()
    out = StringIO()
    call_command("check_files", stdout=out)
    assert out.getvalue().strip() == "Nothing is wrong."
    (tmp_path / "context.yaml").write_text("min_limit: [")
    assert warnings_with()[0].startswith(f"cannot be used: {tmp_path}/context.yaml: the file is not YAML")
