"""Marks of citations and the like in ChatGPT's answers, in whose place its own page draws something else."""

import re

from dialogs.extras.imports.conversation import Item, items, mapping, text_of

# A mark begins with U+E200, its parts stand between U+E202, and it ends with U+E201;
# U+E203 to U+E206 enclose cited text.
MARK = re.compile("\ue200([^\ue200\ue201]*)\ue201")
STRAY = re.compile("[\ue200-\ue206]")
OLDER_MARK = re.compile("\u3010[^\u3010\u3011]{0,200}\u2020[^\u3010\u3011]{0,200}\u3011")
SAYS_ITSELF = ("entity", "url", "link_title")  # kinds of marks whose second part is what people read


def without_marks(text: str, about: Item) -> str:
    """Return the text with links in place of marks whose pages the message's metadata names, without other marks."""
    if "\ue200" not in text and "\u3010" not in text:
        return text
    for one in sorted(items(about.get("citations")), key=_begins, reverse=True):
        begin, end = _begins(one), one.get("end_ix")
        if isinstance(end, int) and (mark := OLDER_MARK.fullmatch(text, begin, end)):
            text = text[: mark.start()] + _link(mapping(one.get("metadata"))) + text[mark.end() :]
    text = OLDER_MARK.sub("", text)
    pages = {text_of(one.get("matched_text")): _links(one) for one in items(about.get("content_references"))}
    text = MARK.sub(lambda mark: pages.get(mark[0]) or _words_of(mark[1].split("\ue202")), text)
    return STRAY.sub("", text)


def _links(reference: Item) -> str:
    """Return links to the pages of a reference, each once."""
    inner = [page for one in items(reference.get("items")) for page in (one, *items(one.get("supporting_websites")))]
    links = dict.fromkeys(link for page in (inner or [reference]) if (link := _link(page)))
    return " ".join(links)


def _link(page: Item) -> str:
    address = text_of(page.get("url"))
    if not address.startswith(("https://", "http://")):
        return ""
    title = re.sub(r"[\[\]\n]", " ", text_of(page.get("title"))).strip() or address
    return f" ([{title}]({address.translate({40: '%28', 41: '%29', 32: '%20'})}))"


def _words_of(parts: list[str]) -> str:
    """Return the words in a mark itself, such as the name of a thing, which stands as JSON in its second part."""
    if parts[0] not in SAYS_ITSELF or len(parts) < 2:
        return ""
    named = re.match(r'\s*\[\s*"[^"]*"\s*,\s*"([^"]*)"', parts[1])
    return named[1] if named else parts[1]


def _begins(citation: Item) -> int:
    begin = citation.get("start_ix")
    return begin if isinstance(begin, int) else 0
