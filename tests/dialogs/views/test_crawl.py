"""A crawl of every link and every form of every page, of dialogs in every state:
no fault of ours, no dead link, and no share of nobody knows what. `make faults` opens each dialog at each address."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs, urldefrag, urljoin, urlsplit

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test import Client
from django.urls import Resolver404, resolve

from dialogs.extras.notices import question_mail
from dialogs.models import Dialog, Question
from remediation.models import RemediationRun
from tests.dialogs.browsing import HTMX, browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.every_state import Zoo, operator
from tests.dialogs.factories import UserFactory
from tests.dialogs.percentages import Percentages
from tests.dialogs.plain_words import PlainWords

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]

ELSEWHERE = ("/admin/", "/static/", "/metrics", "/api/", "/logout/")  # of other tests, or not pages
ABSURD = ("x" * 5_000, "-1", "9" * 40, "a\x00b", "💥 <b>' OR 1=1 --")
MOST_ALIKE = 2  # pages of one kind: a long dialog has two hundred, and the catalog a hundred models
STAFF_OPENS = {"answered", "waiting", "suspended", "failed", "rewritten", "with tools", "branched"}
PREVIEWED = {"empty", "long", "waiting", "rewritten", "with tools"}  # by each policy, and opened at each address
SHARE = 3  # of the other dialogs each is opened at its page, at all that this links to, and at a third of the rest
WHOLE = os.environ.get("DOMINDS_FAULTS") == "all"
OF_THE_SCRIPT = "refused_for_good"  # what the scripted provider says when it refuses
NOT_SENT = {"csrfmiddlewaretoken"}


@dataclass
class Form:
    """A form as a page shows it. ``actions`` are the addresses that it and its buttons send to."""

    actions: set[str] = field(default_factory=set)
    method: str = "get"
    fields: dict[str, str] = field(default_factory=dict)


class Html(Percentages):
    """Links, anchors, forms and percentages of one page."""

    def __init__(self, address: str, html: str) -> None:
        super().__init__()
        self.address, self.links, self.ids, self.forms = address, set[str](), set[str](), list[Form]()
        self._by_id: dict[str, Form] = {}
        self._open: Form | None = None
        self._texts: str | None = None
        self.odd_texts = PlainWords(html).odd
        self.feed(html)

    def _to(self, address: str) -> str:
        return urljoin(self.address, address)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.add(given["id"])
        for name in ("href", "hx-get"):
            if given.get(name) and tag in ("a", "form", "div"):
                self.links.add(self._to(given[name]))
        if tag == "form":
            self._open = Form({self._to(given.get("action", ""))}, given.get("method", "get").lower())
            self._by_id[given.get("id", "")] = self._open
            self.forms.append(self._open)
        form = self._by_id.get(given["form"]) if "form" in given else self._open
        if form is not None:
            self._field(form, tag, given)

    def _field(self, form: Form, tag: str, given: dict[str, str]) -> None:
        for name in ("formaction", "hx-post"):
            if name in given:
                form.actions.add(self._to(given[name]))
                form.method = "post"
        if tag == "textarea":
            self._texts = given.get("name")
            form.fields.setdefault(given.get("name", ""), "Some text")
        elif tag in ("input", "select", "button") and given.get("name"):
            chosen = given.get("type") not in ("checkbox", "radio") or "checked" in given
            if chosen or given["name"] not in form.fields:
                form.fields[given["name"]] = given.get("value", "") or "1"

    def handle_endtag(self, tag: str) -> None:
        super().handle_endtag(tag)
        if tag == "form":
            self._open = None


def kind_of(address: str) -> object:
    """The same for addresses that differ only in their numbers and names, such as those of a dialog's turns.
    One page of every dialog is a kind of its own, another view of it (``?at=3``) is not."""
    parts = urlsplit(address)
    try:
        result = resolve(parts.path)
    except Resolver404:
        return address
    queries = frozenset(parse_qs(parts.query))
    return result.view_name, queries or result.kwargs.get("dialog_id")


def read_through(answer: Any) -> None:
    """A streamed file may fail in its middle."""

    async def read() -> None:
        async for _ in answer:
            pass

    if answer.streaming:
        async_to_sync(read)()


class Crawl:
    """One person's walk from ``/`` over every link, or enough of a kind, but for some addresses. ``pages`` are those
    that were answered with HTML, by address."""

    def __init__(self, client: Client, *starts: str, but: tuple[str, ...] = ()) -> None:
        self.client, self.pages, self.problems = client, dict[str, Html](), list[str]()
        client.raise_request_exception = False
        self._but, self._alike = (*ELSEWHERE, *but), Counter[object]()
        self._queue = [start for start in starts or ("/",) if not start.startswith(but)]
        self._seen = set(self._queue)
        while self._queue:
            self._visit(self._queue.pop())

    def _visit(self, address: str) -> None:
        answer = self.client.get(address, follow=True)
        if answer.status_code != 200:
            self.problems.append(f"{answer.status_code} {address}")
            return
        if not answer.get("Content-Type", "").startswith("text/html"):
            read_through(answer)
            return
        page = self.pages[address] = Html(address, answer.content.decode())
        for where in sorted({urldefrag(link).url for link in page.links} - self._seen):
            kind = kind_of(where)
            if not urlsplit(where).netloc and not where.startswith(self._but) and self._alike[kind] < MOST_ALIKE:
                self._alike[kind] += 1
                self._seen.add(where)
                self._queue.append(where)

    @property
    def bare_percentages(self) -> set[str]:
        return {text for page in self.pages.values() for text in page.bare}

    @property
    def odd_words(self) -> dict[str, str]:
        """Texts with identifiers or wrong plurals that people would read, each with a page."""
        texts = ((text, address) for address, page in self.pages.items() for text in page.odd_texts)
        return {text: address for text, address in texts if OF_THE_SCRIPT not in text}

    @cached_property
    def dead_anchors(self) -> list[str]:
        """Links to a place of a page that this page does not have."""
        return sorted(
            f"{page.address}: {link}"
            for page in self.pages.values()
            for link in page.links
            if (place := urldefrag(link).fragment)
            and (target := self.pages.get(urldefrag(link).url)) is not None
            and place not in target.ids
        )

    def forms(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Each address that a form sends to, with the form's page and its fields."""
        for page in self.pages.values():
            for form in page.forms:
                for address in sorted(form.actions):
                    if form.method == "post" and not address.startswith(ELSEWHERE):
                        yield page.address, address, form.fields


