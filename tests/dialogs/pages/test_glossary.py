"""The glossary as a page: what pages call by a word stands there, once."""

import re

import pytest
from django.test import Client

from dialogs.pages.glossary import groups
from tests.dialogs.browsing import browser_of
from tests.dialogs.factories import UserFactory
from tests.harness.stack import ROOT

CITED = re.compile(r'{% term "([^"]+)"')
TEMPLATES = [*ROOT.glob("templates/**/*.html"), *ROOT.glob("dialogs/extras/*/templates/**/*.html")]


def test_each_word_that_pages_link_is_explained_once() -> None:
    terms = [term for _, group in groups() for term in group]
    anchors = [term.anchor for term in terms]
    cited = {word for page in TEMPLATES for word in CITED.findall(page.read_text())}
    assert len(anchors) == len(set(anchors)) > 60 and "" not in anchors
    assert cited and cited <= set(anchors)
    assert not [term for term in terms if "](" in term.meaning or "<a" in term.meaning]


def test_a_translated_glossary_explains_the_same_words() -> None:
    assert [term.anchor for _, group in groups("zh-hans") for term in group] == [
        term.anchor for _, group in groups() for term in group
    ]
    assert {"智能体", "圆环"} <= {term.words for _, group in groups("zh-hans") for term in group}


@pytest.mark.django_db
def test_the_page_is_for_who_is_logged_in() -> None:
    page = browser_of(UserFactory.create()).get("/glossary/").content.decode()
    assert '<div id="ring"><dt>ring</dt>' in page
    assert Client().get("/glossary/")["Location"].startswith("/login/")
