"""Markdown of models: nothing in it acts, and a streamed answer ends up as the whole one would."""

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialogs.pages.markdown import HIGHLIGHT_MAX_CHARS, MARKDOWN_MAX_CHARS, GrowingText, finished_chars, render

ALLOWED_TAGS = set(
    "p h3 h4 h5 h6 ul ol li blockquote hr br em strong s sup code pre a div span table thead tbody tr th td"
    " math mrow mi mo mn mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd "
    "mstyle".split()
)
DRAWING_ATTRIBUTES = set(
    "display stretchy fence form columnalign linethickness width accent accentunder mathvariant".split()
)
ALLOWED_ATTRIBUTES = {"id", "href", "rel", "class", "start", "tabindex"} | DRAWING_ATTRIBUTES

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<div hx-get='/logout/' hx-trigger='load'>x</div>",
    "<a href='javascript:alert(1)'>x</a>",
    "<style>body{display:none}</style>",
    "<form action=/d/new/><button>x</button></form>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "[x](file:///etc/passwd)",
    "[x](/logout/)",
    "[x](//evil.example/)",
    "[x](https://evil.example/ \"t' onmouseover='alert(1)\")",
    "![x](https://evil.example/p.png?secret=1)",
    "![x](data:image/svg+xml,<svg onload=alert(1)>)",
    "[![x](https://evil.example/p.png)](https://evil.example/)",
    "[x]: javascript:alert(1)\n\n[x]",
    "<https://evil.example/'onmouseover=alert(1)>",
    '```"><script>alert(1)</script>\ncode\n```',
    "```html onload=alert(1)\n<script>alert(1)</script>\n```",
    "~~~x' class='hl-k hx-get=/\n<b>\n~~~",
    "| <script>x</script> |\n|---|\n| ![x](http://evil.example) |",
    "# <b onclick=alert(1)>",
    "`<script>alert(1)</script>`",
    "\u202e<script>\u202c",
    "x\x00y\x1b[31m",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<!-- --><![CDATA[<script>]]>",
    "<x-y is='z'>",
    "a <b\nonclick=alert(1)>c",
    r"$\text{<img src=x onerror=alert(1)>}$",
    r"$\text{</math><script>alert(1)</script>}$",
    r"$\text{<mglyph><style><!--</style><img title='--><img src=x onerror=alert(1)>'>}$",
    r"\(\href{javascript:alert(1)}{x}=1\)",
    r"$\class{code}{x}\style{background:url(//evil.example)}{x}\cssId{text}{x}$",
    "$$\n<annotation-xml encoding='text/html'><script>alert(1)</script>\n$$",
    "https://evil.example/<script>",
    "- [ ] <input autofocus onfocus=alert(1)>",
]


class Seen(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def assert_harmless(html: str) -> None:
    seen = Seen(html)
    assert seen.tags <= ALLOWED_TAGS
    for name, value in seen.attributes:
        assert name in ALLOWED_ATTRIBUTES
        if name == "href":
            assert re.match(r"(https?|mailto):|#(mark|note)-[0-9a-f]{8}-\d+$", value)
        if name == "id":
            assert re.fullmatch(r"(mark|note)-[0-9a-f]{8}-\d+", value)
        if name == "class":
            assert re.fullmatch(
                r"(hl-\w+|code|code-head|wide|host|task|image|footnotes|note|back|right|center)?( hl-\w+)*", value
            )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_read(text: str) -> None:
    assert_harmless(render(text))
    assert_harmless(render(f"> {text}\n\n- {text}\n\n| a |\n|---|\n| {text} |\n"))


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(
            [*HOSTILE, "\n", "\n\n", "- ", "> ", "```", "|", "*", "`", "[", "](", "<", "&", "$", "$$", "\\[", "\\)"]
        ),
        max_size=12,
    )
)
def test_no_mixture_of_hostile_texts_acts(parts: list[str]) -> None:
    assert_harmless(render("".join(parts)))


def test_an_image_is_a_link_with_its_host_and_never_fetched() -> None:
    html = render("![the plan](https://evil.example/x.png?a=1&b=2)")
    assert "<img" not in html
    assert '<a class="image" href="https://evil.example/x.png?a=1&amp;b=2"' in html
    assert html.endswith('>[image: the plan]</a> <span class="host">(evil.example)</span></p>\n')
    assert render("![x](data:image/png;base64,AAAA)") == "<p>[image: x]</p>\n"
    assert render("[![x](https://evil.example/y)](https://e.org)").count("<a ") == 1


def test_footnotes_stand_at_the_end_in_the_order_of_their_marks() -> None:
    html = render("One[^b] and two[^a].\n\n[^a]: An *a*\n[^b]: A b\n\n    more of it\n\nThe end[^b], not [^c].\n")
    shown = re.sub(r"<sup><a [^>]*>(\d)</a></sup>", r"<sup>\1</sup>", html)
    assert shown.startswith("<p>One<sup>1</sup> and two<sup>2</sup>.</p>\n<p>The end<sup>1</sup>, not [^c].</p>\n")
    notes = re.sub(r' id="[^"]*"| <a [^>]*>↩</a>', "", html)
    assert notes.endswith(
        '<ol class="footnotes">\n<li><p>A b</p>\n<p>more of it</p>\n</li>\n<li><p>An <em>a</em></p>\n</li>\n</ol>\n'
    )


