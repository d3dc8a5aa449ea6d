"""The texts of pages in other languages: marked, built from catalogs, with the placeholders of the English."""

import gettext
from pathlib import Path

import polib
import pytest

from dominds import texts
from tests import words

NAMES = {"Dominds", "Dominds · Dominds", "dialog-page", "home-page", "optimal_max_tokens"}
CATALOG = r"""
msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=1; plural=0;\n"

#: static/js
msgid "Save"
msgstr "保存"

msgctxt "tab"
msgid "Open"
msgstr "待处理"

msgid "%(n)s model"
msgid_plural "%(n)s models"
msgstr[0] "%(n)s 个模型"

#: static/js
msgid "Later"
msgstr ""
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "static/js").mkdir(parents=True)
    catalog = tmp_path / "locale/zh_Hans/LC_MESSAGES/django.po"
    catalog.parent.mkdir(parents=True)
    catalog.write_text(CATALOG)
    return tmp_path


def test_templates_hold_no_text_that_is_not_marked() -> None:
    results = {(path.name, text) for path in words.TEMPLATES for text in words.bare_words(path.read_text())}
    assert not {(name, text) for name, text in results if text not in NAMES}
    assert words.bare_words('<p title="Open it">{% translate "Known" %} <b>Not</b> {{ x }}</p>') == ["Not", "Open it"]


def test_marked_texts_of_each_kind_of_file_are_found() -> None:
    places = words.marked()
    assert places[words.Text("To the dialogs")][0] == "templates/400.html"
    kinds = {place.rpartition(".")[2] for found in places.values() for place in found}
    assert {"html", "txt", "py", "static/js", "values of Python"} <= kinds


def test_what_is_built_is_what_gettext_and_scripts_read(root: Path) -> None:
    texts.build(root)
    with (root / "locale/zh_Hans/LC_MESSAGES/django.mo").open("rb") as file:
        result = gettext.GNUTranslations(file)
    assert (result.gettext("Save"), result.gettext("Later")) == ("保存", "Later")
    assert (result.pgettext("tab", "Open"), result.gettext("Open")) == ("待处理", "Open")
    assert result.ngettext("%(n)s model", "%(n)s models", 5) == "%(n)s 个模型"
    assert (root / "static/js/phrases.zh-hans.js").read_text() == 'globalThis.phrases = {\n "Save": "保存"\n};\n'


def test_a_changed_catalog_is_built_anew(root: Path) -> None:
    texts.build(root)
    catalog, phrases = root / "locale/zh_Hans/LC_MESSAGES/django.po", root / "static/js/phrases.zh-hans.js"
    first = phrases.stat().st_mtime_ns
    texts.build(root)
    assert phrases.stat().st_mtime_ns == first
    catalog.write_text(CATALOG.replace('msgstr ""\n', 'msgstr "稍后"\n'))
    texts.build(root)
    assert "稍后" in phrases.read_text()


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_translations_keep_placeholders_and_tags(language: str) -> None:
    assert words.differing(polib.pofile(words.catalog_path(language))) == []


def test_a_lost_placeholder_is_noticed() -> None:
    catalog = polib.POFile()
    catalog.append(polib.POEntry(msgid="<b>{n:,}</b> of %(all)s", msgstr="%(all)s 中的 <b>{n:,}</b>"))
    catalog.append(polib.POEntry(msgid="Turn %(seq)s", msgstr="条目 %(number)s"))
    assert words.differing(catalog) == ["Turn %(seq)s"]
