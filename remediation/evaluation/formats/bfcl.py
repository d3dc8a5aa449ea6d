"""BFCL's memory files: rows of a person's statements over weeks, of questions, and of answers.

A scenario joins statements and questions, and an id joins a question and its answer.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dominds.llm.messages import Message, Role
from remediation.evaluation.dialogs import Dialog, Probe, Turn
from remediation.evaluation.formats.openai_messages import text_of

Row = Mapping[str, Any]


def rows_of(content: Any) -> Sequence[Row]:
    """Return a file's rows, or none if it is of another format. A file of one line holds one row."""
    rows = content if isinstance(content, list) else [content]
    return rows if all(map(_is_row, rows)) else ()


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("id"), str) and ("ground_truth" in row or _is_asked(row))


def _is_asked(row: Row) -> bool:
    return "scenario" in row and isinstance(row.get("question"), list)


def read(rows: Sequence[Row], name: str = "bfcl") -> tuple[Dialog, ...]:
    """Make one dialog for each scenario. Rows that have an answer are its questions, and all others its turns."""
    answers = {row["id"]: row["ground_truth"] for row in rows if "ground_truth" in row}
    by_scenario: dict[str, list[Row]] = defaultdict(list)
    asked: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if "ground_truth" not in row:
            (asked if row["id"] in answers else by_scenario)[row["scenario"]].append(row)
    return tuple(
        Dialog(f"{name}-{scenario}", "bfcl", tuple(_turns(sessions)), tuple(_probes(asked[scenario], answers)))
        for scenario, sessions in by_scenario.items()
    )


def _messages(row: Row) -> Iterator[Mapping[str, str]]:
    for turn in row["question"]:
        yield from turn if isinstance(turn, list) else [turn]


def _turns(sessions: Sequence[Row]) -> Iterator[Turn]:
    for row in sessions:
        for number, item in enumerate(_messages(row), 1):
            text = text_of(item["content"])
            role = Role.ASSISTANT if item["role"] == "assistant" else Role.USER
            yield Turn(f"{row['id']}:{number}", item["role"], Message(role, text), text)


def _probes(questions: Sequence[Row], answers: Mapping[str, Any]) -> Iterator[Probe]:
    for row in questions:
        truth = answers[row["id"]]
        texts = tuple(str(text) for text in (truth if isinstance(truth, list) else [truth]))
        yield Probe("\n".join(text_of(item["content"]) for item in _messages(row)), "answer", answers=texts)