def test_marks_of_footnotes_lead_to_their_notes_and_back() -> None:
    html = render("One[^b] and two[^a], one[^b].\n\n[^a]: An a\n[^b]: A b\n")
    names = re.findall(r'id="([^"]+)"', html)
    assert len(names) == len(set(names)) == 4
    assert sorted(set(re.findall(r'href="#([^"]+)"', html))) == sorted(names)
    mark, other = (re.sub(r"\D+", " ", text) for text in re.findall(r"<li id=[^>]*>.*?</li>", html, re.S))
    assert mark != other
    assert "mark-" not in render("No note[^1], and <sup>2</sup>.") and "[^1]" in render("No note[^1].")


def test_a_link_names_its_host_unless_its_text_does() -> None:
    assert '<span class="host">(evil.example)</span>' in render("[your bank](https://evil.example/login)")
    assert "host" not in render("[docs.example.org](https://docs.example.org/x)")


def test_headings_of_a_reply_stand_below_those_of_the_page() -> None:
    assert render("# One\n###### Six") == "<h3>One</h3>\n<h6>Six</h6>\n"


def test_cells_are_aligned_by_class() -> None:
    html = render("| a | b |\n|:-:|--:|\n| 1 | 2 |")
    assert 'class="center"' in html
    assert 'class="right"' in html
    assert "style" not in html


def test_code_is_coloured_by_class_and_its_language_named() -> None:
    html = render("```python\nreturn 1\n```")
    assert '<div class="code-head">python</div>' in html
    assert '<span class="hl-k">return</span>' in html
    assert "hl-" not in render("```klingon\nreturn 1\n```")
    assert "hl-" not in render("```python\n" + "x = 1\n" * HIGHLIGHT_MAX_CHARS + "```")


def test_a_text_beyond_the_cap_is_shown_as_it_is() -> None:
    text = "# <b>\n" * MARKDOWN_MAX_CHARS
    assert render(text).startswith('<pre tabindex="0"><code># &lt;b&gt;')


@pytest.mark.parametrize(
    "text", ["$x^2$", r"\(x^2\)", "$$x^2$$", r"\[x^2\]", "a $x^2$-plane", "where\n$$\nx^2\n$$\nand"]
)
def test_formulas_are_drawn_without_scripts(text: str) -> None:
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in render(text)


def test_lines_of_a_formula_are_no_lists_or_headings() -> None:
    html = render("$$\na\n- b\n= c\n$$")
    assert html.startswith('<div class="wide" tabindex="0"><math display="block">')
    assert "<li>" not in html and "<h" not in html


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 or $10.",
        "cp $HOME/$USER",
        "${A}-${B}",
        "US$5 and A$6",
        "$ 5 $",
        "`$x$`",
        r"\[a link\]",
        r"\(see there\)",
        r"\$x$",
        "a $b$c",
        "$" + "x" * 3_000 + "$",
    ],
)
def test_money_shells_and_escaped_brackets_are_no_formulas(text: str) -> None:
    assert "<math" not in render(text)


def test_what_is_no_latex_is_shown_as_it_was_written() -> None:
    assert render(r"$\left($ and ${$") == r"<p><code>$\left($</code> and <code>${$</code></p>" + "\n"
    assert render("$$\n{\n$$") == "<p><code>$$\n{\n$$</code></p>\n"


def test_addresses_become_links_and_names_of_files_do_not() -> None:
    assert '<a href="https://e.org/a_b?c=1"' in render("See https://e.org/a_b?c=1.")
    assert '<a href="http://www.e.org/a"' in render("See www.e.org/a.")
    assert '<a href="mailto:ada@e.org"' in render("Write to ada@e.org.")
    assert "<a" not in render("README.md, main.py, //e.org/x, ftp://e.org/x, www., xwww.e.org, wwww.e")


@pytest.mark.parametrize(
    "text",
    [
        "含**「重点」**内容",
        "**注意：**请先备份",
        "- **建议（含括号）**后续",
        "**「見出し」**です",
        '**"단어"(영어)**는',
        "이것은 **중요(重要)**합니다",
        "**“如何”**好",
        "a**あ、**b",
    ],
)
def test_emphasis_holds_beside_letters_without_spaces(text: str) -> None:
    assert "<strong>" in render(text) and "*" not in render(text)


@pytest.mark.parametrize(
    ("text", "struck"), [("删去~~（旧）~~新", "<s>（旧）</s>"), ("2 * 3 * 4 和 5*6", "2 * 3 * 4 和 5*6")]
)
def test_other_marks_beside_wide_letters_stay_as_written(text: str, struck: str) -> None:
    assert struck in render(text)


