"""Minified code means the same: strings, URLs and lines survive."""

import ast
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediation.strategies.breaking.minify import minify_code


def fenced(language: str, code: str) -> str:
    return f"```{language}\n{code}\n```"


@pytest.mark.parametrize(
    ("language", "code", "minified"),
    [
        ("python", "x = 1  # one", "x = 1"),
        ("python", "x = '# no comment'", "x = '# no comment'"),
        ("python", 'x = "a\\"# no"  # yes', 'x = "a\\"# no"'),
        ("python", "x = 7 // 2", "x = 7 // 2"),
        ("python", "a\n\n\nb", "a\nb"),
        ("python", 's = """\n\n# kept\n\n"""', 's = """\n\n# kept\n\n"""'),
        ("python", "if a:   \n    b   \n", "if a:\n    b"),
        ("python", "url = 'https://example.org/a#b'", "url = 'https://example.org/a#b'"),
        ("sh", "curl https://example.org/x # get", "curl https://example.org/x"),
        ("sh", "echo ${#array}", "echo ${#array}"),
        ("js", "let a = 1; // one", "let a = 1;"),
        ("js", "fetch('https://example.org') // get", "fetch('https://example.org')"),
        ("js", "see https://example.org/x", "see https://example.org/x"),
        ("js", "a /* b\nc */ d", "a  d"),
        ("js", "const s = `// kept\n\n/* kept */`;", "const s = `// kept\n\n/* kept */`;"),
        ("js", 'const s = "// kept";', 'const s = "// kept";'),
        ("c", "#include <a.h>\nint a; // one", "#include <a.h>\nint a;"),
        ("c", "int a = 6 /2; /* unterminated", "int a = 6 /2; /* unterminated"),
        ("css", "a { color: #fff } /* white */", "a { color: #fff }"),
        ("yaml", "a: b # c\nd: 'e # f'", "a: b\nd: 'e # f'"),
        ("c", "char q = '\"'; // quote", "char q = '\"';"),
        ("python", "it's odd # comment", "it's odd"),
        ("", "plain words here", "plain words here"),
    ],
)
def test_cases(language: str, code: str, minified: str) -> None:
    assert minify_code(fenced(language, code)) == fenced(language, minified)


def test_prose_around_the_fences_is_untouched() -> None:
    text = f"See // this.\n\n\n{fenced('js', 'a; // b')}\n\n# That"
    assert minify_code(text) == f"See // this.\n\n\n{fenced('js', 'a;')}\n\n# That"


def test_unfenced_code_is_recognised_by_its_lines() -> None:
    assert "secret" not in minify_code("def f():\n    # secret\n    return 1\n")
    assert "secret" not in minify_code("function f() {\n  // secret\n  return 1;\n}\n")


def test_undecided_text_only_loses_blank_lines() -> None:
    assert minify_code("a # b\n\n\nc // d") == "a # b\nc // d"


def test_a_shebang_is_no_comment() -> None:
    assert minify_code("#!/bin/sh\n# secret\necho a\n").startswith("#!/bin/sh\n")


def test_python_still_means_the_same() -> None:
    source = Path(minify_code.__code__.co_filename).read_text()
    assert ast.dump(ast.parse(minify_code(source))) == ast.dump(ast.parse(source))


@given(st.text(alphabet="ab \n\"'`#/*\\", max_size=60))
def test_nothing_but_comments_and_blanks_is_lost(code: str) -> None:
    for language in ("js", "python"):
        assert len(minify_code(fenced(language, code))) <= len(fenced(language, code))
    assert minify_code(code).count("a") <= code.count("a")


@pytest.mark.parametrize(
    "text", ["/*" * 40_000, '"' * 40_001, '\\"' * 40_000, "'\"" * 20_000, "`" * 39_999, "'''\"\"\"" * 9_000]
)
def test_hostile_code_takes_linear_time(text: str) -> None:
    started = time.perf_counter()
    minify_code(fenced("js", text))
    minify_code(fenced("python", text))
    assert time.perf_counter() - started < 2
