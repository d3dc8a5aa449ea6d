"""A page's HTML as something that two pages can be compared by: elements by id,
without what differs from view to view."""

import re
from html.parser import HTMLParser

PIECES = tuple(
    """
    heading subtitle dialog-menu state model-button ring meter activity banner queued composer-state reminders-panel
    """.split()
)
ENTRIES = ("turn-", "round-", "run-")
NOT_ENTRIES = ("round-1", "run-summary-")

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "use", "path", "rect"}
UNLIKE = {"csrfmiddlewaretoken", "client_message_id"}  # fields that are new in each page


class _Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.by_id: dict[str, str] = {}
        self._open: list[tuple[str, str, list[str]]] = []  # tag, id, what stands inside
        self.feed(html)

    def _add(self, text: str) -> None:
        if self._open:
            self._open[-1][2].append(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("name") in UNLIKE:
            return
        words = " ".join(f'{name}="{value or ""}"' for name, value in sorted(given.items()))
        if tag in VOID:
            self._add(f"<{tag} {words}>")
        else:
            self._open.append((tag, given.get("id") or "", [f"<{tag} {words}>"]))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        opened, name, inside = self._open.pop()
        assert opened == tag, f"<{opened}> is closed by </{tag}>"
        whole = "".join(inside) + f"</{tag}>"
        if name:
            self.by_id[name] = whole
        self._add(whole)

    def handle_data(self, data: str) -> None:
        self._add(re.sub(r"\s+", " ", data).strip())


def elements(html: str) -> dict[str, str]:
    """Every element that has an id, as text. Fails where tags are not closed in their order."""
    return _Elements(html).by_id


def in_one_line(html: str) -> str:
    """The HTML with one space wherever its source has white space: how lines are broken says nothing to a browser."""
    return re.sub(r"\s+", " ", html).replace(" >", ">")
