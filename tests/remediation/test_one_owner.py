"""The budget alone divides the window: nothing else multiplies, divides or subtracts it."""

import ast
from collections.abc import Iterator
from pathlib import Path

WINDOWS = {"window", "context_limit", "request_limit", "pruner_window"}
OWNER = Path("remediation/budget.py")
ROOMS = ("dialogs/context", "dialogs/runtime", "dialogs/actions", "dialogs/queries", "remediation")
POLICIES = "remediation/policies"  # whose own limit, ``limit``, counts too
# Growth until a rewrite is due moves a prepared one's limits; the conformance suite makes up windows of its own.
OTHERS = {"remediation/policies/ahead.py", "remediation/policies/conformance.py"}
TAKES = (ast.Mult, ast.Div, ast.FloorDiv, ast.Sub)


def shares_of(source: str, names: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, TAKES)
            and names & {name_of(node.left), name_of(node.right)}
        ):
            yield ast.unparse(node)


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def test_nothing_but_the_budget_takes_a_share_of_the_window() -> None:
    found = {}
    for room in ROOMS:
        for path in sorted(Path(room).rglob("*.py")):
            names = WINDOWS | ({"limit"} if path.is_relative_to(POLICIES) else set())
            if path != OWNER and str(path) not in OTHERS and (shares := list(shares_of(path.read_text(), names))):
                found[str(path)] = shares
    assert found == {}, "take it from the budget that is handed along, or give the budget a name for this share"


def test_a_share_that_is_taken_elsewhere_is_found() -> None:
    assert list(shares_of("x = sizes.window * 8 // 10", WINDOWS)) == ["sizes.window * 8"]
    assert list(shares_of("left = context_limit - used", WINDOWS)) == ["context_limit - used"]
    assert list(shares_of("fits = used + answer <= window", WINDOWS)) == []
