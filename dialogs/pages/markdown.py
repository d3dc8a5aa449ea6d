"""Models' Markdown as HTML that can only be read.

There are three fences, each of which would be enough: the parser knows no raw HTML, the renderer makes no images and
few links, and nh3 allows only listed tags, attributes and class names. A streamed answer is rendered block by block as
blocks are finished; the full rendering at its end differs only if a link's definition comes after its use.
"""

import functools
import re
import unicodedata
from collections.abc import Callable, MutableMapping, Sequence
from hashlib import blake2s
from typing import Any
from urllib.parse import urlsplit

import nh3
from django.utils.html import escape
from linkify_it import LinkifyIt
from linkify_it.main import Match
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline, emphasis, strikethrough
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin
from pygments import highlight as colour
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES

from dialogs.pages.math import MATH_ATTRIBUTES, MATH_TAGS, add_math
from dominds.budgets import TURN_CHARS

MARKDOWN_MAX_CHARS = 200_000  # longer texts are shown as they are
HIGHLIGHT_MAX_CHARS = 20_000  # per code block
HIGHLIGHT_TOTAL_CHARS = 100_000  # per text
CACHED_MAX_CHARS = 40_000

LANGUAGE_NAMES = (
    "bash c c++ cpp c# csharp css clojure diff docker dockerfile elixir erlang go graphql groovy haskell hcl html ini "
    "java javascript js json jsx kotlin lua makefile markdown md nginx objective-c ocaml perl php powershell properties"
    " protobuf py python r rb ruby rs rust scala scss sh shell sql swift terraform toml ts tsx typescript vim xml yaml "
    "yml zig zsh"
)
LANGUAGES = frozenset(LANGUAGE_NAMES.split())
_AFTER_WWW = re.compile(r"[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}(?::\d{1,5})?(?:[/?#][^\s<>()]{0,2000})?")
_FULL_WIDTH_MARKS = (
    "\u201c\u201d\u2018\u2019\u2026\u3001-\u3003\u3008-\u3011\u3014-\u301f"
    "\uff01\uff02\uff07-\uff0c\uff0e\uff1a-\uff1f\uff3b-\uff3d\uff5b-\uff65"
)
_BETWEEN_MARKS = re.compile(f"[^{_FULL_WIDTH_MARKS}]+")
# The length is bounded, since a word is searched at each address.
_FIRST_WORD = re.compile(rf"([^\s{_FULL_WIDTH_MARKS}]{{1,2000}})([{_FULL_WIDTH_MARKS}]?)")
_LINE_END = re.compile(r"\r\n?|\n")
_HL = "hl-"
_FORMATTER = HtmlFormatter(nowrap=True, classprefix=_HL)

Env = MutableMapping[str, Any]


def render(text: str) -> str:
    """Render the whole text as safe HTML."""
    return _cached(text) if len(text) <= CACHED_MAX_CHARS else _render(text)


def _render(text: str) -> str:
    if len(text) > MARKDOWN_MAX_CHARS:
        return f'<pre tabindex="0"><code>{escape(text)}</code></pre>'
    return _link_footnotes(_clean(_parser().render(text, {})))


_cached = functools.lru_cache(maxsize=512)(_render)


def finished_chars(text: str) -> int:
    """Count the characters of a growing text that no later text can change: all but a last block that is open."""
    complete = text[: text.rfind("\n") + 1]
    blocks = [token for token in _block_parser().parse(complete, {}) if token.level == 0 and token.map]
    # An open formula: if it closes, it ends the block before it, and otherwise it is part of that block.
    if blocks and blocks[-1].type == "math_open":
        blocks.pop()
    if not blocks:
        return 0
    lines = _LINE_END.split(complete)
    first, last = blocks[-1].map or (0, 0)
    finished_lines = last if _is_closed(blocks[-1], lines) else first
    ends = [match.end() for match in _LINE_END.finditer(complete)]
    return ends[finished_lines - 1] if finished_lines else 0


def _is_closed(block: Token, lines: list[str]) -> bool:
    """Check whether a block has an end of its own, so that nothing after it can belong to it."""
    if block.type == "fence" and block.map:
        closing = re.compile(rf" {{0,3}}{block.markup}{block.markup[0]}*[ \t]*")
        return block.map[1] - block.map[0] > 1 and closing.fullmatch(lines[block.map[1] - 1]) is not None
    return block.type == "hr" or (block.type == "heading_open" and block.markup.startswith("#"))


