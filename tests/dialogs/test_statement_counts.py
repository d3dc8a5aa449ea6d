"""How many statements, transactions, bytes and pieces the common paths take.
A limit may be lowered; none may be raised.

Each path runs warm: what a process prepares once is no part of it.
Statements are those of the thread that does the work.
"""

import gzip
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection

from dialogs.accounts.api_keys import create_key
from dialogs.actions import access, messages
from dialogs.extras.v1.conversations import begin
from dialogs.extras.v1.ending import finish
from dialogs.extras.v1.history import ClientMessage
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.extras.v1.relay import _read_end
from dialogs.live.frames import badges_of, frames_after
from dialogs.models import ApiKey, Dialog
from dialogs.runtime.driver import drive
from remediation.models import RemediationRun
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import make_dialog
from tests.dialogs.html_tree import elements
from tests.harness.transactions import watched

pytestmark = pytest.mark.django_db(transaction=True)

WARM_UP = 4  # exchanges
# A sequence that has come far makes longer ids.
NUMBERS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b\d+\b")


@dataclass
class Count:
    statements: list[str]
    transactions: int = 0
    sent: int = 0  # characters of values that went to the database, where each id and each number is one


@contextmanager
def counted() -> Iterator[Count]:
    count = Count([])

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        count.statements.append(sql)
        count.sent += sum(len(NUMBERS.sub("0", str(value))) for value in rest[0] or ())
        return execute(sql, *rest)

    with watched() as ended, connection.execute_wrapper(note):
        yield count
    count.transactions = len(ended)


def check(count: Count, statements: int, transactions: int, sent: int) -> None:
    assert len(count.statements) <= statements, "\n".join(count.statements)
    assert count.transactions <= transactions
    assert count.sent <= sent


GROWING: Any = "estimate"  # as prompts mostly do
LEVEL: Any = {"prompt_tokens": 50, "completion_tokens": 5}


def talked(script: Script, usage: Any = LEVEL, **agent: Any) -> Dialog:
    script({"text": "Understood.", "usage": usage})
    dialog = make_dialog(**agent)
    for number in range(WARM_UP):
        messages.post_message(dialog.pk, f"Message {number}")
        drive(dialog.pk)
    return dialog


def test_a_turn(script: Script) -> None:
    dialog = talked(script, GROWING)
    with counted() as posting:
        messages.post_message(access.visible_dialog(dialog.pk, dialog.owner), "One more")
    with counted() as driving:
        drive(dialog.pk)
    check(posting, statements=6, transactions=1, sent=160)  # with the one that says who may
    check(driving, statements=17, transactions=3, sent=809)  # with what the report taught


def test_a_turn_of_a_policy_that_counts(script: Script) -> None:
    dialog = talked(script, GROWING, context_policy="breaking", context_limit=50_000)
    messages.post_message(dialog.pk, "One more")
    with counted() as driving:
        drive(dialog.pk)
    check(driving, statements=20, transactions=3, sent=859)


def test_a_rewrite(script: Script) -> None:
    script({"text": "Understood. " * 40, "usage": "estimate"}, context_length=16_000)
    dialog = make_dialog(context_policy="retention")
    while not RemediationRun.objects.filter(dialog=dialog).exists():
        messages.post_message(dialog.pk, "Do consider this carefully, step by step. " * 20)
        with counted() as driving:
            drive(dialog.pk)
    check(driving, statements=55, transactions=6, sent=48_700)  # four find what recall brings back, for the size after


def test_a_look_at_a_dialog(script: Script) -> None:
    dialog = talked(script)
    browser = browser_of(dialog.owner)
    browser.get(f"/d/{dialog.pk}/")
    with counted() as looking:
        page = browser.get(f"/d/{dialog.pk}/").content.decode()
    check(looking, statements=20, transactions=0, sent=150)
    assert len(elements(page)) <= 76
    assert len(gzip.compress(page.encode())) <= 7_700  # as a browser gets it


def test_the_pieces_of_a_turn_on_an_open_page(script: Script) -> None:
    dialog = talked(script)
    seq = Dialog.objects.get(pk=dialog.pk).last_event_seq
    messages.post_message(dialog.pk, "One more")
    drive(dialog.pk)
    with counted() as drawing:
        frames = frames_after(dialog.pk, dialog.owner_id, seq) or []
    pieces = sum(len(elements(frame.get("html", ""))) for frame in frames)
    size = sum(len(frame.get("html", "")) for frame in frames)
    check(drawing, statements=4, transactions=0, sent=45)
    assert pieces <= 13  # of which one is drawn again below the header
    assert size <= 6_000  # characters, which nothing compresses; names and times differ a little


def test_the_badges_of_open_pages(script: Script) -> None:
    dialog = talked(script)
    badges_of(dialog.owner_id)
    with counted() as counting:
        badges_of(dialog.owner_id)
    check(counting, statements=4, transactions=0, sent=50)


def test_a_call_of_v1(script: Script) -> None:
    dialog = talked(script)
    create_key(dialog.owner)
    key = ApiKey.objects.get(owner=dialog.owner)
    history: list[ClientMessage] = []
    beginning = Count([])
    for text in ("first", "first", "second", "third"):
        history = [] if text == "first" else history
        history.append(ClientMessage("user", text))
        with counted() as calling:
            run = begin(key, ChatRequest(model=dialog.agent_id, messages=tuple(history), tools=[]))
        beginning = calling if text == "first" else beginning
        with counted() as waiting:
            _read_end(run, 0)
        drive(run.dialog_id)
        with counted() as relaying:
            progress = _read_end(run, 0)
            finish(run, progress.status, "Understood.")
        history.append(ClientMessage("assistant", "Understood."))
    check(beginning, statements=11, transactions=1, sent=775)  # one looks for the same that failed
    check(calling, statements=11, transactions=1, sent=485)
    check(waiting, statements=1, transactions=0, sent=16)
    check(relaying, statements=9, transactions=0, sent=121)
