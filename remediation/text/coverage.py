"""Coverage: whether a shorter text, such as a summary, still says what must not be lost of a longer one.

What must not be lost are identifiers, values, prohibitions and open requests.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from remediation.text.statements import RoleText, Statement, is_request, statements_of
from remediation.text.words import FUNCTION_WORDS

# Tuned on the sets of docs/experiments.md#numbers, which has what half and twice as much change.
STEM_CHARS = 6  # of a word that count, so that "restarted" covers "restarts"; 4: LoCoMo -27, BFCL -6, 12: +13, -7
# The least shares of a statement's telling words that have to occur for it to count as said: of a rule, of a request
# and of a statement whose values all occur (0.3: lost +9, 0.9: +1), and of any other (0.4: lost +27, 1: +4).
WORDS_COVERED, STATEMENT_COVERED = 0.6, 0.75
# When a summary is about its source. All of 36 good summaries of the twelve dialogs pass; held against other dialogs
# 43 % do. With half of both shares 96 % of the latter pass; with twice as much 9 %, but then some good ones fail. The
# shares are low, since the model is asked once for what a poor summary lacks.
LEAST_COVERAGE = 0.12  # of the required values
LEAST_KNOWN = 0.4  # of the summary's telling words, which have to occur in the source
# Choices: these summaries have at least 165 words, and half or twice as much of either number changes 3 % of the
# verdicts on other dialogs.
FEWEST_TELLING = 12  # words of a summary: fewer may occur in the source by chance
FEWEST_REQUIRED = 3  # things: that fewer are missing says nothing about a summary
REMEMBERED = 8_192  # statements and values in them, since one rewrite asks for the same ones as the next
WORD = re.compile(r"[^\W_]+")
CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
SIGNS = re.compile(r"[`*\"'“”„’‘«»,]")
# Words of an agent's decisions, failures and results. Of its sentences only those with such a word are required.
DECIDES = re.compile(
    r"\b(?:decided?|decision|agreed|chose|choose|will use|switch(?:ed)? to|because|cause|turned out|rule[sd]? out"
    r"|fix(?:ed)?|confirmed|owed|remains|blocked|waiting for|next step|until|due|deadline|weil|entschieden|bleibt)\b"
    r"|fail\w*|error|refused|crash\w*|因为|决定|原因|改用|失败|错误",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Required:
    """One thing that must still be said: the exact ``values`` of a statement and, if ``whole``, most of its words."""

    statement: Statement
    values: tuple[str, ...]
    whole: bool  # whether it is a prohibition or a request


class Shown:
    """A text that may cover statements. Its words are looked up once for all statements that it is compared with."""

    def __init__(self, text: str) -> None:
        self.text = fold(text)

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(_stems_in(self.text, self._words))

    @cached_property
    def _joined(self) -> str:
        return f" {' '.join(WORD.findall(self.text))} "

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(self._joined.split())

    def has_value(self, value: str) -> bool:
        """Check whether the value occurs as a whole word or several: 40 does not occur in 140."""
        words = _words_of(value)
        joined = " ".join(words)
        if self._words.issuperset(words) and (len(words) < 2 or f" {joined} " in self._joined):
            return True
        # Chinese and Japanese are written without spaces, so that a value may stand within a longer run.
        return len(joined) > 5 and CJK.search(joined) is not None and joined in self.text

    def share_of(self, text: str) -> float:
        """Return the share of the telling words of ``text`` that occur here, from 0 to 1; 1 if it has none."""
        stems = stems_of(text)
        return sum(map(self.stems.__contains__, stems)) / len(stems) if stems else 1.0

    def lacks(self, required: Required) -> bool:
        """Check whether this text does not say a required thing."""
        if any(not self.has_value(value) for value in required.values):
            return True
        return required.whole and self.share_of(required.statement.text) < WORDS_COVERED

    def says(self, statement: str, values: Sequence[str]) -> bool:
        """Check whether this text says a statement with all its exact ``values``. A ledger need not repeat it then."""
        if any(not self.has_value(value) for value in values):
            return False
        return self.share_of(statement) >= (WORDS_COVERED if values else STATEMENT_COVERED)


def fold(text: str) -> str:
    """Return the text in the form in which texts are compared, without case and without quotation marks."""
    lines = [line if line.isascii() else unicodedata.normalize("NFKC", line) for line in text.splitlines(keepends=True)]
    return SIGNS.sub("", "".join(lines).casefold())


@lru_cache(maxsize=REMEMBERED)
def stems_of(text: str) -> tuple[str, ...]:
    """Return the stems of the telling words of a text, each once. They are all words but function words.

    Chinese and Japanese words are cut into pairs of neighbouring signs.
    """
    folded = fold(text)
    return tuple(dict.fromkeys(_stems_in(folded, WORD.findall(folded))))


@lru_cache(maxsize=REMEMBERED)
def _words_of(value: str) -> list[str]:
    return WORD.findall(fold(value))


def _stems_in(text: str, words: Iterable[str]) -> list[str]:
    """Return the stems of the ``words`` of a folded text."""
    if not CJK.search(text):
        return [word[:STEM_CHARS] for word in words if word not in FUNCTION_WORDS]
    stems: list[str] = []
    for word in words:
        if CJK.search(word):
            stems += [word[place : place + 2] for place in range(max(1, len(word) - 1))]
        elif word not in FUNCTION_WORDS:
            stems.append(word[:STEM_CHARS])
    return stems


def required_of(texts: Sequence[RoleText]) -> list[Required]:
    """Return the things that a summary of ``texts`` must still say. Output of tools is left out.

    An agent states many figures, so only those of its decisions, failures and results are required.
    """
    return [
        required
        for statement in statements_of([entry for entry in texts if entry[0] != "tool"])
        if not statement.speaker and (required := _required_by(statement)) is not None
    ]


def _required_by(statement: Statement) -> Required | None:
    by_person = statement.role != "assistant"
    whole = statement.is_rule or (by_person and is_request(statement.text))
    if not whole and not by_person and not DECIDES.search(statement.text):
        return None
    values = tuple(dict.fromkeys(statement.tokens.exact))
    return Required(statement, values, whole) if values or whole else None


def missing_from(shown: Shown, required: Iterable[Required]) -> list[Required]:
    return [one for one in required if shown.lacks(one)]


def covered_share(shown: Shown, required: Sequence[Required]) -> float:
    """Return the share of the required values that the text says, from 0 to 1; 1 if nothing is required.

    Where no required thing has a value, it is the share of the things.
    """
    values = [value for one in required for value in one.values]
    if not values:
        return 1.0 - len(missing_from(shown, required)) / len(required) if required else 1.0
    return sum(shown.has_value(value) for value in values) / len(values)


def is_about(summary: str, known: Shown, required: Sequence[Required]) -> bool:
    """Check whether a summary speaks of ``known``, its source. One that obeys, refuses or invents does not."""
    if len(required) < FEWEST_REQUIRED:
        return known.share_of(summary) >= LEAST_COVERAGE
    return covered_share(Shown(summary), required) >= LEAST_COVERAGE or (
        len(stems_of(summary)) >= FEWEST_TELLING and known.share_of(summary) >= LEAST_KNOWN
    )
