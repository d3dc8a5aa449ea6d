"""What a browser that has nothing asks for until a page can be used: requests, and compressed bytes."""

import re

import pytest
from django.test import Client

from dialogs.models import Agent
from tests.benchmarks.seeding import dialog_at
from tests.dialogs.browsing import browser_of
from tests.dialogs.conftest import Script
from tests.dialogs.factories import AgentFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

ZIPPED = {"Accept-Encoding": "gzip"}
HEADERS_BYTES = 600  # of an answer, at most
ASKED_FOR = re.compile(r'<(?:link rel="stylesheet"|link\s+rel="preload"|script)[^>]*?(?:href|src)="([^"]+)"')


def cold_load(browser: Client, address: str) -> tuple[int, int]:
    """Return the requests and bytes of a page with all that it needs."""
    page = browser.get(address, headers=ZIPPED)
    assert page.status_code == 200 and page["Content-Encoding"] == "gzip"
    text = browser.get(address).content.decode()
    parts = [*ASKED_FOR.findall(text), re.search(r'data-icons="([^"]+)"', text)[1]]  # type: ignore[index]
    answers = [page, *(browser.get(part, headers=ZIPPED) for part in parts)]
    assert all(answer.status_code == 200 for answer in answers), parts
    assert all("immutable" in answer["Cache-Control"] for answer in answers[1:]), "later pages ask for nothing again"
    return len(answers), sum(len(answer.content) + HEADERS_BYTES for answer in answers)


def test_a_cold_page_is_small_and_asks_for_little(script: Script) -> None:
    script({"text": "Noted."})
    agent: Agent = AgentFactory.create(is_default=True)
    owner = UserFactory.create()
    browser, dialog = browser_of(owner), dialog_at(1_000, agent, owner)
    requests, size = cold_load(browser, "/")
    assert requests <= 14 and size < 150_000, (requests, size)
    requests, size = cold_load(browser, f"/d/{dialog.pk}/")
    assert requests <= 16 and size < 200_000, (requests, size)