@dataclass
class Answer:
    """What came of a POST. ``speaks``: a change was stored, or the person is told something."""

    status: int
    speaks: bool


# An alert or a message, what is shown once, what a tool server answered, and a piece that is nothing but a preview.
SAYS = re.compile(
    r'role="alert"[^>]*>\s*\S|class="(errorlist|message )|id="new-(key|link)"|class="answered" role="status"'
    r'|\A\s*<aside [^>]*id="preview"'
)
SESSIONS = re.compile(r"django_session|last_login")


def send(client: Client, address: str, fields: dict[str, str], **more: object) -> Answer:
    """A POST whose changes are taken back, so that the next one meets the same dialog."""
    written = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if sql.startswith(("INSERT", "UPDATE", "DELETE")) and not SESSIONS.search(sql):
            written.append(sql)
        return result

    client.cookies.pop("messages", None)
    with transaction.atomic(), connection.execute_wrapper(watch):
        answer = client.post(address, fields, **more)  # type: ignore[arg-type]
        transaction.set_rollback(True)
    says = answer.streaming or bool(SAYS.search(answer.content.decode()))
    toasts = "messages" in answer.cookies or "HX-Trigger" in answer.headers
    return Answer(answer.status_code, bool(written) or says or toasts)


PREVIEWS = ("prune", "break", "compact", "fresh_start", "nonsense")


