"""Tests share helpers, never other tests: whoever changes a test need not look who imports it."""

import re

from tests.harness.stack import ROOT

A_TEST = re.compile(
    r"^\s*(?:from tests[\w.]*\.test_\w+ import|from tests[\w.]* import .*\btest_\w+|import tests[\w.]*\.test_)", re.M
)


def test_no_test_imports_another_test() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert len(files) > 100
    assert [str(file.relative_to(ROOT)) for file in files if A_TEST.search(file.read_text())] == []
