import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from remediation.evaluation.evaluate import evaluate
from remediation.evaluation.policies import POLICIES
from remediation.evaluation.report import to_markdown
from tests.remediation.evaluation.exports import FRIENDS, MESSAGES, written

ROOT = Path(__file__).parents[3]


def long_friends() -> dict[str, object]:
    lines = [
        {
            "speaker": ("Ben", "Ana")[number % 2],
            "dia_id": f"D3:{number}",
            "text": f"Then came day {number} of the rain.",
        }
        for number in range(1, 120)
    ]
    return {**FRIENDS, "conversation": {**FRIENDS["conversation"], "session_3": lines}}


def test_a_report_names_policies_budgets_and_groups(tmp_path: Path) -> None:
    paths = [written(tmp_path / "friends.json", [long_friends()]), written(tmp_path / "chat.json", MESSAGES)]
    report = evaluate(paths, (800,), (POLICIES["none"], POLICIES["window"]), (0.0, 0.5))
    friends = {(r.policy, r.recall_share): r for r in report.results if r.format == "locomo"}
    assert set(friends) == {("none", 0.0), ("window", 0.0), ("window", 0.5)}
    assert friends["none", 0.0].tallies["evidence in sight"].share == 1.0
    recalled, plain = (friends["window", share].tallies["evidence in sight"] for share in (0.5, 0.0))
    assert recalled.in_sight > plain.in_sight
    assert plain.in_sight + plain.one_search_away + plain.lost == plain.needed == 2
    assert set(friends["window", 0.0].groups["kind"]) == {"multi-hop", "single-hop"}
    assert [(result.format, result.asked) for result in report.searches] == [("locomo", 2)]
    text = to_markdown(report)
    assert "| locomo | 800 | window | 50 % | evidence in sight | 2 |" in text
    assert "## In sight by kind: locomo" in text
    assert json.loads(json.dumps(asdict(report)))["results"][0]["policy"] == "none"


@pytest.mark.server
def test_the_command_prints_and_writes_the_report(tmp_path: Path) -> None:
    path = written(tmp_path / "friends.json", [FRIENDS])
    files = ["--json", str(tmp_path / "out.json"), "--markdown", str(tmp_path / "out.md")]
    command = [sys.executable, "manage.py", "evaluate", str(path), "--policy", "window", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == (tmp_path / "out.md").read_text()
    assert json.loads((tmp_path / "out.json").read_text())["results"][0]["budget"] == 5_000


@pytest.mark.server
def test_the_command_says_what_it_cannot_read(tmp_path: Path) -> None:
    path = written(tmp_path / "odd.json", {})
    command = [sys.executable, "manage.py", "evaluate", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "odd.json holds no dialog" in done.stderr
    assert "Traceback" not in done.stderr
