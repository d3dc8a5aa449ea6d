r"""Formulas in Markdown: ``$x$``, ``\(x\)``, ``$$x$$`` and ``\[x\]`` as MathML, which browsers draw without scripts.

Money, shell variables and escaped brackets use the same characters. Text that does not close like a formula stays as it
is, and a formula that cannot be read is shown as it was written.
"""

import re
from collections.abc import Sequence

from django.utils.html import escape
from latex2mathml import converter
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

MATH_MAX_CHARS = 2_000  # per formula; no end is searched beyond, which bounds the work for a text of openings alone

CLOSINGS = {"$$": "$$", r"\[": r"\]", r"\(": r"\)"}
_DISPLAYED = ("$$", r"\[")
_ENDS = {"$$": re.compile(r"\$\$[ \t]*(?:\n|\Z)"), r"\[": re.compile(r"\\\][ \t]*(?:\n|\Z)")}
_TAG_IN_TEXT = re.compile(r"<[A-Za-z!/?]")  # the converter does not escape what stands in \text{}
_MATH_IN_BRACKETS = re.compile(r"[\\^_=<>+*/|]|\w\(|\d|^\W*\w\W*$")  # others are escaped brackets

MATH_TAGS = set(
    "math mrow mi mo mn mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd mstyle"
    " mpadded mphantom menclose mmultiscripts mprescripts".split()
)
MATH_ATTRIBUTES = {
    "math": {"display"},
    "mo": {"stretchy", "fence", "form", "largeop", "movablelimits", "minsize", "maxsize"},
    "mi": {"mathvariant"},
    "mfrac": {"linethickness"},
    "mspace": {"width"},
    "mtd": {"columnalign"},
    "mtable": {"columnalign"},
    "mover": {"accent"},
    "munder": {"accentunder"},
}


def add_math(parser: MarkdownIt, *, is_growing: bool = False) -> None:
    """Teach a parser formulas. With ``is_growing`` more text may follow: an unclosed block becomes ``math_open``."""

    def block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        return _block(state, start, end, silent, is_growing=is_growing)

    parser.inline.ruler.before("escape", "math_inline", _inline)
    parser.block.ruler.before("fence", "math_block", block, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.add_render_rule("math_inline", _render)
    parser.add_render_rule("math_block", _render)


def _inline(state: StateInline, silent: bool) -> bool:
    source, start = state.src, state.pos
    opening = next((mark for mark in (*CLOSINGS, "$") if source.startswith(mark, start)), "")
    if not opening:
        return False
    closing, begin = CLOSINGS.get(opening, "$"), start + len(opening)
    end = source.find(closing, begin, begin + MATH_MAX_CHARS)
    if end <= begin or not _is_math(source, opening, start, begin, end):
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.content, token.markup = source[begin:end], opening
    state.pos = end + len(closing)
    return True


def _is_math(source: str, opening: str, start: int, begin: int, end: int) -> bool:
    content = source[begin:end]
    if opening == "$":
        before, after = source[start - 1 : start], source[end + 1 : end + 2]
        touches = (before + after).replace("-", "")  # "$x$-axis" is a formula; beside a word, "$" is none
        return not (content[0].isspace() or content[-1].isspace() or content[-1] == "\\" or any(map(_is_word, touches)))
    return opening == "$$" or _MATH_IN_BRACKETS.search(content) is not None


def _is_word(character: str) -> bool:
    return character.isalnum() or character in "_$\\{"


def _block(state: StateBlock, start: int, end: int, silent: bool, *, is_growing: bool) -> bool:
    """Parse a formula in a block, whose lines could begin lists and headings in Markdown. It contains no blank line."""
    begin = state.bMarks[start] + state.tShift[start]
    opening = state.src[begin : begin + 2]
    if state.is_code_block(start) or opening not in _DISPLAYED:
        return False
    match = _ENDS[opening].search(state.src, begin + 2, begin + 2 + MATH_MAX_CHARS)
    if match is None:
        is_open = is_growing and end == state.lineMax and len(state.src) - begin <= MATH_MAX_CHARS
        return is_open and not _has_blank(state, start, end) and _found_block(state, start, end, silent, "math_open")
    is_math = opening == "$$" or _MATH_IN_BRACKETS.search(state.src, begin + 2, match.start()) is not None
    last = next((line for line in range(start, end) if state.eMarks[line] >= match.start()), end)
    if not is_math or last == end or _has_blank(state, start, last):
        return False
    return _found_block(state, start, last + 1, silent, "math_block")


def _has_blank(state: StateBlock, start: int, end: int) -> bool:
    return any(state.isEmpty(line) for line in range(start, end))


def _found_block(state: StateBlock, start: int, end: int, silent: bool, name: str) -> bool:
    if not silent:
        token = state.push(name, "math", 0)
        lines = state.getLines(start, end, state.blkIndent, False).strip()
        token.block, token.map, token.content, token.markup = True, [start, end], lines[2:-2], lines[:2]
        state.line = end
    return True


def _render(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    html = _mathml(token.content, is_displayed=token.markup in _DISPLAYED)
    if html is None:
        written = f"<code>{escape(token.markup + token.content + CLOSINGS.get(token.markup, '$'))}</code>"
        return f"<p>{written}</p>\n" if token.block else written
    if not token.block:
        return html
    return f'<div class="wide" tabindex="0">{html}</div>\n'


def _mathml(content: str, *, is_displayed: bool) -> str | None:
    """Return MathML, or ``None`` if this is no formula that can be drawn."""
    if len(content) > MATH_MAX_CHARS or _TAG_IN_TEXT.search(content):
        return None
    try:
        return converter.convert(content.strip(), display="block" if is_displayed else "inline")
    except Exception:  # noqa: BLE001  on bad LaTeX the converter fails in many ways, which must not break the page
        return None
