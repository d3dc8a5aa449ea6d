"""The key-fact ledger: what a rewrite removes and must not be lost, in few words.

A fact is one short line; rules begin with ``Rule: ``. People's words lead, and rules are only what they or system
prompts said. What tools printed states nothing here.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from dominds.weighted_cache import Bounded
from remediation.text.exact_tokens import (
    Tokens,
    places_of_tokens,
    shape_of,
    tokens_in,
    worth_of_values,
)
from remediation.text.reading import LONGEST_STATEMENT
from remediation.text.secret_masking import redact
from remediation.text.statements import (
    Kind,
    RoleText,
    Said,
    Statement,
    statement_of,
    statements_of,
)
from remediation.text.supersession import mark_superseded

__all__ = ["key_facts", "redact", "render_ledger"]

Count = Callable[[str], int]  # tokens of a text

HEADING = "Key facts from messages that are no longer shown (rules still hold):"
RULE = "Rule: "
# Behind each line: when it was said, and by whom. No text says so itself.
SAID_AT = re.compile(r" \[(\d{1,9}) (person|agent|instructions)\]$")
CLAIMS = re.compile(r"(?:\s*\[\d{1,9} (?:person|agent|tool|instructions)\]\s*)+$")  # the same, written by a text itself
FROM_TOOL = re.compile(r" \[\d{1,9} tool\]$")  # what a ledger of an earlier version carries of a tool's output
SPEAKERS = {"user": "person", "assistant": "agent", "system": "instructions"}
ROLES = {speaker: role for role, speaker in SPEAKERS.items()}
LONGEST_FACT = 200  # characters
LONGEST_WHOLE = 160  # characters of a statement that is kept as it stands, since cutting it would save little
CONTEXT_WORDS = 6  # kept before and after a token of a longer statement
LEAST_WORTH = 0.6  # below, a line is not worth its room: one of many like it
REPEATED_WORTH = 2.0  # from which a line without a new token is still worth its room
REMEMBERED = 8_192  # statements whose lines a process remembers
CANDIDATES = 6  # times the lines that may fit are priced exactly

# Who may enter, up to which share of the budget, from which worth, and whether without a new token.
TURNS = (
    (0, 0.6, 0.0, False),
    (1, 0.8, 0.0, False),
    (2, 1.0, 0.0, False),
    (2, 1.0, REPEATED_WORTH, True),
)
RULES = 0  # the claim of what goes first; the claims are those of the kinds
PREFIXES = re.compile(rf"^(?:{RULE.strip()}\s*)+", re.I)  # no text makes itself a rule
WORDS = re.compile(r"\S+")


class _Line(NamedTuple):
    """A line that may enter the ledger."""

    claim: int
    kind: Kind
    text: str
    tokens: frozenset[str]
    exact: tuple[str, ...]


class _Fact(NamedTuple):
    """A line beside the others. ``order`` is its place in the removed texts, ``worth`` per line, not per token."""

    line: _Line
    worth: float
    order: int


# Of a statement they are the same in every rewrite.
_known = Bounded[tuple[_Line, ...]](REMEMBERED)


def key_facts(
    texts: Sequence[RoleText],
    budget_tokens: int,
    count: Count,
    earlier: Sequence[str] = (),
    is_in_sight: Callable[[str, Sequence[str]], bool] = lambda fact, values: False,
    beside: Sequence[RoleText] = (),
) -> tuple[str, ...]:
    """The facts of removed ``texts`` that fit, as lines for ``render_ledger``: rules, then failures, then the rest.

    The rendered ledger takes at most ``budget_tokens`` by ``count``. Secrets are redacted before anything is looked at.
    ``earlier`` are the lines of the ledger before. What ``is_in_sight`` elsewhere, by its words and exact tokens, is
    left out, and so is what no longer holds by a newer statement among these or ``beside`` them, in the texts that
    stay.
    """
    earlier = [line for line in earlier if not FROM_TOOL.search(line)]
    alike = Counter(shape_of(_words_of(line)) for line in earlier)
    carried = [
        _read_back(line, place - len(earlier), alike[shape_of(_words_of(line))]) for place, line in enumerate(earlier)
    ]
    statements = statements_of([entry for entry in texts if entry[0] != "tool"])
    everything = mark_superseded([*(one for one, _ in carried), *statements], statements_of(beside))
    old = [fact for one, (_, fact) in zip(everything, carried, strict=False) if one.holds]
    new = [
        _Fact(line, statement.worth, statement.order)
        for statement in everything[len(carried) :]
        if statement.holds and statement.worth >= LEAST_WORTH
        for line in _lines_of(statement)
    ]
    facts = [fact for fact in (*old, *new) if not is_in_sight(_words_of(fact.line.text), fact.line.exact)]
    return _fitting(facts, budget_tokens, count)


def _read_back(line: str, order: int, alike: int) -> tuple[Statement, _Fact]:
    """Read a line of an earlier ledger as a statement of its time. It is worth less where many lines are
    ``alike``: otherwise a new line of the same shape would never enter.
    """
    said = SAID_AT.search(line)
    role = ROLES[said[2]] if said else "assistant"
    statement = statement_of(Said(role, _words_of(line), int(said[1]) if said else 0, settled=True), order)
    tokens = statement.tokens
    kind = Kind.RULE if line.startswith(RULE) else statement.kind if statement.kind is Kind.FAILURE else Kind.FACT
    worth = worth_of_values([(token, shape_of(token), worth) for token, worth in tokens.worths], {})
    as_line = _Line(int(kind), kind, line, tokens.folded or frozenset((line.lower(),)), tokens.exact)
    return statement, _Fact(as_line, (1.0 + worth) * float(alike**-0.5), order)


def _words_of(line: str) -> str:
    """Return a line without what the ledger adds to it."""
    return SAID_AT.sub("", line).removeprefix(RULE)


def render_ledger(facts: Sequence[str]) -> str:
    """Write the block that stands after the summary; empty without facts."""
    return "\n".join((HEADING, *(f"- {fact}" for fact in facts))) if facts else ""


def _lines_of(statement: Statement) -> tuple[_Line, ...]:
    key = statement.role, statement.text, statement.kind
    lines = _known.get(key)
    if lines is None:
        lines = tuple(_drawn_from(statement))
        _known.put(key, lines, weight=1)
    if statement.corrects:
        lines = tuple(line._replace(claim=RULES) for line in lines)
    if not statement.turn:
        return lines
    when = f" [{statement.turn} {SPEAKERS[statement.role]}]"
    return tuple(line._replace(text=line.text + when) for line in lines)


def _drawn_from(statement: Statement) -> Iterator[_Line]:
    text = _without_claims(statement.text)
    whole = frozenset((text.lower(),))
    claim = int(statement.kind)
    if statement.kind is Kind.RULE:
        line = _without_claims(_shorten(text))
        exact = _tokens_of(line, statement).exact
        yield _Line(claim, Kind.RULE, RULE + line, whole, exact)
    elif statement.kind is Kind.FAILURE or statement.strength:
        line = _shorten(text)
        tokens = (not statement.strength and statement.tokens.folded) or whole
        exact = _tokens_of(line, statement).exact
        yield _Line(claim, statement.kind, line, tokens, exact)
    else:
        for part in filter(None, map(_without_claims, _parts_of(text))):
            of_part = _tokens_of(part, statement)
            yield _Line(claim, Kind.FACT, part, of_part.folded or whole, of_part.exact)


def _without_claims(text: str) -> str:
    """Return a text without the marks of a rule, and of when and by whom it was said, that it gives itself."""
    return CLAIMS.sub("", PREFIXES.sub("", text))


def _tokens_of(line: str, statement: Statement) -> Tokens:
    return statement.tokens if line == statement.text else tokens_in(line)


def _parts_of(statement: str) -> Iterator[str]:
    """Return a short statement whole, and of a longer one each group of tokens with a few words around it."""
    if len(statement) <= LONGEST_WHOLE:
        yield statement
        return
    words = list(WORDS.finditer(statement[:LONGEST_STATEMENT]))
    for first, last in _groups(statement, words):
        yield _shorten(statement[words[first].start() : words[last].end()].strip(" ,;:"))


def _groups(statement: str, words: Sequence[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Return the first and last word of each window around tokens. Windows that touch are joined while they stay
    short.
    """
    first, last = -1, -1
    starts = [word.start() for word in words]
    for result in places_of_tokens(statement[:LONGEST_STATEMENT]):
        first_of_token = bisect_right(starts, result.start()) - 1
        last_of_token = bisect_left(starts, result.end()) - 1
        start, end = max(0, first_of_token - CONTEXT_WORDS), min(len(words) - 1, last_of_token + CONTEXT_WORDS)
        if first >= 0 and start <= last + 1 and words[end].end() - words[first].start() <= LONGEST_FACT:
            last = max(last, end)
            continue
        if first >= 0:
            yield first, last
        first, last = (start if start > last else min(last + 1, first_of_token)), end
    yield (first, last) if first >= 0 else (0, len(words) - 1)


