import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    texts = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"Message {n} says {n * 7}."} for n in range(20)
    ]
    path = tmp_path / "dialog.json"
    path.write_text(json.dumps(texts))
    return path


def test_it_prints_the_tables_and_writes_them_as_markdown_and_json(messages: Path, tmp_path: Path) -> None:
    out, markdown, figures = StringIO(), tmp_path / "report.md", tmp_path / "report.json"
    call_command(
        "evaluate",
        str(messages),
        "--policy",
        "window",
        "--policy",
        "masking",
        "--budget",
        "200",
        "--recall",
        "0",
        "--words",
        "--markdown",
        str(markdown),
        "--json",
        str(figures),
        stdout=out,
    )
    assert out.getvalue() == markdown.read_text()
    assert "What it costs" in out.getvalue()
    results = json.loads(figures.read_text())["results"]
    assert [(row["policy"], row["budget"], row["recall_share"]) for row in results] == [
        ("window", 200, 0.0),
        ("masking", 200, 0.0),
    ]
    assert results[0]["rewrites"] > 0


def test_a_file_without_dialogs_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"no": "dialog"}')
    with pytest.raises(CommandError, match=r"notes\.json"):
        call_command("evaluate", str(tmp_path / "notes.json"))
    with pytest.raises(CommandError, match="absent"):
        call_command("evaluate", str(tmp_path / "absent.json"))