class GrowingText:
    """A growing draft: the ``html`` of its finished blocks, and the open tail as plain text."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.html = ""
        self.blocks = 0  # how often ``finish`` added HTML, by which a browser notices that it missed some
        self._finished = 0

    @property
    def tail(self) -> str:
        return self.text[self._finished :]

    def newly_finished(self) -> tuple[int, str]:
        """Return how many characters of the tail are finished by now, and their HTML. Any thread may call it."""
        tail = self.tail
        if len(self.text) > min(MARKDOWN_MAX_CHARS, TURN_CHARS.most) or not (chars := finished_chars(tail)):
            return 0, ""
        return chars, _render(tail[:chars])

    def finish(self, chars: int, html: str) -> None:
        """Take over the result of ``newly_finished``."""
        if chars:
            self._finished += chars
            self.html += html
            self.blocks += 1


# -- Parser and renderer -----------------------------------------------------------------------------------------------


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": True, "tasklists": True})
    parser.enable(["table", "strikethrough", "linkify"])
    parser.inline.ruler.at("emphasis", _beside_wide_letters(emphasis.tokenize))
    parser.inline.ruler.at("strikethrough", _beside_wide_letters(strikethrough.tokenize))
    parser.linkify = _Addresses()
    parser.linkify.set({"fuzzy_link": False, "fuzzy_email": True, "fuzzy_ip": False})  # README.md is a file
    parser.linkify.add("//", None).add("ftp:", None).add("www.", {"validate": _www, "normalize": _from_www})
    add_math(parser)
    footnote_plugin(parser, inline=False)
    for rule, function in (
        ("fence", _code),
        ("code_block", _code),
        ("image", _image),
        ("link_open", _link_open),
        ("link_close", _link_close),
        ("heading_open", _heading),
        ("heading_close", _heading),
        ("table_open", _table_open),
        ("table_close", _table_close),
        ("th_open", _cell),
        ("td_open", _cell),
        ("list_item_open", _list_item),
        ("footnote_ref", _footnote_mark),
        ("footnote_block_open", lambda *_: '<ol class="footnotes">\n'),
        ("footnote_block_close", lambda *_: "</ol>\n"),
        ("footnote_open", lambda *_: '<li class="note">'),
        ("footnote_anchor", _way_back),
    ):
        parser.add_render_rule(rule, function)
    return parser


def _beside_wide_letters(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """Return a rule of emphasis for Chinese, Japanese and Korean, which have no spaces between words.

    There a mark opens before, and closes behind, anything but white space. CommonMark looks at punctuation, and would
    leave the asterisks in the text.
    """

    def tokenize(state: StateInline, silent: bool) -> bool:
        start, known = state.pos, len(state.delimiters)
        done = rule(state, silent)
        if done and state.src[start] != "_":
            before, behind = state.src[start - 1 : start], state.src[state.pos : state.posMax][:1]
            if _is_wide(before) or _is_wide(behind):
                for delimiter in state.delimiters[known:]:
                    delimiter.open = delimiter.open or bool(behind.strip())
                    delimiter.close = delimiter.close or bool(before.strip())
        return done

    return tokenize


def _is_wide(character: str) -> bool:
    return bool(character) and unicodedata.east_asian_width(character) in "WFH"


class _Addresses(LinkifyIt):  # type: ignore[misc]  # it ships no types
    """A finder of addresses in a text. An address ends before full-width punctuation, which belongs to the sentence."""

    def match(self, text: str) -> list[Match] | None:
        found: list[Match] = []
        for part in _BETWEEN_MARKS.finditer(text):
            for match in super().match(part[0]) or ():
                match.index, match.last_index = match.index + part.start(), match.last_index + part.start()
                found.append(match)
        return found or None

    def match_at_start(self, text: str) -> Match | None:
        word = _FIRST_WORD.match(text)
        return super().match_at_start(word[1] if word and word[2] else text)


@functools.cache
def _block_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "tasklists": True}).enable("table")
    add_math(parser, is_growing=True)
    footnote_plugin(parser, inline=False)
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _code(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    token = tokens[index]
    words = token.info.split()
    language = words[0] if words else ""
    body = _highlight(token.content, language.lower(), env)
    label = f'<div class="code-head">{escape(language[:24])}</div>' if language else ""
    return f'<div class="code">{label}<pre tabindex="0"><code>{body}</code></pre></div>\n'


def _highlight(code: str, language: str, env: Env) -> str:
    spent = env.get("highlighted", 0) + len(code)
    if language not in LANGUAGES or len(code) > HIGHLIGHT_MAX_CHARS or spent > HIGHLIGHT_TOTAL_CHARS:
        return str(escape(code))
    env["highlighted"] = spent
    return str(colour(code, get_lexer_by_name(language, stripnl=False, ensurenl=False), _FORMATTER))


def _image(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    """Render an image as a link, since its address could carry out what the model has read if it were fetched."""
    name = f"[image: {escape(renderer.renderInlineAsText(tokens[index].children or [], options, env))}]"
    address = str(tokens[index].attrGet("src") or "")
    if env.get("in_link") or not (host := _host_of(address)):
        return name
    return f'<a class="image" href="{escape(address)}">{name}</a> <span class="host">({escape(host)})</span>'


def _host_of(address: str) -> str:
    """Return the host of a web address, or an empty text for anything else."""
    try:
        parts = urlsplit(address)
        return parts.hostname or "" if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""


def _link_open(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    env["in_link"] = True
    return str(renderer.renderToken(tokens, index, options, env))


def _link_close(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    """Name the host behind a link if its text does not."""
    env["in_link"] = False
    start = next((at for at in range(index, -1, -1) if tokens[at].type == "link_open"), index)
    shown = "".join(token.content for token in tokens[start:index])
    host = _host_of(str(tokens[start].attrGet("href") or ""))
    return "</a>" if not host or host in shown else f'</a> <span class="host">({escape(host)})</span>'


def _heading(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    """Lower a reply's headings by two levels, since the page has headings of its own."""
    token = tokens[index]
    level = min(int(token.tag[1]) + 2, 6)
    return f"<h{level}>" if token.nesting == 1 else f"</h{level}>\n"