def test_an_address_ends_before_full_width_punctuation() -> None:
    html = render(
        "见https://a.example/x。然后 www.b.example/y，（https://c.example/中文）“mailto:d@e.example”；**https://f.example/1**。"
    )
    assert re.findall('href="([^"]*)"', html) == [
        "https://a.example/x",
        "http://www.b.example/y",
        "https://c.example/%E4%B8%AD%E6%96%87",
        "mailto:d@e.example",
        "https://f.example/1",
    ]


def test_boxes_of_a_list_are_signs() -> None:
    assert render("- [ ] one\n- [x] two\n") == '<ul>\n<li class="task">☐ one</li>\n<li class="task">☑ two</li>\n</ul>\n'


PIECES = [
    "para text\n",
    "\n",
    "- item\n",
    "  more\n",
    "1. one\n",
    "> quote\n",
    "```\n",
    "```py\n",
    "````\n",
    "   ```\n",
    "    code\n",
    "# head\n",
    "===\n",
    "---\n",
    "| a | b |\n",
    "|---|---|\n",
    "**bold\n",
    "text **x** `c`\n",
    "~~~\n",
    "\tx\n",
    "*",
    "-",
    "#",
    "* * *\n",
    "\r\n",
    "+ x\n",
    " ",
    "word ",
    "😀",
    "[l](http://e.org)\n",
    "![i](x)\n",
    "www.e.org ",
    "a@e.org ",
    "[^1]",
    "$$\n",
    "$$",
    "\\[\n",
    "\\]",
    "x = 1 $$\n",
    "$x$ ",
    "\\(x\\)",
    "- [x] done\n",
    "https://e.org ",
]


@settings(max_examples=400)
@given(parts=st.lists(st.sampled_from(PIECES), max_size=40), cuts=st.lists(st.integers(1, 12), min_size=1, max_size=30))
def test_a_streamed_text_ends_up_as_the_whole_one(parts: list[str], cuts: list[int]) -> None:
    """Reference links are left out: a definition may come after its use, and the full render at the end cures that."""
    text = "".join(parts)
    growing, end, step = GrowingText(), 0, 0
    while end < len(text):
        end += cuts[step % len(cuts)]
        step += 1
        growing.text = text[:end]
        growing.finish(*growing.newly_finished())
    assert growing.html + (render(growing.tail) if growing.tail else "") == render(text)


@settings(max_examples=200)
@given(parts=st.lists(st.sampled_from(PIECES), max_size=30), more=st.lists(st.sampled_from(PIECES), max_size=8))
def test_what_is_finished_stays_finished(parts: list[str], more: list[str]) -> None:
    text = "".join(parts)
    finished = finished_chars(text)
    assert render(text[:finished]) == render((text + "".join(more))[:finished])
    assert finished <= len(text)


def test_a_closed_block_of_code_is_finished_at_once() -> None:
    assert finished_chars("```py\nx = 1\n```\n") == len("```py\nx = 1\n```\n")
    assert finished_chars("```py\nx = 1\n    ```\n") == 0
    assert finished_chars("## Head\nnot") == len("## Head\n")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        "*a_" * 20_000,
        "> " * 20_000,
        "`" * 50_000,
        "[a](" * 20_000,
        "|a" * 30_000 + "\n" + "|-" * 30_000,
        "$a" * 50_000,
        "\\(" * 50_000,
        "$$ a\n" * 20_000,
        "\\[\n" * 30_000,
        "https:" * 30_000,
        "http://a@" * 20_000,
        "www.a." * 30_000,
        "![a](http://b.c)" * 10_000,
        "[^1]: a\n" * 20_000,
        "[^1]" * 40_000 + "\n\n[^1]: a",
    ],
    ids=[
        "brackets",
        "emphasis",
        "quotes",
        "ticks",
        "links",
        "table",
        "dollars",
        "inline math",
        "blocks of math",
        "open math",
        "schemes",
        "addresses",
        "hosts",
        "images",
        "definitions of footnotes",
        "footnotes",
    ],
)
def test_pathological_text_is_rendered_in_bounded_time(text: str) -> None:
    start = time.process_time()
    render(text)
    assert time.process_time() - start < 5  # about 0.8 s alone on this machine


def test_streaming_a_long_answer_costs_little_more_than_rendering_it_once() -> None:
    """Rendering all of it at each flush would cost two hundred times as much (H17)."""
    block = "Some words with **weight** and `code`.\n\n- one\n- two\n\n```python\ndef f(x):\n    return x + 1\n```\n\n"
    text = block * 200  # 19 KB
    start = time.process_time()
    growing = GrowingText()
    for end in range(60, len(text) + 60, 60):
        growing.text = text[:end]
        growing.finish(*growing.newly_finished())
    streamed = time.process_time() - start
    start = time.process_time()
    assert growing.html + (render(growing.tail) if growing.tail else "") == render(text)
    assert streamed < 20 * (time.process_time() - start)
