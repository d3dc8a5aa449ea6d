"""Short ways to write units; the toolbox and the units themselves are those of the conformance suite."""

from collections.abc import Sequence

from remediation.context import Unit, UnitRole
from remediation.policies.conformance import count, numbered, prose, system, tool, toolbox, unit, words

Report = tuple[str, int, int]
__all__ = ["count", "numbered", "prose", "system", "tool", "toolbox", "unit", "words"]
# A report: some sentences matter, and some are talk.
MORNING = (
    "We began to look at the payment service this morning. The weather was mild and everyone was in good spirits. "
    "The service reads /etc/pay/config.toml at start. It was noticed that people like the colour of the page. "
    "Never push to main. There was some talk about lunch, and about where to have it this time. "
    "The run ended with error E1234: connection refused by db-07.internal. Several people nodded at that. "
    "The retry limit is 7. In the end we agreed to meet again."
)


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
