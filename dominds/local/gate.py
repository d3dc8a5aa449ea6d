"""The gate for the parts that ``up`` starts: they load their code while the database is prepared, and wait here until
it is."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "DOMINDS_GATE"  # the file whose lock `up` holds; other starts wait for nothing


@contextmanager
def close(folder: Path) -> Iterator[dict[str, str]]:
    """Hold back all parts with this environment until the block ends. The kernel opens the gate if ``up`` dies."""
    path = folder / "up.gate"
    with path.open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield {VARIABLE: str(path)}


def pass_through() -> None:
    """Wait while the gate is closed. A part that starts again later finds it open."""
    if path := os.environ.get(VARIABLE):
        with Path(path).open() as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)
