"""Limits for a process that reads a file from outside, since a file of 60 kB can become a gigabyte of objects."""

import os
import sys
from contextlib import suppress

NICER = 10


def bound(memory: int, cpu_seconds: int) -> None:
    """Limit this process to ``memory`` bytes of address space and ``cpu_seconds`` of processor time."""
    with suppress(ImportError, ValueError, OSError):  # Windows has none of these limits, macOS not all
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        os.nice(NICER)


def environment() -> dict[str, str]:
    """Return the environment for such a process: the path of the code, and none of our secrets."""
    return {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ.get("PATH", ""), "PYTHONIOENCODING": "utf-8"}
