"""``dominds worker``: run only a worker, in the same way as ``up``."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from dominds.local.reachable import require_servers
from dominds.local.up import DEFAULT_CONCURRENCY, new_worker_name, whole_number, worker_command


class Command(BaseCommand):
    help = "Run one worker in place of this process. Needs the database and the Redis that settings name."

    def add_arguments(self, parser: ArgumentParser) -> None:
        answers = whole_number(1)
        parser.add_argument(
            "--concurrency", type=answers, default=DEFAULT_CONCURRENCY, help="answers at once (default %(default)s)"
        )

    def handle(self, *, concurrency: int, **_: Any) -> None:
        require_servers()
        command = worker_command(new_worker_name(), concurrency)
        os.execvp(command[0], command)  # nosec B606: our own command
