"""Store what a database of a release holds, for the tests of upgrades: ``python -m tests.releases.record 0.1.0``.

The release itself makes its tables and talks in them, on PostgreSQL; tables that stay empty get plain rows.
Its own backup brings the same rows to SQLite.
"""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from uuid import uuid4

from tests.harness.postgres import PostgresServer
from tests.harness.stack import Api, Stack, eventually
from tests.releases.checkout import check_out

DUMPS = Path(__file__).parent / "dumps"
AGENTS = ("demo", "demo-asks", "demo-retention")
MESSAGES = 2


def record(release: str) -> None:
    """Write both dumps of a release."""
    checkout, server = check_out(release), PostgresServer().start()
    settings = {"SECRET_KEY": uuid4().hex * 2, "ALLOWED_HOSTS": "127.0.0.1,localhost"}
    stack = Stack(
        server.create_database("release"), settings=settings, code=checkout.code, python=checkout.python, concurrency=4
    )
    try:
        stack.prepare()
        stack.start_web()
        stack.start_worker()
        stack.start_sweeper()
        eventually(stack.is_ready, 300, every=1)
        stack.create_person("someone")
        _talk(stack.api("someone"))
        for part in stack.parts:
            part.terminate()
        filling = Path(__file__).with_name("filling.py")
        environment = {**stack.environment, "PYTHONPATH": str(checkout.code)}
        subprocess.run([checkout.python, filling], cwd=checkout.code, env=environment, check=True)
        (DUMPS / f"{release}.postgresql.sql").write_text(_postgresql_dump(server))
        (DUMPS / f"{release}.sqlite.sql").write_text(_sqlite_dump(stack))
    finally:
        stack.stop()
        server.remove()


def _talk(api: Api) -> None:
    known = {agent["id"] for agent in api.get("/api/agents").json()}
    assert known >= set(AGENTS), sorted(known)
    addresses = []
    for agent in AGENTS:
        dialog = api.post("/api/dialogs", json={"agent": agent, "title": f"With {agent}"}).json()
        addresses.append(f"/api/dialogs/{dialog['id']}")
        api.post(f"{addresses[-1]}/reminders", json={"text": "Name the port."})
        for number in range(MESSAGES):
            message = {"text": f"Message {number}", "client_message_id": f"m{number}"}
            api.post(f"{addresses[-1]}/messages", json=message).raise_for_status()
    _wait(api, addresses)
    api.post(f"{addresses[0]}/clear", json={"reminder_content": "What was said."}).raise_for_status()
    _wait(api, addresses)


def _wait(api: Api, addresses: list[str]) -> None:
    for address in addresses:
        eventually(partial(_rests, api, address), 120, every=1)


def _rests(api: Api, address: str) -> bool:
    return api.get(address).json()["state"] not in ("queued", "generating")


def _postgresql_dump(server: PostgresServer) -> str:
    options = ["--no-owner", "--no-privileges", "--no-comments", "--rows-per-insert=50"]
    left_out = ["--exclude-table-data=django_session"]
    address = ["-h", str(server.folder), "-U", "dominds", "release"]
    pg_dump = shutil.which("pg_dump") or "pg_dump"
    text = subprocess.run([pg_dump, *options, *left_out, *address], check=True, capture_output=True, text=True).stdout
    lines = [
        line
        for line in text.splitlines()
        if line and not line.startswith(("--", "\\", "SET ", "SELECT pg_catalog.set_config"))
    ]
    return "\n".join(lines) + "\n"


def _sqlite_dump(stack: Stack) -> str:
    file, folder = stack.folder / "portable.tar", stack.folder / "sqlite"
    stack.manage("backup", str(file), "--portable")
    without = {name: value for name, value in stack.environment.items() if name != "DATABASE_URL"}
    environment = {**without, "DOMINDS_DATA_DIR": str(folder)}
    command = [stack.python, "manage.py", "restore", str(file)]
    subprocess.run(command, cwd=stack.code, env=environment, check=True, stdout=sys.stderr)
    with closing(sqlite3.connect(folder / "dominds.sqlite3")) as database:
        return "\n".join(line for line in database.iterdump() if not re.search("sqlite_stat", line)) + "\n"


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    record(sys.argv[1])