def _table_open(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    return '<div class="wide" tabindex="0"><table>\n'


def _table_close(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    return "</table></div>\n"


def _cell(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    """Write alignment as a class, since the pages allow no inline style."""
    token = tokens[index]
    side = str(token.attrGet("style") or "").removeprefix("text-align:")
    return f'<{token.tag} class="{side}">' if side in ("center", "right") else f"<{token.tag}>"


def _list_item(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    """Render a ticked or empty box as a sign, since nobody can tick it."""
    is_ticked = tokens[index].meta.get("checked")
    return "<li>" if is_ticked is None else f'<li class="task">{"☑" if is_ticked else "☐"} '


def _footnote_mark(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    return f"<sup>{int(tokens[index].meta['id']) + 1}</sup>"


def _way_back(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    return "" if tokens[index].meta.get("subId") else '<span class="back"></span>'


def _www(linkify: Any, text: str, start: int) -> int:
    """Return the number of characters after ``www.`` that belong to an address."""
    pattern_match = _AFTER_WWW.match(text, start)
    return len(pattern_match[0].rstrip("?!.,:*_~'\"")) if pattern_match else 0


def _from_www(linkify: Any, match: Any) -> None:
    match.url = f"http://{match.url}"


# -- The allow-list ----------------------------------------------------------------------------------------------------

_CELLS = {"center", "right"}
_CLASSES = {
    "li": {"task", "note"},
    "ol": {"footnotes"},
    "a": {"image"},
    "div": {"code", "code-head", "wide"},
    "span": {"host", "back"} | {_HL + name for name in STANDARD_TYPES.values() if name},
    "th": _CELLS,
    "td": _CELLS,
}
TAG_NAMES = "p h3 h4 h5 h6 ul ol li blockquote hr br em strong s sup code pre a div span table thead tbody tr th td"
_TAGS = set(TAG_NAMES.split())


@functools.cache
def _cleaner() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=_TAGS | MATH_TAGS,
        attributes={
            **MATH_ATTRIBUTES,
            "*": set(),
            "a": {"href"},
            "ol": {"start"},
            "pre": {"tabindex"},
            "div": {"tabindex"},
        },
        allowed_classes=_CLASSES,
        url_schemes={"http", "https", "mailto"},
        url_relative="deny",
        link_rel="noopener noreferrer nofollow",
    )


_NOTES = '<ol class="footnotes">'
_PLACES = re.compile(r'<sup>(\d+)</sup>|<li class="note">|<span class="back"></span>')


def _link_footnotes(html: str) -> str:
    """Link marks of footnotes to their notes, and notes back to the first mark.

    The ids are made after the cleaning, so that nobody else can choose them, and from the text of the notes, so that
    two answers on a page do not share them.
    """
    start = html.rfind(_NOTES)
    if start < 0:
        return html
    key, marked, note = blake2s(html[start:].encode(), digest_size=4).hexdigest(), set[int](), 0

    def place(match: re.Match[str]) -> str:
        nonlocal note
        if match[1] is None:
            if match[0].startswith("<span"):
                return f' <a href="#mark-{key}-{note}">↩</a>'
            note += 1
            return f'<li id="note-{key}-{note}">'
        number = int(match[1])
        name = "" if number in marked else f' id="mark-{key}-{number}"'
        marked.add(number)
        return f'<sup><a href="#note-{key}-{number}"{name}>{number}</a></sup>'

    return _PLACES.sub(place, html)


def _clean(html: str) -> str:
    return str(_cleaner().clean(html))
