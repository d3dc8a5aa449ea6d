"""Names of the code: no participle or private word stands for a thing, and the name of a test can be read at once."""

import ast
from collections.abc import Iterator

from tests.harness.stack import ROOT

RETIRED = {"early", "found", "heard", "look", "looks", "owed", "said", "told"}
PUBLIC = {"dialogs/api/schemas.py: found"}  # a field of `/api`, which programs read
LONGEST_TEST_NAME = 70
FOLDERS = ("dominds", "health", "remediation", "dialogs", "examples", "tests")


def names_in(tree: ast.AST) -> Iterator[str]:
    """What a file gives a name to. A keyword that it passes on, and an attribute that it only
    reads, have one already."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.alias(asname=str(name)):
                yield name


def test_no_name_is_a_retired_word_or_too_long_to_read() -> None:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    names = {f"{path.relative_to(ROOT)}: {name}" for path in files for name in names_in(ast.parse(path.read_text()))}
    retired = {place for place in names if place.rpartition(" ")[2].strip("_").lower() in RETIRED}
    assert retired == PUBLIC
    assert {place for place in names if len(place.rpartition(" ")[2]) > LONGEST_TEST_NAME} == set()


def test_names_are_read_wherever_they_are_given() -> None:
    source = (
        "import a as told\nfor found in x: y.said = 1\nasync def look(early, *, heard): pass\nclass Looks: "
        "pass\nz(owed=1)"
    )
    assert set(names_in(ast.parse(source))) == {"told", "found", "said", "look", "early", "heard", "Looks"}


def test_no_package_holds_more_than_twenty_modules() -> None:
    """Beyond that a stranger does not find their way in one look. Migrations are read one at a time."""
    folders = {path.parent for folder in FOLDERS[:4] for path in (ROOT / folder).rglob("*.py")}
    sizes = {str(folder.relative_to(ROOT)): len([*folder.glob("*.py")]) for folder in folders}
    assert {name: size for name, size in sizes.items() if size > 20 and not name.endswith("migrations")} == {}
