"""Short ways to write units; the toolbox and the units themselves are those of the conformance suite."""

from collections.abc import Sequence

from remediation.context import Unit, UnitRole
from remediation.policies.conformance import count, numbered, prose, system, tool, toolbox, unit, words

Report = tuple[str, int, int]
__all__ = ["count", "numbered", "prose", "system", "tool", "toolbox", "unit", "words"]


def user(text: str, **fields: object) -> Unit:
    return unit(text, UnitRole.USER, **fields)  # type: ignore[arg-type]


def model(text: str, **fields: object) -> Unit:
    return unit(text, UnitRole.ASSISTANT, **fields)  # type: ignore[arg-type]


def texts(units: Sequence[Unit]) -> list[str]:
    return [u.text for u in units]


def ids(units: Sequence[Unit]) -> list[str]:
    return [u.id for u in units]


def rated(text: str) -> float:
    """The number in the text's first word, as "0.3 apples"."""
    first = text.split(maxsplit=1)[0] if text else ""
    return float(first) if first.replace(".", "").isdigit() else 0.0
