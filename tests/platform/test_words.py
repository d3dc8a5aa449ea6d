"""The texts of pages in other languages: complete, compiled as they are written,
and no template has words beside them."""

import gettext
from io import BytesIO

import pytest

from tests import words

NAMES = {"Dominds", "Dominds · Dominds", "dialog-page", "home-page", "optimal_max_tokens"}


def test_templates_hold_no_text_that_is_not_marked() -> None:
    results = {(path.name, text) for path in words.TEMPLATES for text in words.bare_words(path.read_text())}
    assert not {(name, text) for name, text in results if text not in NAMES}
    assert words.bare_words('<p title="Open it">{% translate "Known" %} <b>Not</b> {{ x }}</p>') == ["Not", "Open it"]


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_a_catalog_is_whole_and_its_files_are_made_of_it(language: str) -> None:
    path = words.catalog_path(language)
    catalog, places = words.read(path), words.marked()
    assert set(catalog.texts) == set(places), "make words"
    assert words.differing(catalog) == []
    assert path.read_text() == words.written(catalog, places)
    assert path.with_suffix(".mo").read_bytes() == words.compiled(catalog)
    assert words.phrases_path(language).read_text() == words.phrases(catalog)


def test_a_compiled_catalog_is_what_gettext_reads() -> None:
    head = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Plural-Forms: nplurals=1; plural=0;\\n"'
    text = {
        words.Text("Save"): "保存",
        words.Text("Open", context="tab"): "待处理",
        words.Text("%(n)s model", "%(n)s models"): "%(n)s 个模型",
        words.Text("Later"): "",
    }
    result = gettext.GNUTranslations(BytesIO(words.compiled(words.Catalog(head, text))))
    assert (result.gettext("Save"), result.gettext("Later")) == ("保存", "Later")
    assert (result.pgettext("tab", "Open"), result.gettext("Open")) == ("待处理", "Open")
    assert result.ngettext("%(n)s model", "%(n)s models", 5) == "%(n)s 个模型"


def test_a_translation_keeps_placeholders_and_tags() -> None:
    text = {
        words.Text("<b>{n:,}</b> of %(all)s"): "%(all)s 中的 <b>{n:,}</b>",
        words.Text("Turn %(seq)s"): "条目 %(number)s",
    }
    assert words.differing(words.Catalog("", text)) == ["Turn %(seq)s"]
