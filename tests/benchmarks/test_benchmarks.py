"""That no benchmark rots between two uses: each can be started, and those without servers run, with as little as they take."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.harness.stack import ROOT

HERE = Path(__file__).parent
FILES = [file for file in sorted(HERE.glob("[a-z]*.py")) if file != Path(__file__)]
PROGRAMS = [file.stem for file in FILES if "__main__" in file.read_text()]


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


@pytest.mark.parametrize("name", [file.stem for file in FILES])
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


@pytest.mark.server
def test_the_chain_is_compared(tmp_path: Path) -> None:
    assert "1 dialogs each" in run(tmp_path / "bench.md", "breaking", "--dialogs", "1")


@pytest.mark.server
def test_recall_is_measured(tmp_path: Path) -> None:
    assert "## Recall" in run(tmp_path / "bench.md", "recall", "sqlite", "--turns", "200", "--messages", "8")
