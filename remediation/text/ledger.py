"""The key-fact ledger: what a rewrite removes and must not be lost, in few words.

A fact is one short line; rules begin with ``Rule: ``. People's words lead, and rules are only what they or system
prompts said. What tools printed states nothing here, but for the values in it: last, and as the caller lists them.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from remediation.text.exact_tokens import shape_of, worth_of_values
from remediation.text.marks import KEY_FACTS as HEADING
from remediation.text.marks import ROLES, RULE, SPEAKERS
from remediation.text.reading import asks
from remediation.text.selection import ALONE, density, fill
from remediation.text.statements import LIMITS, RoleText, Said, Statement, is_request, statement_of, statements_of
from remediation.text.supersession import mark_superseded
from remediation.text.words import columns

Count = Callable[[str], int]  # tokens of a text

# Behind each line: when it was said, and by whom. No text says so itself.
SAID_AT = re.compile(r" \[(\d{1,9}) (person|agent|instructions)\]$")
FROM_TOOL = re.compile(r" \[(\d{1,9}) tool\]$")
# Tuned on the sets of docs/experiments.md#numbers, which has what half and twice as much change.
# Below, a line is not worth its room: one of many like it. 0: lost -2, tau-bench -3, 1.2: lost +9.
LEAST_WORTH = 0.6
# Columns of a person's sentence without a name or value, by reading ledgers: "Yes, please go on with the change."
SHORTEST_PLAIN = 40
# Shapes of what stands in capitals. Alone they make a heading or advice of the agent's sentence, and no fact.
NAMES_ONLY = frozenset(("name", "full name"))
LABEL_END = re.compile(r":[*_`]*\s")  # of an entry in a list
FIELD = re.compile(r"`[^`]+`: ")  # before what it is for, where nothing says which value it has
CANDIDATES = 6  # times the lines that may fit are priced exactly, a bound on work; 1: BFCL -1, LoCoMo +1, 12: nothing
MOST_LISTED = 400  # tokens of the values of one result; 200: lost +6, 800: nothing
# Tokens of the values of a result; with less room for each, the oldest go. 20: lost +1, 80: lost +12, tau-bench -2.
LEAST_LISTED = 40


class Result(NamedTuple):
    """The result of a tool. ``call`` is its name with its arguments; ``values`` lists what fits into so many tokens."""

    turn: int
    call: str
    values: Callable[[int], str]


def key_facts(
    texts: Sequence[RoleText],
    budget_tokens: int,
    count: Count,
    earlier: Sequence[str] = (),
    is_in_sight: Callable[[str, Sequence[str]], bool] = lambda fact, values: False,
) -> tuple[str, ...]:
    """Return the facts of removed ``texts`` that fit and still hold, as ``facts_of`` does."""
    statements = (*lines_read_back(earlier), *statements_of([text for text in texts if text[0] != "tool"]))
    return facts_of(mark_superseded(statements), budget_tokens, count, earlier, is_in_sight)


def facts_of(
    removed: Sequence[Statement],
    budget_tokens: int,
    count: Count,
    earlier: Sequence[str],
    is_in_sight: Callable[[str, Sequence[str]], bool],
    results: Sequence[Result] = (),
    for_values: int = 0,
) -> tuple[str, ...]:
    """Return the facts of removed statements that fit, as lines for ``render_ledger``: rules first, in the order said.

    The rendered ledger takes at most ``budget_tokens`` by ``count``. ``earlier`` are the lines of the ledger before,
    whose statements are among the removed. What ``is_in_sight`` elsewhere, by its words and exact tokens, is left out,
    and so is what no longer holds. The values of ``results`` come last, and may take ``for_values`` tokens beside.
    """
    labels = Counter(map(_label_of, removed))
    facts = [
        one
        for one in removed
        if one.holds
        and one.worth >= LEAST_WORTH
        and not (one.leads_on or _asks(one) or _is_of_the_moment(one))
        and (one.role != "assistant" or labels[_label_of(one)] == 1)
        and not is_in_sight(one.text, one.tokens.exact)
    ]
    chosen = _fitting(facts, budget_tokens, count)
    room = budget_tokens + for_values
    listed = [line for line in earlier if FROM_TOOL.search(line)]
    values = _fit_values(listed, results, room - count(render_ledger(chosen) or HEADING), count)
    while values and count(render_ledger([*chosen, *values])) > room:
        values.pop(0)
    return (*chosen, *values)


def lines_read_back(ledger: Sequence[str]) -> list[Statement]:
    """Read the lines of a ledger as statements, but for values of results. Their ``source`` is negative."""
    lines = [line for line in ledger if not FROM_TOOL.search(line)]
    shapes = [shape_of(_words_of(line)) for line in lines]
    alike = Counter(shapes)
    return [_read_back(line, place - len(lines), alike[shapes[place]]) for place, line in enumerate(lines)]


def _read_back(line: str, order: int, alike: int) -> Statement:
    """Read a line of an earlier ledger as a statement of its time. It is worth less where many lines are
    ``alike``: otherwise a new line of the same shape would never enter.
    """
    said = SAID_AT.search(line)
    role = ROLES[said[2]] if said else "assistant"
    statement = statement_of(Said(role, _words_of(line), int(said[1]) if said else 0, settled=True), order)
    worth = worth_of_values(statement.tokens.worths, {})
    return statement._replace(is_rule=line.startswith(RULE), worth=(1.0 + worth) * float(alike**-0.5))


def _label_of(statement: Statement) -> tuple[int, str]:
    """Return the label of a list's entry, with the text it stands in; of another statement all its words.

    Entries with one label, such as "Price: $121" and "Price: $152", do not say what they are the prices of.
    """
    return statement.source, LABEL_END.split(statement.bare, maxsplit=1)[0]


def _asks(statement: Statement) -> bool:
    """Check for a question, whose answer tells more, unless a person's names something that is to be done."""
    is_order = statement.role == "user" and statement.tokens.worths and is_request(statement.text)
    return asks(statement.bare) and not is_order


