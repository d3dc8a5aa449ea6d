"""Minified code has the lines that say something, as they were."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediation.strategies.breaking.chunk_by_type import minify_code


def fenced(language: str, code: str) -> str:
    return f"```{language}\n{code}\n```"


@pytest.mark.parametrize(
    ("code", "minified"),
    [
        ("# one\nx = 1", "x = 1"),
        ("a\n\n\nb", "a\nb"),
        ('s = """\n\n# kept\n\n"""', 's = """\n\n# kept\n\n"""'),
        ("#!/bin/sh\n  # get\ncurl https://example.org/x", "#!/bin/sh\ncurl https://example.org/x"),
        ("// one\nlet a = 1; // two", "let a = 1; // two"),
        ("const s = `\n// kept\n\n`;", "const s = `\n// kept\n\n`;"),
        ("#include <a.h>\n#define A 1\nint a;", "#include <a.h>\n#define A 1\nint a;"),
        ("/* one\n * two */\nint a;", "/* one\n * two */\nint a;"),
        ("#top { color: #fff }", "#top { color: #fff }"),
        ("-- all of them\nSELECT 1 -- one", "SELECT 1 -- one"),
        ("plain words here", "plain words here"),
    ],
)
def test_lines_that_only_comment_go(code: str, minified: str) -> None:
    assert minify_code(fenced("", code)) == fenced("", minified)
    assert minify_code(code) == minified


def test_prose_around_the_fences_is_untouched() -> None:
    text = f"See // this.\n\n\n{fenced('js', '// b')}\n\n# That"
    assert minify_code(text) == "See // this.\n\n\n```js\n```\n\n# That"


@given(st.text(alphabet="ab \n\"'`#/*\\", max_size=60))
def test_what_stays_are_lines_of_the_code_in_their_order(code: str) -> None:
    code = code.replace("```", "")
    lines = iter(code.split("\n"))
    assert all(line in lines for line in minify_code(code).split("\n") if line)


@pytest.mark.parametrize("text", ["/*\n" * 40_000, '"' * 40_001, "`\n" * 39_999, "'''\"\"\"\n" * 9_000, "#\n" * 40_000])
def test_hostile_code_takes_linear_time(text: str) -> None:
    started = time.thread_time()
    minify_code(fenced("js", text))
    assert time.thread_time() - started < 2
