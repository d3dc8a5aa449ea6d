"""Daphne, whose event loop can be blocked from outside: on SIGUSR2 its thread sleeps for five seconds.

Python runs signal handlers on the main thread, which is the loop's. Takes Daphne's own options.
"""

import signal
import time

from daphne.cli import CommandLineInterface

BLOCKED_SECONDS = 5

if __name__ == "__main__":
    signal.signal(signal.SIGUSR2, lambda *_: time.sleep(BLOCKED_SECONDS))
    CommandLineInterface.entrypoint()
