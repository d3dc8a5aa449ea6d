"""Files of recorded dialogs. Each format knows the shape of its files. The first that recognises a file reads it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from remediation.evaluation.dialogs import Dialog
from remediation.evaluation.formats import (
    beam,
    bfcl,
    conformance_kit,
    export,
    locomo,
    openai_messages,
    tau_bench,
    threads,
)

FORMATS = (locomo, tau_bench, threads, beam, conformance_kit, export, openai_messages)


class UnknownFormat(ValueError):
    """No format recognises a file."""


def load(paths: Iterable[Path]) -> tuple[Dialog, ...]:
    """Read all dialogs in files and directories. A directory is one data set: its files may refer to each other.

    Raises ``UnknownFormat`` for a file that no format recognises, and for a directory without any dialog.
    """
    return tuple(dialog for path in paths for dialog in _load_path(path))


def _load_path(path: Path) -> tuple[Dialog, ...]:
    files = sorted(path.rglob("*.json*")) if path.is_dir() else [path]
    contents = [(file, _content(file)) for file in files if file.is_file()]
    rows = [row for _, content in contents for row in bfcl.rows_of(content)]
    others = [(file, content) for file, content in contents if not bfcl.rows_of(content)]
    questions = {file.parent: content for file, content in others if beam.has_questions(content)}
    dialogs = (*bfcl.read(rows), *(dialog for file, content in others for dialog in _read(file, content, questions)))
    if not dialogs:
        raise UnknownFormat(
            f"{path} holds no dialog in a known form: LoCoMo, BEAM, tau-bench, BFCL memory, threads of messages, an "
            "OpenAI message list, our export."
        )
    return dialogs


def _read(path: Path, content: Any, questions: Mapping[Path, Any]) -> Sequence[Dialog]:
    """Read one file's dialogs. ``questions`` are those of BEAM, by the folder that they share with their dialog."""
    if beam.recognises(content):
        return beam.read(content, f"{path.parent.name}-{path.stem}", questions.get(path.parent))
    form = next((form for form in FORMATS if form.recognises(content)), None)
    return form.read(content, path.stem) if form else ()


def _content(path: Path) -> Any:
    """Read a file's JSON, and JSON lines as a list of their values."""
    text = path.read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return list(_lines(path, text))


def _lines(path: Path, text: str) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise UnknownFormat(f"{path}, line {number}, is not JSON: {error}") from error
