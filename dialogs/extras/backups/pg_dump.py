"""PostgreSQL's own tools for dumps. They get passwords from their environment, never from their arguments."""

import os
import re
import shutil
import subprocess  # nosec B404: fixed programs with arguments of our own
from pathlib import Path
from typing import Any

import structlog

log = structlog.get_logger(__name__)

TOOLS = ("pg_dump", "pg_restore", "psql")
SSL = {"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY"}


class ToolFailed(Exception):
    """Raised when a tool ended with an error. The message is the end of the tool's own."""


def can_dump(connection: Any) -> bool:
    """Check that the tools are installed, and not older than the server, of which older ones can make no dump."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        log.info("portable_dump", reason=f"{', '.join(missing)} is not on the PATH")
        return False
    version = subprocess.run(["pg_dump", "--version"], capture_output=True, text=True, check=False).stdout  # nosec
    match = re.search(r"(\d+)(?:\.|\b)", version)
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        server = int(cursor.fetchone()[0]) // 10_000
    if match is None or int(match[1]) < server:
        log.info("portable_dump", reason=f"pg_dump is older ({version.strip()}) than the server ({server})")
        return False
    return True


def dump(connection: Any, target: Path, *, without_rows_of: str) -> Path:
    """Make one consistent snapshot of the database, compressed."""
    options = ["--format=custom", "--no-owner", "--no-privileges", f"--exclude-table-data=*.{without_rows_of}"]
    _run(connection, ["pg_dump", *options, f"--file={target}"])
    return target


def restore(connection: Any, source: Path) -> None:
    """Replace every table by those of the dump, in one transaction."""
    script, drops = source.with_suffix(".sql"), source.with_suffix(".drop.sql")
    _run(connection, ["pg_restore", "--no-owner", "--no-privileges", f"--file={script}", str(source)])
    quote = connection.ops.quote_name
    drops.write_text("".join(f"DROP TABLE {quote(name)} CASCADE;\n" for name in connection.introspection.table_names()))
    connection.close()
    files = [f"--file={drops}", f"--file={script}"]
    _run(connection, ["psql", "--quiet", "--no-psqlrc", "--single-transaction", "--set=ON_ERROR_STOP=1", *files])


def _run(connection: Any, command: list[str]) -> None:
    done = subprocess.run(command, env=_environment(connection), capture_output=True, text=True, check=False)  # nosec
    if done.returncode != 0:
        raise ToolFailed(f"{command[0]} failed: {done.stderr.strip()[-2000:]}")


def _environment(connection: Any) -> dict[str, str]:
    given = connection.settings_dict
    named = {
        "PGHOST": given["HOST"],
        "PGPORT": str(given["PORT"] or ""),
        "PGUSER": given["USER"],
        "PGPASSWORD": given["PASSWORD"],
        "PGDATABASE": given["NAME"],
        **{variable: given["OPTIONS"].get(option, "") for option, variable in SSL.items()},
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return kept | {name: value for name, value in named.items() if value}
