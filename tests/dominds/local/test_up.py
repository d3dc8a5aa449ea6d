"""``manage.py up`` as people run it: one command, real processes, nothing behind."""

import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
import time
import urllib.parse
import urllib.request
from collections import namedtuple
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from dominds.local.embedded_redis import free_port
from dominds.local.up import BYTECODE_ROOM_BYTES, kept_bytecode
from tests.harness.stack import ROOT, eventually

pytestmark = pytest.mark.server

DiskUsage = namedtuple("DiskUsage", "total used free")

UNSET = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS", "PORT", "DOMINDS_LOG")


@dataclass
class Up:
    """One running ``manage.py up``."""

    process: subprocess.Popen[bytes]
    port: int
    data: Path
    log: Path
    environment: dict[str, str]

    @property
    def output(self) -> str:
        return self.log.read_text()

    def get(self, path: str) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
            return int(answer.status)

    def descendants(self) -> list[psutil.Process]:
        children: list[psutil.Process] = psutil.Process(self.process.pid).children(recursive=True)
        return children

    def part(self, words: str) -> psutil.Process:
        """Return the running part whose command line has these words, waiting for a new one."""
        result: psutil.Process = eventually(
            lambda: next((p for p in self.descendants() if words in _words_of(p)), None)
        )
        return result

    def wait_until_ready(self) -> "Up":
        eventually(lambda: "Dominds is at" in self.output or self.process.poll() is not None, 60)
        assert self.process.poll() is None, self.output
        return self


def launch(folder: Path, *options: str, port: int | None = None, **environment: str) -> Up:
    data, log, port = folder / "data", folder / "up.log", port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    places = {"DOMINDS_DATA_DIR": str(data), "DOMINDS_MINDS_DIR": str(folder / "minds")}
    settings = {**kept, **places, **environment}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "up", "--port", str(port), "--concurrency", "4", *options],
            cwd=folder,  # anywhere but the checkout
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return Up(process, port, data, log, settings)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One instance for the tests that only look, or that it survives."""
    started = launch(
        tmp_path_factory.mktemp("up"),
        DJANGO_SUPERUSER_USERNAME="root-of-all",
        DJANGO_SUPERUSER_PASSWORD="correct horse battery",
    )
    try:
        yield started.wait_until_ready()
    finally:
        started.process.kill()
        started.process.wait()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one instance after another starts: only the first has to lay the database."""
    return tmp_path_factory.mktemp("another")


@pytest.fixture
def another(folder: Path) -> Iterator[Callable[..., Up]]:
    """Start instances of a test's own, and kill what it left running."""
    started: list[Up] = []

    def start(*options: str, **settings: Any) -> Up:
        started.append(launch(folder, *options, **settings))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


def test_the_pages_and_probes_answer(up: Up) -> None:
    assert up.get("/livez") == up.get("/readyz") == up.get("/admin/login/") == 200
    assert up.get("/static/admin/css/base.css") == 200
    assert f"Dominds is at http://127.0.0.1:{up.port}/" in up.output