def _shorten(text: str) -> str:
    if len(text) <= LONGEST_FACT:
        return text
    return text[: LONGEST_FACT - 1].rsplit(" ", 1)[0] + "…"


def _fitting(facts: Iterable[_Fact], budget_tokens: int, count: Count) -> tuple[str, ...]:
    """Choose the best lines within the budget: rules in their share, failures in theirs, then lines that add a
    new token.
    """
    room = budget_tokens - count(HEADING)
    chosen: list[_Fact] = []
    lines: set[str] = set()
    tokens: set[str] = set()
    used = 0
    waiting = _rank(facts, max(0, room), count)
    for claim, share, least, again in TURNS:
        left = []
        for fact, cost in waiting:
            line = fact.line
            if (
                line.claim > claim
                or fact.worth < least
                or used + cost > room * share
                or not (again or not line.tokens <= tokens)
                or line.text.lower() in lines
            ):
                left.append((fact, cost))
                continue
            chosen.append(fact)
            lines.add(line.text.lower())
            tokens |= line.tokens
            used += cost
        waiting = left
    return _within(chosen, budget_tokens, count)


def _rank(facts: Iterable[_Fact], room: int, count: Count) -> list[tuple[_Fact, int]]:
    """Return facts with their cost in tokens, the most worth for the cost first. Long lines are punished less
    than in proportion to their length.

    Only as many of each claim as could ever fit are priced exactly: counting tokens is most of the work.
    """
    by_claim: dict[int, list[_Fact]] = {}
    for fact in facts:
        by_claim.setdefault(fact.line.claim, []).append(fact)
    ranked: list[tuple[_Fact, int]] = []
    for claim in sorted(by_claim):
        order = sorted(
            by_claim[claim], key=lambda fact: (-fact.worth / (len(fact.line.text) / 4 + 6) ** 0.5, -fact.order)
        )
        priced = [(fact, count(f"\n- {fact.line.text}")) for fact in order[: CANDIDATES * (room // 8 + 8)]]
        ranked += sorted(priced, key=_by_density)
    return ranked


def _by_density(priced: tuple[_Fact, int]) -> tuple[float, int]:
    fact, cost = priced
    return -fact.worth / (cost + 6) ** 0.5, -fact.order


def _within(chosen: list[_Fact], budget_tokens: int, count: Count) -> tuple[str, ...]:
    """Drop the last chosen lines until the whole fits, since tokens of parts do not add up exactly."""
    while chosen:
        order = sorted(chosen, key=lambda fact: (fact.line.kind, fact.order))
        lines = tuple(dict.fromkeys(fact.line.text for fact in order))
        excess = count(render_ledger(lines)) - budget_tokens
        if excess <= 0:
            return lines
        chosen = chosen[: -max(1, excess // 40)]
    return ()
