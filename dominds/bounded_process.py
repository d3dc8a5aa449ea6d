"""Bounds for a process that reads what somebody sent: a file of 60 kB can become a gigabyte of objects."""

import os
import sys
from contextlib import suppress

NICER = 10


def bound(memory: int, cpu_seconds: int) -> None:
    """Let this process take so many bytes of address space and so much processor time from now on."""
    with suppress(ImportError, ValueError, OSError):  # Windows has none, macOS not all
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        os.nice(NICER)


def environment() -> dict[str, str]:
    """Return the environment of such a process: where the code lies, and none of our secrets."""
    return {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ.get("PATH", ""), "PYTHONIOENCODING": "utf-8"}
