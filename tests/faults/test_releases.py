"""A release takes the place of the one before under load, and gives it back: nobody's message fails or waits.

Run by ``make faults ARGS="-k takes_over"``, with the history of git: the code of the release before comes from its
commit.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.harness.postgres import PostgresServer
from tests.harness.stack import Api, Part, Stack, eventually
from tests.releases.checkout import check_out
from tests.releases.databases import RELEASES, VENDORS

PEOPLE = 2
MOST_SECONDS = 60  # for an answer of a second, on a machine with two cores for everything
EXCHANGES = 2  # of each person in each stage
MODEL = {"name": "Play", "script": "script.yaml", "context_length": 32_000}
SCRIPT = {"steps": [{"text": "Understood. " * 5, "usage": "estimate", "chunk_delay_ms": 20}]}


@dataclass
class Person:
    """One who writes a message, waits for its answer and writes the next one, at whichever web server there is."""

    name: str
    key: str
    webs: list[Stack]
    answered: int = 0
    slowest: float = 0.0
    problems: list[str] = field(default_factory=list)

    def talk(self, until: threading.Event) -> None:
        dialog = self._call("POST", "/api/dialogs", {"agent": "player"})["id"]
        while not until.is_set():
            number, began = self.answered + 1, time.monotonic()
            message = {"text": f"Message {number} of {self.name}", "client_message_id": f"m{number}"}
            self._call("POST", f"/api/dialogs/{dialog}/messages", message)
            while (state := self._call("GET", f"/api/dialogs/{dialog}")["state"]) in ("queued", "generating"):
                if time.monotonic() - began > MOST_SECONDS:
                    self.problems.append(f"{message['text']} waits")
                    return
                time.sleep(0.3)
            turns = self._call("GET", f"/api/dialogs/{dialog}/turns?limit=1000")
            answers = [turn for turn in turns if turn["role"] == "assistant" and turn["status"] == "complete"]
            if state != "idle" or len(answers) != number:
                self.problems.append(f"{message['text']}: {state}, {len(answers)} answers")
                return
            self.answered, self.slowest = number, max(self.slowest, time.monotonic() - began)

    def _call(self, method: str, path: str, body: object = None) -> Any:
        """Ask the web servers in turn, as a proxy does; a refused connection or a 503 goes to the next."""
        deadline = time.monotonic() + MOST_SECONDS
        while True:
            for web in list(self.webs):
                try:
                    with Api(web.base_url, self.key) as api:
                        answer = api.request(method, path, json=body)
                except httpx2.TransportError:
                    continue
                if answer.status_code < 400:
                    return answer.json()
                if answer.status_code != 503:
                    raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
            assert time.monotonic() < deadline, f"{method} {path}: nobody answers"
            time.sleep(0.2)


@contextmanager
def talking(people: list[Person]) -> Iterator[None]:
    until = threading.Event()

    def run(person: Person) -> None:
        try:
            person.talk(until)
        except Exception as error:  # noqa: BLE001  told by the test, on its own thread
            person.problems.append(repr(error))

    threads = [threading.Thread(target=run, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        until.set()
        for thread in threads:
            thread.join()


def exchange(people: list[Person]) -> None:
    """Wait until each person has had some more answers."""
    wanted = [person.answered + EXCHANGES for person in people]
    eventually(
        lambda: (
            any(person.problems for person in people)
            or all(person.answered >= number for person, number in zip(people, wanted, strict=True))
        ),
        seconds=5 * MOST_SECONDS,
    )
    assert not [problem for person in people for problem in person.problems]


def start_parts(stack: Stack) -> list[Part]:
    parts = [stack.start_web(), stack.start_worker(), stack.start_sweeper()]
    eventually(stack.is_ready, 5 * MOST_SECONDS)
    return parts


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("release", RELEASES)
def test_a_release_takes_over_and_gives_back_under_load(
    release: str, vendor: str, postgres: PostgresServer, tmp_path: Path
) -> None:
    before = check_out(release)
    url = postgres.create_database("rolling") if vendor == "postgresql" else f"sqlite:///{tmp_path}/dominds.sqlite3"
    settings = {
        "SECRET_KEY": uuid4().hex * 2,
        "ALLOWED_HOSTS": "127.0.0.1",
        "DOMINDS_MINDS_DIR": str(tmp_path / "minds"),
    }
    old = Stack(url, concurrency=4, settings=settings, code=before.code, python=before.python)
    new = Stack(url, concurrency=4, settings=settings, redis=old.redis)
    place_minds(tmp_path / "minds")
    webs: list[Stack] = [old]
    try:
        old.prepare()
        parts = start_parts(old)
        people = []
        for number in range(PEOPLE):
            old.create_person(f"person{number}")
            people.append(Person(f"person{number}", old.manage("apikey", f"person{number}").strip(), webs))
        with talking(people):
            exchange(people)
            new.prepare()  # the old processes go on with the new tables
            exchange(people)
            newer = start_parts(new)  # both at once
            webs.append(new)
            exchange(people)
            webs.remove(old)
            for part in reversed(parts):
                part.terminate()
            exchange(people)
            parts = start_parts(old)  # the way back: the tables stay as they are
            webs.insert(0, old)
            exchange(people)
            webs.remove(new)
            for part in reversed(newer):
                part.terminate()
            exchange(people)
        assert not [problem for person in people for problem in person.problems]
        print([(person.answered, round(person.slowest, 1)) for person in people])
    except AssertionError:
        print("old:", old.logs(), "new:", new.logs(), sep="\n")
        raise
    finally:
        new.stop()
        old.stop()


def place_minds(folder: Path) -> None:
    folder.mkdir()
    placing = Stack("", folder=folder.parent)
    placing.place_minds(
        llm={"providers": {"play": {"name": "Play", "apiType": "scripted", "models": {"model": MODEL}}}},
        script=SCRIPT,
        team={"members": {"player": {"name": "Player", "provider": "play", "model": "model"}}, "demo_agents": False},
    )
