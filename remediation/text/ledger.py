"""The key-fact ledger: what a rewrite removes and must not be lost, in few words.

A fact is one short line; rules begin with ``Rule: ``. People's words lead, and rules are only what they or system
prompts said. What tools printed states nothing here, but for the values in it: last, and as the caller lists them.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from remediation.text.exact_tokens import shape_of, worth_of_values
from remediation.text.secret_masking import redact
from remediation.text.statements import Kind, RoleText, Said, Statement, statement_of, statements_of
from remediation.text.supersession import mark_superseded

__all__ = ["key_facts", "redact", "render_ledger"]

Count = Callable[[str], int]  # tokens of a text

HEADING = "Key facts from messages that are no longer shown (rules still hold):"
RULE = "Rule: "
# Behind each line: when it was said, and by whom. No text says so itself.
SAID_AT = re.compile(r" \[(\d{1,9}) (person|agent|instructions)\]$")
CLAIMS = re.compile(r"(?:\s*\[\d{1,9} (?:person|agent|tool|instructions)\]\s*)+$")  # the same, written by a text itself
FROM_TOOL = re.compile(r" \[(\d{1,9}) tool\]$")
SPEAKERS = {"user": "person", "assistant": "agent", "system": "instructions"}
ROLES = {speaker: role for role, speaker in SPEAKERS.items()}
LEAST_WORTH = 0.6  # below, a line is not worth its room: one of many like it
REPEATED_WORTH = 2.0  # from which a line without a new token is still worth its room
CANDIDATES = 6  # times the lines that may fit are priced exactly
RULES_SHARE = 0.6  # of the room, which rules and corrections may take before all else
LEADS, TELLS, LISTS = range(3)  # a rule or a correction; what else was said; values of a tool's result
PREFIXES = re.compile(rf"^(?:{RULE.strip()}\s*)+", re.I)  # no text makes itself a rule


class _Fact(NamedTuple):
    """A line that may enter the ledger. ``order`` is its place in the removed texts, ``worth`` per line."""

    line: str
    kind: Kind
    claim: int  # LEADS, TELLS or LISTS
    tokens: frozenset[str]
    worth: float
    order: int


def key_facts(
    texts: Sequence[RoleText],
    budget_tokens: int,
    count: Count,
    earlier: Sequence[str] = (),
    is_in_sight: Callable[[str, Sequence[str]], bool] = lambda fact, values: False,
    beside: Sequence[RoleText] = (),
    results: Sequence[tuple[int, str]] = (),
) -> tuple[str, ...]:
    """The facts of removed ``texts`` that fit, as lines for ``render_ledger``: rules, then the rest, as they were said.

    The rendered ledger takes at most ``budget_tokens`` by ``count``. Secrets are redacted before anything is looked at.
    ``earlier`` are the lines of the ledger before. What ``is_in_sight`` elsewhere, by its words and exact tokens, is
    left out, and so is what no longer holds by a newer statement among these or ``beside`` them, in the texts that
    stay. ``results`` are turns of tools and the values of their results, as ``values_of_results`` lists them.
    """
    listed = [line for line in earlier if FROM_TOOL.search(line)]
    listed += [f"{values} [{turn} tool]" for turn, values in results]
    earlier = [line for line in earlier if not FROM_TOOL.search(line)]
    alike = Counter(shape_of(_words_of(line)) for line in earlier)
    carried = [
        _read_back(line, place - len(earlier), alike[shape_of(_words_of(line))]) for place, line in enumerate(earlier)
    ]
    statements = statements_of([text for text in texts if text[0] != "tool"])
    everything = mark_superseded([*carried, *statements], statements_of(beside))
    lasting = [
        one
        for one in everything
        if one.holds and one.worth >= LEAST_WORTH and not _asks(one) and not is_in_sight(one.text, one.tokens.exact)
    ]
    values = [_listing(line, order) for order, line in enumerate(dict.fromkeys(listed))]
    return _fitting([*map(_fact_of, lasting), *values], budget_tokens, count)


def _read_back(line: str, order: int, alike: int) -> Statement:
    """Read a line of an earlier ledger as a statement of its time. It is worth less where many lines are
    ``alike``: otherwise a new line of the same shape would never enter.
    """
    said = SAID_AT.search(line)
    role = ROLES[said[2]] if said else "assistant"
    statement = statement_of(Said(role, _words_of(line), int(said[1]) if said else 0, settled=True), order)
    worth = worth_of_values([(token, shape_of(token), worth) for token, worth in statement.tokens.worths], {})
    kind = Kind.RULE if line.startswith(RULE) else Kind.FACT
    return replace(statement, kind=kind, strength=0.0, worth=(1.0 + worth) * float(alike**-0.5))


def _asks(statement: Statement) -> bool:
    """Check for a question or a list's heading of the agent's: what it asked for stands in the answer."""
    return statement.role == "assistant" and statement.text.endswith(("?", "？", ":", "："))


def _words_of(line: str) -> str:
    """Return a line without what the ledger adds to it."""
    return SAID_AT.sub("", line).removeprefix(RULE)


def render_ledger(facts: Sequence[str]) -> str:
    """Write the block that stands after the summary; empty without facts."""
    return "\n".join((HEADING, *(f"- {fact}" for fact in facts))) if facts else ""


def _fact_of(statement: Statement) -> _Fact:
    is_rule = statement.kind is Kind.RULE
    text = CLAIMS.sub("", PREFIXES.sub("", statement.text))
    when = f" [{statement.turn} {SPEAKERS[statement.role]}]" if statement.turn else ""
    return _Fact(
        line=f"{RULE if is_rule else ''}{text}{when}",
        kind=statement.kind,
        claim=LEADS if is_rule or statement.corrects else TELLS,
        tokens=(not statement.strength and statement.tokens.folded) or frozenset((text.lower(),)),
        worth=statement.worth,
        order=statement.order,
    )


def _listing(line: str, order: int) -> _Fact:
    values = frozenset(FROM_TOOL.sub("", line).lower().partition(": ")[2].split(", "))
    return _Fact(line, Kind.FACT, LISTS, values, float(len(values)), order)


def _fitting(facts: Sequence[_Fact], budget_tokens: int, count: Count) -> tuple[str, ...]:
    """Choose the best lines within the budget: what leads in its share, then lines that add a new token, then all
    others that are worth it.
    """
    room = budget_tokens - count(HEADING)
    chosen: dict[str, _Fact] = {}
    tokens: set[str] = set()
    used = 0
    waiting = _rank(facts, max(0, room), count)
    for turn, share in enumerate((RULES_SHARE, 1.0, 1.0)):
        for fact, cost in waiting:
            may_enter = (fact.claim == LEADS, not fact.tokens <= tokens, fact.worth >= REPEATED_WORTH)[turn]
            if may_enter and fact.line not in chosen and used + cost <= room * share:
                chosen[fact.line] = fact
                tokens |= fact.tokens
                used += cost
    return _within(list(chosen.values()), budget_tokens, count)


def _rank(facts: Sequence[_Fact], room: int, count: Count) -> list[tuple[_Fact, int]]:
    """Return facts with their cost in tokens, the most worth for the cost first. Long lines are punished less
    than in proportion to their length.

    Only as many as could ever fit are priced exactly: counting tokens is most of the work.
    """
    ranked: list[tuple[_Fact, int]] = []
    for claim in (LEADS, TELLS, LISTS):
        order = sorted(
            (fact for fact in facts if fact.claim == claim),
            key=lambda fact: (-fact.worth / (len(fact.line) / 4 + 6) ** 0.5, -fact.order),
        )
        priced = [(fact, count(f"\n- {fact.line}")) for fact in order[: CANDIDATES * (room // 8 + 8)]]
        ranked += sorted(priced, key=lambda pair: (-pair[0].worth / (pair[1] + 6) ** 0.5, -pair[0].order))
    return ranked


def _within(chosen: list[_Fact], budget_tokens: int, count: Count) -> tuple[str, ...]:
    """Drop the last chosen lines until the whole fits, since tokens of parts do not add up exactly."""
    while chosen:
        lines = tuple(
            fact.line for fact in sorted(chosen, key=lambda fact: (fact.claim == LISTS, fact.kind, fact.order))
        )
        excess = count(render_ledger(lines)) - budget_tokens
        if excess <= 0:
            return lines
        chosen = chosen[: -max(1, excess // 40)]
    return ()
