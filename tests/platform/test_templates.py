"""What the white space of templates may do, and what it costs."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.template.loader import get_template

from tests.harness.stack import ROOT

TEMPLATES = sorted([*ROOT.glob("templates/**/*.html"), *ROOT.glob("dialogs/extras/*/templates/**/*.html")])
TEMPLATE_TAG = re.compile(r"{%.*?%}|{{.*?}}")
ELEMENT = re.compile(r"<(\w+)([^>]*)>([^<]*)</\1>")
SHOWS_SPACE = re.compile(r'\bclass="(?:[^"]* )?(?:plain|clamp)(?! handover)[ "]')


def texts(source: str) -> list[str]:
    """Return what elements hold whose white space people see. Browsers drop a first line break of two."""
    results = []
    for name, attributes, text in ELEMENT.findall(TEMPLATE_TAG.sub("x", source)):
        if name in ("pre", "textarea"):
            results.append(text.removeprefix("\n"))
        elif SHOWS_SPACE.search(attributes):
            results.append(text)
    return results


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_line_break_of_a_template_is_seen(path: Path) -> None:
    assert [text for text in texts(path.read_text()) if text != text.strip() or "\n" in text] == []


def test_elements_that_show_their_space_are_found() -> None:
    assert texts('<p class="plain" hx-disable>\n  {{ a }}\n</p>') == ["\n  x\n"]
    assert texts('<div class="body plain folded">{{ a }}</div><ul class="plain-list"> </ul>') == ["x"]
    assert texts("<pre {% if a > b %}hidden{% endif %}> {{ a }}</pre>") == [" x"]
    assert sum(len(texts(path.read_text())) for path in TEMPLATES) > 25


def test_indentation_is_left_out_of_pages_and_lines_keep_their_numbers() -> None:
    name = "dialogs/_turn.html"
    template: Any = get_template(name)
    source, loaded = (ROOT / "templates" / name).read_text(), template.template.source
    assert "\n  " in source and "\n " not in loaded
    assert loaded.count("\n") == source.count("\n")
    assert "\n  " in get_template("questions/mail.txt").template.source  # type: ignore[attr-defined]