def test_every_list_opens_on_sqlite(up: Up) -> None:
    """What PostgreSQL takes of a query, SQLite may refuse: an order inside a union was an error on
    every page of questions."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    at = f"http://127.0.0.1:{up.port}"

    def opened(path: str) -> str:
        with opener.open(f"{at}{path}", timeout=20) as answer:
            return str(answer.read().decode())

    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', opened("/login/"))
    assert token is not None
    fields = {"username": "root-of-all", "password": "correct horse battery", "csrfmiddlewaretoken": token[1]}
    request = urllib.request.Request(f"{at}/login/", urllib.parse.urlencode(fields).encode(), {"Referer": at})
    opener.open(request, timeout=20).close()
    lists = {
        "/dialogs/?q=word&all=1",
        "/find/?q=word",
        "/q4h/?tab=mine",
        *re.findall(r'href="(/[a-z0-9/]*)"', opened("/")),
    }
    assert {"/q4h/", "/agents/", "/ops/", "/statistics/", "/people/", "/models/"} < lists
    for path in sorted(lists):
        assert "</html>" in opened(path), path


def test_the_administrator_named_by_the_environment_is_made(up: Up) -> None:
    assert "Made the administrator 'root-of-all'." in up.output
    assert "/setup/" not in up.output


def test_the_process_that_only_waits_is_small(up: Up) -> None:
    assert psutil.Process(up.process.pid).memory_full_info().pss < 30_000_000


def test_what_keeps_it_from_starting_is_said_once(another: Callable[..., Up]) -> None:
    """By the preparation: web and worker, which fail beside it, are not heard."""
    refused = another(SECRET_KEY="", DATABASE_URL="postgres://nobody@127.0.0.1:1/none", DOMINDS_LOG="console")
    assert refused.process.wait(60) == 1
    assert refused.output.count("SECRET_KEY is not set") == 1


def test_the_data_folder_is_private_and_no_password_is_printed(up: Up) -> None:
    assert (up.data.stat().st_mode & 0o077) == 0
    assert ((up.data / "redis.url").stat().st_mode & 0o077) == 0
    password = re.search(r"requirepass (\S+)", (up.data / "redis" / "redis.conf").read_text())
    assert password is not None
    assert password[1] not in up.output
    assert not [process for process in up.descendants() if password[1] in _words_of(process)]


def test_a_killed_worker_is_replaced_under_a_new_name(up: Up) -> None:
    old = up.part("dominds.worker")
    old_name = old.cmdline()[-1]
    old.kill()
    eventually(lambda: "worker ended (code -9); starting it again" in up.output)
    new = up.part("dominds.worker")
    assert new.cmdline()[-1] != old_name
    eventually(lambda: re.search(rf"worker_gone.* leases_freed=0 worker={old_name.removesuffix('@%h')}", up.output))
    assert up.get("/readyz") == 200


def test_a_killed_redis_comes_back_at_its_address(up: Up) -> None:
    up.part("redis-server").kill()
    eventually(lambda: "redis ended (code -9); starting it again" in up.output)
    eventually(lambda: _status(up, "/readyz") == 200)


def test_a_message_whose_wake_was_lost_is_answered(up: Up) -> None:
    """By the sweeper, a thread of the worker, which was killed and started again by the tests before."""
    program = """
        from django.contrib.auth.models import User
        from dialogs.actions.messages import start_dialog
        start_dialog(User.objects.get(), "demo", "", "Hello", "its-wake-is-lost")
    """
    subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "shell", "-c", textwrap.dedent(program)],
        env={**up.environment, "REDIS_URL": "redis://127.0.0.1:1/0"},
        check=True,
    )

    def answer() -> list[tuple[str]]:
        with closing(sqlite3.connect(up.data / "dominds.sqlite3")) as database:
            return database.execute(
                "SELECT text FROM dialogs_turn WHERE role = 'assistant' AND status = 'complete'"
            ).fetchall()

    assert eventually(answer, 30)


def test_a_second_one_in_the_same_data_folder_is_refused(up: Up) -> None:
    second = launch(up.data.parent)
    assert second.process.wait(30) != 0
    assert "Another Dominds runs with the data in" in second.output


def test_a_busy_port_is_said_clearly(another: Callable[..., Up]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = another(port=taken.getsockname()[1])
        assert refused.process.wait(30) != 0
        assert f"Port {taken.getsockname()[1]} on 127.0.0.1 is already in use" in refused.output
        assert "Traceback" not in refused.output


def manage(folder: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A command of ``manage.py`` in a data folder of its own, to its end."""
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    places = {"DOMINDS_DATA_DIR": str(folder / "data"), "DOMINDS_MINDS_DIR": str(folder / "minds")}
    (folder / "minds").mkdir(exist_ok=True)
    command = [sys.executable, str(ROOT / "manage.py"), *words]
    environment = {**kept, **places, **settings}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("words", "settings", "expected"),
    [
        (["up", "--port", "99999"], {}, "--port: found '99999', expected a whole number from 1 to 65535"),
        (["worker", "--concurrency", "-3"], {}, "--concurrency: found '-3', expected a whole number of at least 1"),
        (["up"], {"PORT": "70000"}, "PORT is '70000', but should be a whole number from 1 to 65535."),
        (["createuser", "ada"], {"DOMINDS_LOG": "xml"}, "DOMINDS_LOG is 'xml', but should be one of console, json."),
        (["apikey", "ada"], {}, "The database has no tables of this version. Make them with `dominds prepare`"),
        (["prepare"], {"DATABASE_URL": "sqlite:////proc/x.db"}, "(file /proc/x.db) cannot be used: unable to open"),
        (["overflowing_dialogs", "x", "--multiple", "0"], {}, "--multiple: found '0', expected a number from 0.1"),
    ],
)
def test_what_only_the_caller_can_mend_is_said_in_a_sentence(
    words: list[str], settings: dict[str, str], expected: str, tmp_path: Path
) -> None:
    ended = manage(tmp_path, *words, **settings)
    assert ended.returncode != 0
    assert expected in ended.stderr + ended.stdout
    assert "Traceback" not in ended.stderr + ended.stdout


NOBODY = "127.0.0.1:1"  # no program listens there
COMMANDS = ("up", "worker", "backup file")


def test_a_command_ends_with_one_sentence_without_its_database(tmp_path: Path) -> None:
    settings = {"DATABASE_URL": f"postgres://nobody:secret@{NOBODY}/none", "SECRET_KEY": "s" * 50}
    settings["DOMINDS_PASSWORD"] = "correct horse battery"
    with ThreadPoolExecutor(3) as pool:  # they mostly wait
        ends = {words: pool.submit(manage, tmp_path, *words.split(), **settings) for words in COMMANDS}
    for words, end in ends.items():
        lines = (end.result().stderr + end.result().stdout).splitlines()
        assert end.result().returncode == 1, (words, lines)
        assert len(lines) == 1, (words, lines)
        assert lines[0].startswith("The database (none at 127.0.0.1) cannot be used: connection to server"), words
        assert lines[0].endswith("Connection refused. Start its server, or correct DATABASE_URL."), words


