"""The query of a request: the words of the newest message and, with less weight, of the exchange that led to it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from remediation.context import STAND_INS, UnitRole, Units
from remediation.similarity.minilm import Array
from remediation.text.words import words

# LoCoMo, of 3,040: 2,494 with 0, 2,493 with 0.15, 2,481 with 0.3, 2,437 with 0.6; BEAM, of 216: 105, 104, 102, 103. The
# questions there stand alone: "Yes, that one" does not, and has nothing else to be found by.
CONTEXT_WEIGHT = 0.15  # of a word of the exchange, beside 1 for one of the newest message that says nothing by itself
CONTEXT_CHARS = 4_000  # of the exchange that are read, its end
NEWEST_CHARS = 8_000  # of the newest message, and of the newest tool result, that are read: both ends
# Before the newest user message, that belong to the exchange. LoCoMo at a weight of 0.3: 2,495 with 1, 2,468 with 4.
EARLIER_UNITS = 2

WORD = re.compile(r"\w+")
# Words by which people speak of themselves in English and German, and the Chinese one, round which no blanks stand.
FIRST_PERSON = frozenset("i me my mine myself ich mich mir mein meine meinem meinen meiner".split())
FIRST_PERSON_IN_CHINESE = "我"


@dataclass(frozen=True, slots=True)
class Query:
    """``meaning`` is the vector of the newest message, where there is a model."""

    newest: str
    before: str = ""
    meaning: Array | None = field(default=None, compare=False)


def query_of(units: Units) -> Query:
    """Split the newest part of the dialog into the newest user message, with what a tool has just brought, and
    the exchange.

    Texts that stand for others are left out of the query: everything that they name would be found.
    """
    originals = [unit for unit in units if unit.kind not in STAND_INS]
    if not originals:
        return Query("")
    asked = max(
        (place for place, unit in enumerate(originals) if unit.role is UnitRole.USER), default=len(originals) - 1
    )
    newest = [_ends(originals[asked].text)] + [_ends(unit.text) for unit in originals[asked + 1 :][-1:]]
    around = [*originals[max(0, asked - EARLIER_UNITS) : asked], *originals[asked + 1 : -1]]
    return Query("\n".join(newest), "\n".join(unit.text for unit in around))


def _ends(text: str) -> str:
    """Return the beginning and end, since a question stands before or behind what is pasted along with it."""
    return text if len(text) <= NEWEST_CHARS else f"{text[: NEWEST_CHARS // 2]}\n{text[-NEWEST_CHARS // 2 :]}"


def query_weights(query: Query) -> Mapping[str, float]:
    """Weigh each word once, however often it is repeated.

    The more the newest message says, the less the exchange counts: "Yes, that one" needs it, and a whole question
    would only be led astray.
    """
    newest = dict.fromkeys(words(query.newest), 1.0)
    weight = CONTEXT_WEIGHT * 2 / (2 + len(newest))
    return dict.fromkeys(words(query.before[-CONTEXT_CHARS:]), weight) | newest


def speakers_named_in(text: str) -> frozenset[str]:
    """Return whose words a message may ask for: everybody whom it names, in lower case, and the person who says "I"."""
    names = frozenset(WORD.findall(text.casefold()))
    speaks_of_self = not names.isdisjoint(FIRST_PERSON) or FIRST_PERSON_IN_CHINESE in text
    return names | {UnitRole.USER.value} if speaks_of_self else names - {UnitRole.USER.value}
