"""The watch on transactions within the processes of an arena, and what it found there."""

import os
from contextlib import ExitStack
from pathlib import Path

from django.apps import AppConfig

FOLDER = "DOMINDS_WATCHED_TRANSACTIONS"
NOTHING_WATCHED = "no process watched its transactions"


class Watch(AppConfig):
    """Writes a file for each process: empty, or a line for each transaction that did what has no place in one."""

    name, label = "tests.faults", "watch"

    def ready(self) -> None:
        from tests.harness.transactions import MOST_COMPUTED_SECONDS, Transaction, watched

        file = Path(os.environ[FOLDER]) / f"{os.getpid()}.transactions"

        def note(ended: Transaction) -> None:
            wrong = ended.is_wrong(MOST_COMPUTED_SECONDS)
            if wrong or not file.exists():
                with file.open("a") as log:
                    log.write(f"{ended}\n" if wrong else "")

        self._watching = ExitStack()  # as long as the process lives
        self._watching.enter_context(watched(note))


def environment(folder: Path) -> dict[str, str]:
    """Of a process that is to be watched."""
    return {"DJANGO_SETTINGS_MODULE": "tests.faults.watched_settings", FOLDER: str(folder)}


def found_in(folder: Path) -> list[str]:
    files = list(folder.glob("*.transactions"))
    return [line for file in files for line in file.read_text().splitlines()] if files else [NOTHING_WATCHED]
