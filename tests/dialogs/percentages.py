"""The percentages of a page, and whether each says what it is a share of."""

import re
from html.parser import HTMLParser

BLOCKS = set(
    """
    address article button caption dd div dt fieldset figcaption figure form h1 h2 h3 header label legend li main nav
    option p section summary table td th title tr
    """.split()
)
HIDDEN = {"script", "style", "textarea"}
SPOKEN = ("title", "aria-label", "hx-confirm")
PERCENT = re.compile(r"\d[\d,.]*\s?%")
OF_WHAT = re.compile(
    r"\bof (the |this )?(\d|window|optimal|(policy's )?(limit|budget)|request and reserve)|capacity"
    r"|utilization exceeds",
    re.IGNORECASE,
)


class Percentages(HTMLParser):
    """``bare`` are the texts with a percentage that nothing beside it explains: neither the words up to the next one,
    nor the head of its column, nor its term in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.bare = set[str]()
        self._words, self._heads, self._column, self._term, self._hidden = list[str](), list[str](), -1, "", False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden = tag in HIDDEN
        for name, value in attrs:
            if name in SPOKEN and value:
                self._judge(value)
        if tag in BLOCKS:
            self._end_block()
        if tag == "table":
            self._heads = []
        elif tag == "tr":
            self._column = -1
        elif tag in ("td", "th"):
            self._column += 1

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False
        if tag not in BLOCKS:
            return
        label = self._term
        if tag == "td" and self._column < len(self._heads):
            label = self._heads[self._column]
        text = self._end_block(label)
        if tag == "th":
            self._heads.append(text)
        elif tag in ("dt", "dd"):
            self._term = text if tag == "dt" else ""

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._words.append(data)

    def _end_block(self, label: str = "") -> str:
        text, self._words = " ".join("".join(self._words).split()), []
        self._judge(text, label)
        return text

    def _judge(self, text: str, label: str = "") -> None:
        if "%" not in text or OF_WHAT.search(label):
            return
        before, *after = PERCENT.split(text)
        if after:
            after[0] = f"{before} … {after[0]}"
        if not all(OF_WHAT.search(words) for words in after):
            self.bare.add(text)