def own_addresses(dialog: Dialog, previews: Iterable[str] = PREVIEWS) -> list[str]:
    """The pages of one dialog, also those that only scripts ask for."""
    pages = (
        "",
        "health/",
        "context/",
        "archive/",
        "export.md",
        "export.json",
        "frames?after=0",
        "predictions/",
        "details/",
        "older",
        "older?before=9",
    )
    tried = (f"context/?preview={kind}" for kind in previews)
    runs = (f"archive/{run.pk}/" for run in RemediationRun.objects.filter(dialog=dialog))
    turns = (f"turn/{turn.seq}/usage/" for turn in dialog.turns.filter(generation__isnull=False)[:MOST_ALIKE])
    asked = (f"/q4h/{question.pk}/" for question in Question.objects.filter(dialog=dialog))
    return [f"/d/{dialog.pk}/{path}" for path in (*pages, *tried, *runs, *turns)] + list(asked)


def test_a_stranger_finds_no_page_of_somebody_else(script: Script) -> None:
    stranger, zoo = browser_of(UserFactory.create()), Zoo(script)
    for make in (zoo.waiting, zoo.rewritten, zoo.archived, zoo.with_files):
        for address in own_addresses(make()):
            assert stranger.get(address).status_code == 404, address
    assert Crawl(stranger).problems == []


@pytest.mark.timeout(600)  # some twelve hundred requests
def test_every_page_opens_and_every_form_acts_or_explains(script: Script, settings: Any) -> None:
    """Of every dialog for its owner, and of a few for an operator. Forms are sent empty, as the page offers them, and
    absurd, with scripts and without."""
    settings.STRICT_WAITS = False  # each form is sent in a transaction of the test's own, to be taken back
    dialogs = Zoo(script).dialogs()
    addresses = []
    for number, (name, dialog) in enumerate(dialogs.items()):
        if WHOLE or name in PREVIEWED:
            addresses += own_addresses(dialog)
        else:
            first, *others = own_addresses(dialog, PREVIEWS[number % len(PREVIEWS) :][:1])
            addresses += [first, *others[number % SHARE :: SHARE]]
    starts = ("/", "/dialogs/", "/dialogs/?state=archived", "/dialogs/?page=99", "/q4h/?tab=mine", *addresses)
    owner = next(iter(dialogs.values())).owner
    tried = set[str]()
    asked = dialogs["waiting"].questions.get()
    starts += (question_mail.link_to(asked, owner),)
    unopened = tuple(f"/d/{dialog.pk}/" for name, dialog in dialogs.items() if name not in STAFF_OPENS)
    for person, but in ((owner, ()), (operator(), unopened)):
        crawl = Crawl(browser_of(person), *starts, but=but)
        assert crawl.problems == []
        assert crawl.dead_anchors == []
        assert crawl.bare_percentages == set()
        assert crawl.odd_words == {}
        assert all(f"/d/{dialog.pk}/" in {*crawl.pages, *but} for dialog in dialogs.values())
        assert list(silent_forms(crawl, tried)) == []
    assert len(tried) > 100


def silent_forms(crawl: Crawl, tried: set[str]) -> Iterator[str]:
    """Forms that fail, or neither change nor say anything. ``tried`` grows by the addresses that they send to.
    The first form of each view is sent everything, and those of further dialogs are sent empty and as offered in turn.
    """
    alike, views = Counter[object](), Counter[str]()
    for page, address, fields in crawl.forms():
        kind = kind_of(address)
        if address in tried or alike[kind]:
            continue
        tried.add(address)
        alike[kind] += 1
        given = {name: value for name, value in fields.items() if name and name not in NOT_SENT}
        sent = [{}, given]
        if not views[view := resolve(urlsplit(address).path).view_name]:
            sent.append(dict.fromkeys(given, ABSURD[len(tried) % len(ABSURD)]))
        elif not WHOLE:
            del sent[views[view] % 2]
        views[view] += 1
        for values in sent:
            headers = HTMX if values is given else None
            answer = send(crawl.client, address, values, headers=headers)
            if answer.status >= 500 or not answer.speaks:
                yield f"{answer.status} {address} of {page} with {str(values)[:80]!r}"
