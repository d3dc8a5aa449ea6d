"""The glossary as a page: what pages call by a word stands there, once."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from dialogs.pages.glossary import groups
from tests.dialogs.browsing import browser_of
from tests.dialogs.factories import UserFactory
from tests.dialogs.html_tree import in_one_line
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


def test_a_term_without_a_translation_is_explained_in_english(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "glossary.md").write_text("## Things\n| ring | round |\n| round | a turn of talk |\n")
    (tmp_path / "docs" / "glossary.xx.md").write_text("## Dinge\n| ring | Kreis | rund |\n")
    settings.RESOURCES = tmp_path
    ((heading, terms),) = groups.__wrapped__("xx")
    assert (heading, [(term.anchor, term.words) for term in terms]) == (
        "Dinge",
        [("ring", "Kreis"), ("round", "round")],
    )


def test_a_translated_glossary_knows_no_other_terms() -> None:
    english, chinese = ({term.anchor for _, group in groups(name) for term in group} for name in ("en", "zh-hans"))
    assert chinese <= english
    assert {"智能体", "圆环"} <= {term.words for _, group in groups("zh-hans") for term in group}


@pytest.mark.django_db
def test_the_page_is_for_who_is_logged_in() -> None:
    page = in_one_line(browser_of(UserFactory.create()).get("/glossary/").content.decode())
    assert re.search('<div id="ring"> ?<dt>ring</dt>', page)
    assert Client().get("/glossary/")["Location"].startswith("/login/")
