"""``dominds web``: run only a web server, in the same way as ``up``."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from dominds.local.reachable import require_servers
from dominds.local.up import add_port, port_of, refuse_open_host, web_command


class Command(BaseCommand):
    help = "Run one web server in place of this process. Needs the database and the Redis that settings name."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        add_port(parser)

    def handle(self, *, host: str, port: int | None, **_: Any) -> None:
        refuse_open_host(host)
        require_servers()
        command = web_command(host, port_of(port))
        os.execv(command[0], command)  # nosec B606: our own command
