"""A launcher for a command that the kernel kills when its parent dies, even by kill -9.

``python launcher.py PARENT_PID COMMAND...`` runs as a plain script. It must start fast, so it imports little.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def main(parent_pid: int, command: list[str]) -> None:
    """Ask the kernel for a signal at the parent's death, and then become the command."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # the parent died before we asked
        sys.exit(1)
    os.execvp(command[0], command)  # nosec B606: the command is our own, and no shell is wanted


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
