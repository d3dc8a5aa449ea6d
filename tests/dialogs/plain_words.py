"""Words of a page that are none: identifiers of the code, and plurals of one."""

import re
from html.parser import HTMLParser

VOID = {"area", "br", "circle", "hr", "img", "input", "line", "link", "meta", "path", "rect", "use", "wbr"}
MACHINE = {"code", "kbd", "pre", "script", "style", "textarea"}  # where identifiers belong
SPOKEN = ("alt", "aria-label", "hx-confirm", "placeholder", "title")
IDENTIFIER = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")
PLURAL_OF_ONE = re.compile(r"(?<![\d.,:/])\b1 (?!has\b|is\b|ms\b|was\b)[a-z]+s\b")
ODD = re.compile(f"{IDENTIFIER.pattern}|{PLURAL_OF_ONE.pattern}")


class PlainWords(HTMLParser):
    """``odd`` are the texts with such words that people read or hear. What others wrote stands in ``hx-disable``."""

    def __init__(self, html: str, pattern: re.Pattern[str] = ODD) -> None:
        super().__init__()
        self._pattern = pattern
        self.odd = set[str]()
        self._open = list[bool]()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if not any(self._open):
            for name in SPOKEN:
                self._read(given.get(name) or "")
        if tag not in VOID:
            classes = (given.get("class") or "").split()
            self._open.append(tag in MACHINE or "hx-disable" in given or bool({"mono", "plain"} & {*classes}))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not any(self._open):
            self._read(data)

    def _read(self, text: str) -> None:
        if self._pattern.search(text):
            self.odd.add(" ".join(text.split()))
