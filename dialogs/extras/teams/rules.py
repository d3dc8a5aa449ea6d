"""Rules of teams: what an agent may ask for, and what is said. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

from dominds.yaml_fields import Bad, amount, quote_value, texts, whole_number

REPORT_TOKENS = 1_500  # 6,000 characters of English; of a longer report the parent sees only beginning and end
TASK_SHOWN_CHARS = 160
ENDED_SHOWN = 8  # side dialogs that have reported and stay in sight, the newest
LIST_HEAD = "Your side dialogs (the runtime keeps this list):"
REPORTS_BACK = (
    "[Runtime: {agent} asks you this in a side dialog, of which it sees nothing but your last answer: that is your "
    "report. Write there all that it needs, and not more.]"
)

# Notices that programs of /v1 read while an answer waits for side dialogs.
BEGINS = "Side dialog {name} begins: “{task}”"
ASKS = "Side dialog {name} waits for a person: “{question}”"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of an agent's side dialogs. The first two count over the whole team."""

    levels: int = 3
    at_work: int = 8
    usd: Decimal | None = None  # of each; None: the asked agent's own budget

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Bounds":
        usd = stored.get("usd")
        return cls(stored.get("levels", 3), stored.get("at_work", 8), None if usd is None else Decimal(usd))


_BOUNDS = {"levels": whole_number(1, 3), "at_work": whole_number(1, 64), "usd": amount(0, 1_000_000)}
assert _BOUNDS.keys() == {field.name for field in fields(Bounds)}


def colleagues(value: Any) -> list[str]:
    """Read the field of an agent that names those whom it may ask."""
    return list(texts(value))


def bounds(value: Any) -> dict[str, Any]:
    """Read the field of an agent that bounds its side dialogs. Raises ``Bad``."""
    if not isinstance(value, Mapping) or (unknown := [key for key in value if key not in _BOUNDS]):
        found = quote_value(value) if not isinstance(value, Mapping) else f"the key {quote_value(unknown[0])}"
        raise Bad(f"expected a mapping of {', '.join(_BOUNDS)}, found {found}")
    sound = {key: _BOUNDS[key](item) for key, item in value.items() if item is not None}
    return {key: str(item) if key == "usd" else item for key, item in sound.items()}


def refusal(agent: str, colleagues: Sequence[str], chain: Sequence[str], at_work: int, bounds: Bounds) -> str:
    """Say why an agent may not be asked; empty if it may. ``chain`` are the agents from the root to the one that
    asks."""
    if agent in chain:
        circle = " asks ".join([*chain, agent])
        return f"{circle}: that would go in a circle, since {agent} waits for you. Decide yourself."
    if agent not in colleagues:
        return f"You have no colleague {agent!r}. You may ask: {', '.join(colleagues)}."
    if len(chain) > bounds.levels:
        below = f"You are {len(chain) - 1} levels below the first dialog"
        return f"{below}, and at most {bounds.levels} are allowed. Do it yourself."
    if at_work >= bounds.at_work:
        return f"{at_work} side dialogs are at work, the most allowed. Wait for a report, or end one by stop_agent."
    return ""


def shorten(text: str, chars: int = TASK_SHOWN_CHARS) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text[: 4 * chars].split())
    return line if len(line) <= chars else f"{line[: chars - 1].rstrip()}…"


def shown_chars(text: str) -> int:
    """Return how many characters of a report its parent sees at most. One of Chinese, Japanese or Korean takes about a
    token, of other writing a quarter.
    """
    wide = sum(character >= "\u2e80" for character in text)
    return 4 * REPORT_TOKENS * len(text) // max(1, len(text) + 3 * wide)


def beginning_and_end(text: str, chars: int) -> str:
    """Return what is shown of a report that is put aside."""
    first = chars * 3 // 4
    return (
        f"The report has {len(text):,} characters. Its beginning and its end follow.\n\n{text[:first]}\n\n"
        f"[… {len(text) - chars:,} characters are left out …]\n\n{text[len(text) - (chars - first) :]}"
    )