def _is_of_the_moment(statement: Statement) -> bool:
    """Check for what says nothing away from where it was said: a person's thanks or consent, and what the agent tells
    a person to do next. Lines of an earlier ledger were judged before.
    """
    if statement.source < 0:
        return False
    if statement.bare[:1] == "[" and statement.bare[-1:] == "]":
        return True  # a date above a message, or what is done beside speaking
    if statement.role == "assistant":
        has_names_only = all(shape in NAMES_ONLY for shape, *_ in statement.tokens.places)
        describes = not statement.tokens.exact and FIELD.match(statement.bare)
        return bool(is_request(statement.bare) or has_names_only or describes)
    if statement.tokens.worths or statement.is_rule or statement.corrects or LIMITS.search(statement.bare.lower()):
        return False
    return columns(statement.bare) < SHORTEST_PLAIN


def _words_of(line: str) -> str:
    """Return a line without what the ledger adds to it."""
    return SAID_AT.sub("", line).removeprefix(RULE)


def render_ledger(facts: Sequence[str]) -> str:
    """Write the block that stands after the summary; empty without facts."""
    return "\n".join((HEADING, *(f"- {fact}" for fact in facts))) if facts else ""


def _line_of(statement: Statement) -> str:
    when = f" [{statement.turn} {SPEAKERS[statement.role]}]" if statement.turn else ""
    return f"{RULE if statement.is_rule else ''}{statement.text.rstrip(';；')}{when}"


def _fitting(facts: Sequence[Statement], budget_tokens: int, count: Count) -> list[str]:
    """Choose the best lines within the budget: rules and corrections, then what is worth most for its tokens."""
    lines = {_line_of(fact): fact for fact in facts}

    def rank(line: str) -> tuple[bool, float, int]:
        fact = lines[line]
        return not (fact.is_rule or fact.corrects), -density(fact.worth, len(line) / 4, ALONE), -fact.order

    may_fit = sorted(lines, key=rank)[: CANDIDATES * (max(0, budget_tokens) // 8 + 8)]
    priced = [(line, count(f"\n- {line}")) for line in may_fit]
    chosen = fill(priced, budget_tokens, lambda chosen: count(render_ledger(chosen) or HEADING))
    return sorted(chosen, key=lambda line: (not lines[line].is_rule, lines[line].order))


def _fit_values(lines: Sequence[str], results: Sequence[Result], room: int, count: Count) -> list[str]:
    """List the values of results, each in its share of the room: small ones leave theirs to the large ones. Of the
    results of the same call the newest is listed. ``lines`` are those of an earlier ledger.
    """
    newest: dict[str, tuple[int, Result]] = {}
    for result in (*(_result_of(line, count) for line in lines), *results):
        if size := count(result.values(MOST_LISTED)):
            call = f"{result.call}{result.turn}" if result.call.endswith("()") else result.call  # unknown arguments
            newest.pop(call, None)
            newest[call] = size, result
    chosen = list(newest)[-max(1, room // LEAST_LISTED) :]
    listed: dict[str, str] = {}
    for place, call in enumerate(sorted(chosen, key=lambda call: newest[call][0])):
        result = newest[call][1]
        frame = f"{result.call}: {{}} [{result.turn} tool]"
        share = room // (len(chosen) - place) - count(f"\n- {frame}")
        if values := result.values(min(share, MOST_LISTED)):
            listed[call] = frame.replace("{}", values)
            room -= count(f"\n- {listed[call]}")
    return [listed[call] for call in chosen if call in listed]


def _result_of(line: str, count: Count) -> Result:
    """Read back a line of values."""
    said = FROM_TOOL.search(line)
    call, _, values = FROM_TOOL.sub("", line).partition("): ")

    def shorten(room: int) -> str:
        rows = values.split("; ")
        while rows and count("; ".join(rows)) > room:
            rows.pop()
        return "; ".join(rows)

    return Result(int(said[1]) if said else 0, f"{call})", shorten)
