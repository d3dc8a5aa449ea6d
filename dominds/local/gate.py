"""The gate of ``up``: web and worker load their code while the database is prepared, and then wait here until it is."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "DOMINDS_GATE"  # names the file whose lock `up` holds; without it nobody waits


@contextmanager
def close(folder: Path) -> Iterator[dict[str, str]]:
    """Hold back all parts that get this environment until the block ends. If ``up`` dies, the kernel opens the gate."""
    path = folder / "up.gate"
    with path.open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield {VARIABLE: str(path)}


def pass_through() -> None:
    """Wait while the gate is closed. A part that is restarted later finds it open."""
    if path := os.environ.get(VARIABLE):
        with Path(path).open() as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)
