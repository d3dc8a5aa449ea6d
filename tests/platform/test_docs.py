"""The documents say what the code holds. That their links lead somewhere is held by ``.ci/docs``."""

import json
import re
from pathlib import Path

import pytest
from ninja import Schema

from dialogs.api import schemas
from tests.harness.stack import ROOT

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("README.md"), *ROOT.glob("*.md")])
EXAMPLE = re.compile(r"<!-- schema: (\w+) -->\n```json\n(.*?)```", re.S)
CITED = re.compile(r"docs/([\w/-]+\.md)#([\w-]+)")
# Papers that are not in this repository, and the numbers of their rules.
FOREIGN = re.compile(
    r"\(R\d+\)|\bR\d+:|\bdocuments? [A-D]\b|\b[A-D]\d{1,2}'s\b|\bdocuments?' own|\b(faults|house|facts|pitfalls)\.md"
)
SOURCES = [
    path
    for folder in ("dominds", "health", "remediation", "dialogs", "templates", "static", "tests")
    for ending in ("py", "html", "css", "js")
    for path in (ROOT / folder).rglob(f"*.{ending}")
]


def anchors_of(page: Path) -> set[str]:
    """Those that are written, and those that a heading gets by its words."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


def test_no_rule_has_the_name_of_another() -> None:
    names = re.findall(r'<a id="([^"]+)">', (ROOT / "docs" / "spec.md").read_text())
    assert len(names) > 80 and len(names) == len(set(names))


def test_rules_that_the_code_cites_exist() -> None:
    for file in SOURCES:
        for page, anchor in CITED.findall(file.read_text()):
            assert anchor in anchors_of(ROOT / "docs" / page), f"{file} cites docs/{page}#{anchor}"


def test_no_rule_is_cited_that_the_documents_do_not_hold() -> None:
    for file in (path for path in (*SOURCES, *PAGES) if path != Path(__file__)):
        assert not (match := FOREIGN.search(file.read_text())), (
            f"{file} cites {match.group()}: state the rule, or link to it"
        )


@pytest.mark.parametrize("example", EXAMPLE.findall((ROOT / "docs" / "api.md").read_text()), ids=lambda pair: pair[0])
def test_what_the_api_page_shows_is_what_the_api_says(example: tuple[str, str]) -> None:
    name, text = example
    schema: type[Schema] = getattr(schemas, name)
    shown = json.loads(text)
    assert set(shown) == set(schema.model_fields)
    schema.model_validate(shown)


def sources() -> str:
    folders = (ROOT / name for name in ("dominds", "health", "remediation", "dialogs"))
    return "\n".join(file.read_text() for folder in folders for file in sorted(folder.rglob("*.py")))


def test_every_variable_of_the_environment_is_explained() -> None:
    read = re.findall(
        r'env\.(?:text|flag|number|words|one_of|folder|database|redis_url|servers|issuer|web_address|mail)\(\s*"(\w+)"',
        sources(),
    )
    read += re.findall(r'os\.environ(?:\.get\(|\[)"((?:DOMINDS|DJANGO_SUPERUSER|OTEL)_\w+)"', sources())
    page = (ROOT / "docs" / "configuration.md").read_text()
    assert len(set(read)) > 20
    assert [name for name in sorted(set(read)) if f"`{name}`" not in page] == []


def test_every_field_of_the_files_is_explained() -> None:
    tables = re.findall(r"FIELDS: dict\[str, Field\] = \{\n(.*?)^\}", sources(), re.M | re.S)
    fields = {name for table in tables for name in re.findall(r'^    "(\w+)":', table, re.M)}
    page = (ROOT / "docs" / "configuration.md").read_text()
    assert {"apiKeyEnvVar", "context_length", "critical_policy", "command"} <= fields
    assert [name for name in sorted(fields) if f"`{name}`" not in page] == []


def test_every_command_is_explained() -> None:
    commands = {path.stem for path in ROOT.glob("d*/**/management/commands/*.py")} - {"__init__"}
    page = (ROOT / "docs" / "configuration.md").read_text().partition("## Commands")[2]
    assert {"up", "import", "backup"} <= commands
    assert [name for name in sorted(commands) if f"`{name}" not in page] == []
