"""That no benchmark rots between two uses: each can be started, and those without servers run,
with as little as they take."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.benchmarks.frameworks import course
from tests.benchmarks.rig import model_server
from tests.harness.postgres import PostgresServer
from tests.harness.stack import ROOT

HERE = Path(__file__).parent
FILES = [file for file in sorted(HERE.rglob("[a-z]*.py")) if not file.name.startswith("test_")]
NAMES = {".".join(file.relative_to(HERE).with_suffix("").parts): file for file in FILES}
PROGRAMS = [name for name, file in NAMES.items() if "\ndef main() -> None:" in file.read_text()]


def run(report: Path, name: str, *arguments: str) -> str:
    command = [sys.executable, "-m", f"tests.benchmarks.{name}", *arguments]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "BENCH_REPORT": str(report)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_each_finds_all_that_it_imports(name: str) -> None:
    import_module(f"tests.benchmarks.{name}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_says_how_it_is_used(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as left:
        import_module(f"tests.benchmarks.{name}").main()
    assert left.value.code == 0
    assert "usage:" in capsys.readouterr().out


def test_each_framework_has_an_adapter_and_its_packages() -> None:
    folder = HERE / "frameworks"
    assert {file.stem for file in folder.glob("*.txt")} == set(course.FRAMEWORKS)
    assert all((folder / f"{name}.py").exists() for name in course.FRAMEWORKS)


@pytest.mark.server
def test_an_adapter_answers_from_what_it_stored(postgres: PostgresServer) -> None:
    """The floor stands for those of the frameworks, whose packages are not here."""
    with (
        model_server() as (_, url),
        course.adapter(postgres, url, "floor", "floor", sys.executable) as floor,
        psycopg.connect(f"host={postgres.folder} user=dominds dbname=of_floor", autocommit=True) as looking,
    ):
        dialog = floor.begin(depth=50, window=None)
        for window, messages in ((None, 102), (40, 42)):  # with the system prompt and the new message
            assert floor.ask(dialog, "What now?", window) > 0
            asked = httpx2.get(f"{url}/asked", trust_env=False).json()
            assert [sent for sent, _ in asked["prose"]] == [messages]
        assert looking.execute("SELECT count(*), max(length(text)) FROM floor").fetchone() == (104, 400)


@pytest.mark.server
def test_the_chain_is_compared(tmp_path: Path) -> None:
    assert "1 dialogs each" in run(tmp_path / "bench.md", "breaking", "--dialogs", "1")


@pytest.mark.server
def test_recall_is_measured(tmp_path: Path) -> None:
    assert "## Recall" in run(tmp_path / "bench.md", "recall", "sqlite", "--turns", "200", "--messages", "8")
