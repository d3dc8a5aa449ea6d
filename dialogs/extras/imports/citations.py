"""Marks of citations and the like in ChatGPT's answers. ChatGPT's own page shows links and the like in their place."""

import re

from dialogs.extras.imports.conversation import Item, items, mapping, text_of

# A mark begins with U+E200 and ends with U+E201, and U+E202 separates its parts. U+E203 to U+E206 enclose cited text.
MARK = re.compile("\ue200([^\ue200\ue201]*)\ue201")
STRAY = re.compile("[\ue200-\ue206]")
OLDER_MARK = re.compile("\u3010[^\u3010\u3011]{0,200}\u2020[^\u3010\u3011]{0,200}\u3011")
SAYS_ITSELF = ("entity", "url", "link_title")  # kinds of marks whose second part is what people read


def without_marks(text: str, about: Item) -> str:
    """Replace marks by links to the pages that the message's metadata names for them, and remove all other marks."""
    if "\ue200" not in text and "\u3010" not in text:
        return text
    for citation in sorted(items(about.get("citations")), key=_begins, reverse=True):
        begin, end = _begins(citation), citation.get("end_ix")
        if isinstance(end, int) and (mark := OLDER_MARK.fullmatch(text, begin, end)):
            text = text[: mark.start()] + _link(mapping(citation.get("metadata"))) + text[mark.end() :]
    text = OLDER_MARK.sub("", text)
    references = items(about.get("content_references"))
    pages = {text_of(reference.get("matched_text")): _links(reference) for reference in references}
    text = MARK.sub(lambda mark: pages.get(mark[0]) or _words_of(mark[1].split("\ue202")), text)
    return STRAY.sub("", text)


def _links(reference: Item) -> str:
    """Return links to the pages of a reference, each once."""
    listed = items(reference.get("items"))
    inner = [page for item in listed for page in (item, *items(item.get("supporting_websites")))]
    links = dict.fromkeys(link for page in (inner or [reference]) if (link := _link(page)))
    return " ".join(links)


def _link(page: Item) -> str:
    address = text_of(page.get("url"))
    if not address.startswith(("https://", "http://")):
        return ""
    title = re.sub(r"[\[\]\n]", " ", text_of(page.get("title"))).strip() or address
    return f" ([{title}]({address.translate({40: '%28', 41: '%29', 32: '%20'})}))"


def _words_of(parts: list[str]) -> str:
    """Return the words in a mark itself, such as the name of a thing. They are its second part, perhaps in JSON."""
    if parts[0] not in SAYS_ITSELF or len(parts) < 2:
        return ""
    named = re.match(r'\s*\[\s*"[^"]*"\s*,\s*"([^"]*)"', parts[1])
    return named[1] if named else parts[1]


def _begins(citation: Item) -> int:
    begin = citation.get("start_ix")
    return begin if isinstance(begin, int) else 0
