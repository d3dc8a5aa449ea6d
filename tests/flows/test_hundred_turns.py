"""A hundred turns with large tool results behind LM Studio's API, and how near the estimates come.

``tests/flows/README.md`` holds the table that these tests print with ``-s``.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialogs.models import Dialog, Generation
from remediation.models import RemediationRun
from remediation.tokens.calibration import Calibration, Counted, calibrate
from tests.doubles.brains import Call, Prompt, Reply
from tests.flows import pruner
from tests.flows.conftest import Serve, dialog_with, overflows, say
from tests.flows.texts import prose

pytestmark = pytest.mark.django_db(transaction=True)

FILES = {
    "log.txt": "\n".join(
        f"2026-03-{k % 28 + 1:02} 10:{k % 60:02} INFO worker {k} took 0x{k * 7919:08x}" for k in range(60)
    ),
    "code.py": "\n\n".join(f"def step_{k}(value: int) -> int:\n    return value * {k} + 1" for k in range(60)),
    "prose.txt": prose(1, 1_800),
    "table.json": str([{"id": k, "name": f"Grüße {k}", "price": k * 1.25} for k in range(60)]),
    "words.txt": "Čeština, ελληνικά, 日本語 und Emoji 🚀 stehen hier nebeneinander.\n" * 40,
}


class Reader:
    """Reads one file for each message, then says something about it. Its pruner fails at every third request."""

    def __init__(self, files: int = len(FILES)) -> None:
        self.messages = self.prunes = 0
        self._files = list(FILES)[:files]

    def __call__(self, prompt: Prompt) -> Reply:
        if pruner.is_asked(prompt.body):
            self.prunes += 1
            return pruner.NONSENSE["prose"] if self.prunes % 3 == 0 else pruner.prune(prompt)
        if prompt.last.role == "tool":
            return Reply(f"File read. {prose(self.messages, 60)}")
        self.messages += 1
        return Reply("I look.", calls=(Call("read_file", {"path": self._files[self.messages % len(self._files)]}),))


@pytest.fixture
def files(settings: Any) -> None:
    for name, text in FILES.items():
        (Path(settings.WORKSPACE_DIR) / name).write_text(text)


@pytest.mark.timeout(600)
def test_a_hundred_turns_keep_to_the_window(serve: Serve, files: None) -> None:
    server = serve(window=24_000, api_type="lmstudio")
    server.brain = Reader()
    dialog = dialog_with(server, tools=["read_file"])
    for number in range(100):
        say(dialog, f"Please look at file number {number} and tell me what is in it.")
    assert overflows(server) == 0
    assert dialog.turns.filter(role="user", status="answered").count() == 100
    assert dialog.turns.filter(role="tool", status="ok").count() == 100
    runs = RemediationRun.objects.filter(dialog=dialog, policy="autocompaction")
    assert 8 <= runs.count() <= 40 and all(run.est_after < run.est_before for run in runs)
    assert not dialog.generations.filter(outcome="failed").exclude(purpose="prune").exists()
    raw, calibrated = deviations(dialog)
    print(f"\n100 turns: raw {max(raw):.1%}, calibrated {max(calibrated):.1%}, {runs.count()} compactions")
    assert max(raw) <= 0.05 and max(calibrated[5:]) <= 0.05


@pytest.mark.parametrize(
    ("model", "has_own_tokenizer"),
    [
        ("llama-3.1-8b-instruct", True),
        ("llama-2-7b-chat", True),
        ("mistral-7b-instruct-v0.3", True),
        ("qwen2.5-7b-instruct", False),
    ],
)
def test_estimates_come_within_5_percent_of_the_reported_prompt(
    serve: Serve, files: None, model: str, has_own_tokenizer: bool
) -> None:
    server = serve(model=model, window=60_000, api_type="lmstudio")
    # Where the tokenizer is a stand-in, a text in another script is off until it has been reported once: not read here.
    server.brain = Reader(len(FILES) if has_own_tokenizer else 4)
    dialog = dialog_with(server, tools=["read_file"])
    for number in range(6):
        say(dialog, f"Please look at file number {number} and tell me what is in it.")
    raw, calibrated = deviations(dialog)
    print(f"\n| {model} | {raw[0]:.1%} | {max(raw):.1%} | {max(calibrated[1:]):.1%} |")
    if has_own_tokenizer:
        assert max(raw) <= 0.05
    assert max(calibrated[1:]) <= 0.05


def deviations(dialog: Dialog) -> tuple[list[float], list[float]]:
    """How far estimates were from reports: as counted, and as corrected by what was reported before."""
    rows = dialog.generations.filter(purpose=Generation.Purpose.REPLY, prompt_tokens__isnull=False).order_by("id")
    columns = rows.values_list("est_prompt_tokens", "est_tools_tokens", "prompt_tokens")
    reports = [(counted or 0, tools or 0, reported or 0) for counted, tools, reported in columns]
    raw = [abs(counted - reported) / reported for counted, _, reported in reports]
    return raw, list(_corrected(reports))


def _corrected(reports: list[tuple[int, int, int]]) -> Iterator[float]:
    known: Calibration | None = None
    for total, tools, reported in reports:
        counted = Counted(total - tools, tools)
        yield abs((known.expected(counted) if known else total) - reported) / reported
        known = calibrate(known, counted, reported)
