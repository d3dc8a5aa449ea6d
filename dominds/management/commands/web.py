"""``dominds web``: a web server alone, as ``up`` starts it."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from dominds import env
from dominds.local.up import DEFAULT_PORT, refuse_open_host, web_command


class Command(BaseCommand):
    help = "Run one web server in place of this process. Needs the database and the Redis that settings name."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        parser.add_argument("--port", type=int, default=None, help="port to listen on (default: PORT, or 8000)")

    def handle(self, *, host: str, port: int | None, **_: Any) -> None:
        refuse_open_host(host)
        command = web_command(host, port or env.number("PORT", default=DEFAULT_PORT, minimum=1))
        os.execv(command[0], command)  # nosec B606: our own command
