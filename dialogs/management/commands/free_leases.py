from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from dialogs.store.lease import free_leases_of


class Command(BaseCommand):
    help = "Hand on the dialogs of a worker that is known to be dead, without waiting for its leases to run out."

    requires_system_checks = ()  # they take seconds, while the dialogs wait

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--worker", required=True, help="the worker's DOMINDS_WORKER name")

    def handle(self, *args: Any, worker: str, **options: Any) -> None:
        self.stdout.write(f"{free_leases_of(worker)} leases freed")
