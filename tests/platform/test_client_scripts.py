"""What `make test` can see of the scripts that only `make clients` runs."""

import ast

import pytest

from tests.clients.programs import SCRIPTS

OTHERS = {"common.py", "langchain_standard.py"}


@pytest.mark.parametrize("script", sorted({path.name for path in SCRIPTS.glob("*.py")} - OTHERS))
def test_a_script_imports_what_the_scripts_share(script: str) -> None:
    """Renaming the shared module, or a name in it, broke six of them unseen."""
    shared = {
        name.id if isinstance(name, ast.Name) else name.name
        for name in ast.walk(ast.parse((SCRIPTS / "common.py").read_text()))
        if isinstance(name, (ast.Name, ast.FunctionDef))
    }
    imported = {
        name.name
        for node in ast.walk(ast.parse((SCRIPTS / script).read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "common"
        for name in node.names
    }
    assert imported
    assert imported <= shared