@pytest.mark.parametrize("command", ["up", "worker"])
def test_a_silent_redis_ends_the_start_with_a_sentence(command: str, tmp_path: Path) -> None:
    """`up` printed a line for each try of each part, for ever."""
    ended = manage(tmp_path, command, REDIS_URL=f"redis://:secret@{NOBODY}/0", PORT=str(free_port()))
    expected = (
        "Redis (127.0.0.1:1) cannot be used: Connection refused. "
        "Start it, or correct REDIS_URL; without REDIS_URL, `dominds up` starts one of its own."
    )
    assert ((ended.stderr + ended.stdout).splitlines(), ended.returncode) == ([expected], 1)


def test_a_redis_that_takes_no_such_password_says_so(up: Up, tmp_path: Path) -> None:
    address = (up.data / "redis.url").read_text()
    wrong = re.sub(r":[^:@/]+@", ":wrong@", address)
    ended = manage(tmp_path, "worker", REDIS_URL=wrong)
    assert "cannot be used: invalid username-password pair or user is disabled. Start it" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_setting_s_traceback_is_shown_on_request(tmp_path: Path) -> None:
    ended = manage(tmp_path, "createuser", "ada", "--traceback", DEBUG="maybe")
    assert "Traceback" in ended.stderr


def test_a_python_without_the_packages_is_told_what_to_do() -> None:
    command = [sys.executable, "-I", "-S", str(ROOT / "manage.py"), "up"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert "has no django, which Dominds needs." in ended.stderr
    assert "Traceback" not in ended.stderr


def test_it_is_not_opened_to_the_network_by_accident(another: Callable[..., Up]) -> None:
    refused = another("--host", "0.0.0.0")
    assert refused.process.wait(30) != 0
    assert "ALLOWED_HOSTS is not set" in refused.output


def test_a_stop_ends_everything_within_ten_seconds(another: Callable[..., Up]) -> None:
    started = another().wait_until_ready()
    assert f"make the administrator at http://127.0.0.1:{started.port}/setup/" in started.output
    check_stopped_by(signal.SIGINT, started)


def check_stopped_by(number: signal.Signals, started: Up) -> None:
    processes = started.descendants()
    assert len(processes) >= 3
    asked_at = time.monotonic()
    started.process.send_signal(number)
    assert started.process.wait(15) == 0
    assert time.monotonic() - asked_at < 11
    assert not [process for process in processes if process.is_running()]
    assert "Dominds has stopped." in started.output
    assert not (started.data / "redis.url").exists()


def test_even_kill_9_leaves_nothing_behind_and_the_next_start_works(another: Callable[..., Up]) -> None:
    started = another().wait_until_ready()
    processes = started.descendants()
    started.process.kill()
    started.process.wait()
    eventually(lambda: not [process for process in processes if process.is_running()], 5)
    check_stopped_by(signal.SIGTERM, another(port=started.port).wait_until_ready())


def test_a_part_that_keeps_dying_stops_everything_with_its_last_words(another: Callable[..., Up]) -> None:
    started = another().wait_until_ready()
    processes = started.descendants()
    for _ in range(3):
        web = started.part("daphne")
        web.kill()
        eventually(partial(_is_gone, web))
    assert started.process.wait(20) == 1
    assert "The part 'web' was killed by SIGKILL, for the 3rd time within 60 s." in started.output
    assert not [process for process in processes if process.is_running()]


def _is_gone(process: psutil.Process) -> bool:
    return not _words_of(process)


def _words_of(process: psutil.Process) -> str:
    """Return a process's command line, empty when it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _status(up: Up, path: str) -> int:
    try:
        return up.get(path)
    except OSError:
        return 0


def test_bytecode_is_kept_where_none_may_stand_beside_the_sources(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: DiskUsage(10**9, 0, BYTECODE_ROOM_BYTES))
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{tmp_path}/bytecode"}
    assert kept_bytecode({"PYTHONDONTWRITEBYTECODE": "1"}, tmp_path) == kept
    assert kept_bytecode({}, tmp_path) == {}
    assert kept_bytecode({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "elsewhere"}, tmp_path) == {}


def test_no_bytecode_is_kept_on_a_disk_that_is_nearly_full(tmp_path: Path, monkeypatch: Any) -> None:
    """A file that is cut short by the full disk would stop this start and all later ones."""
    (tmp_path / "bytecode").mkdir()
    (tmp_path / "bytecode/cut.pyc").write_bytes(b"cut")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: DiskUsage(10**9, 10**9, BYTECODE_ROOM_BYTES - 1))
    assert kept_bytecode({"PYTHONDONTWRITEBYTECODE": "1"}, tmp_path) == {}
    assert not (tmp_path / "bytecode").exists()
