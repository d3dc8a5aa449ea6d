"""The key-fact ledger: facts of the text that a rewrite removes, each on one short line.

Rules begin with ``Rule: ``; only people and system prompts can state one. Sentences that tools printed are no facts.
The values in their results are listed last, as the caller writes them.
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

# The end of each line: the turn of a fact and its speaker. Foreign text cannot imitate it, since it is disarmed.
SAID_AT = re.compile(r" \[(\d{1,9}) (person|agent|instructions)\]$")
FROM_TOOL = re.compile(r" \[(\d{1,9}) tool\]$")
# Tuned on the sets of docs/experiments.md#numbers, which has what half and twice as much change.
LEAST_WORTH = 0.6  # of a fact, which many similar lines fall below; 0: lost -2, tau-bench -3, 1.2: lost +9
# The least columns of a person's sentence without a name or value, chosen by reading ledgers. A shorter one says as
# little as "Yes, please go on with the change."
SHORTEST_PLAIN = 40
# Shapes of words in capitals. An agent's sentence whose only tokens they are is a heading or advice, and no fact.
NAMES_ONLY = frozenset(("name", "full name"))
LABEL_END = re.compile(r":[*_`]*\s")  # the end of the label of an entry in a list
FIELD = re.compile(r"`[^`]+`: ")  # the beginning of a line that describes a field or an option
CANDIDATES = 6  # times as many lines as may fit are priced, a bound on the work; 1: BFCL -1, LoCoMo +1, 12: nothing
MOST_LISTED = 400  # tokens of the values of one result; 200: lost +6, 800: nothing
# The least room for a result, in tokens; where there is less for each, the oldest results are left out. 20: lost +1,
# 80: lost +12, tau-bench -2.
LEAST_LISTED = 40


class Result(NamedTuple):
    """The result of a tool.

    ``call`` is the tool's name with its arguments. ``values`` takes a number of tokens and lists the values that fit.
    """

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
    """Return the facts of removed texts, as ``facts_of`` does for statements."""
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
    """Return the facts of removed statements as lines for ``render_ledger``: rules first, then the others in order.

    The rendered ledger takes at most ``budget_tokens``. ``earlier`` are the lines of the ledger before; their
    statements are among the removed ones. A fact is left out if it no longer holds or if ``is_in_sight``, which gets
    its words and its exact tokens, finds it elsewhere in the view. The values of ``results`` come last. They may take
    what is left and ``for_values`` tokens more.
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
    """Return the facts among the lines of a ledger as statements. Their ``source`` is negative."""
    lines = [line for line in ledger if not FROM_TOOL.search(line)]
    shapes = [shape_of(_words_of(line)) for line in lines]
    alike = Counter(shapes)
    return [_read_back(line, place - len(lines), alike[shapes[place]]) for place, line in enumerate(lines)]


def _read_back(line: str, order: int, alike: int) -> Statement:
    """Return a line of an earlier ledger as a statement of its turn.

    It is worth less the more lines are ``alike``: otherwise a new line of the same shape would never enter.
    """
    said = SAID_AT.search(line)
    role = ROLES[said[2]] if said else "assistant"
    statement = statement_of(Said(role, _words_of(line), int(said[1]) if said else 0, settled=True), order)
    worth = worth_of_values(statement.tokens.worths, {})
    return statement._replace(is_rule=line.startswith(RULE), worth=(1.0 + worth) * float(alike**-0.5))


def _label_of(statement: Statement) -> tuple[int, str]:
    """Return the place of a statement's text, and the label if it is an entry of a list, else all its words.

    Entries with one label, such as "Price: $121" and "Price: $152", do not say what they are the prices of.
    """
    return statement.source, LABEL_END.split(statement.bare, maxsplit=1)[0]


def _asks(statement: Statement) -> bool:
    """Check for a question, whose answer tells more than it does. A person's request for work counts as none."""
    is_order = statement.role == "user" and statement.tokens.worths and is_request(statement.text)
    return asks(statement.bare) and not is_order


def _is_of_the_moment(statement: Statement) -> bool:
    """Check for a sentence that says nothing away from its place, such as thanks, consent, or an agent's instructions.

    Lines of an earlier ledger were judged when they entered it.
    """
    if statement.source < 0:
        return False
    if statement.bare[:1] == "[" and statement.bare[-1:] == "]":
        return True  # a date above a message, or a gesture
    if statement.role == "assistant":
        has_names_only = all(shape in NAMES_ONLY for shape, *_ in statement.tokens.places)
        describes = not statement.tokens.exact and FIELD.match(statement.bare)
        return bool(is_request(statement.bare) or has_names_only or describes)
    if statement.tokens.worths or statement.is_rule or statement.corrects or LIMITS.search(statement.bare.lower()):
        return False
    return columns(statement.bare) < SHORTEST_PLAIN


def _words_of(line: str) -> str:
    """Return a line without the marks of the ledger."""
    return SAID_AT.sub("", line).removeprefix(RULE)


def render_ledger(facts: Sequence[str]) -> str:
    """Return the text that stands behind the summary; empty without facts."""
    return "\n".join((HEADING, *(f"- {fact}" for fact in facts))) if facts else ""


def _line_of(statement: Statement) -> str:
    when = f" [{statement.turn} {SPEAKERS[statement.role]}]" if statement.turn else ""
    return f"{RULE if statement.is_rule else ''}{statement.text.rstrip(';；')}{when}"


def _fitting(facts: Sequence[Statement], budget_tokens: int, count: Count) -> list[str]:
    """Return the lines of the facts that fit, with rules at the top.

    Rules and corrections are chosen before others, and then what is worth most for its tokens.
    """
    lines = {_line_of(fact): fact for fact in facts}

    def rank(line: str) -> tuple[bool, float, int]:
        fact = lines[line]
        return not (fact.is_rule or fact.corrects), -density(fact.worth, len(line) / 4, ALONE), -fact.order

    may_fit = sorted(lines, key=rank)[: CANDIDATES * (max(0, budget_tokens) // 8 + 8)]
    priced = [(line, count(f"\n- {line}")) for line in may_fit]
    chosen = fill(priced, budget_tokens, lambda chosen: count(render_ledger(chosen) or HEADING))
    return sorted(chosen, key=lambda line: (not lines[line].is_rule, lines[line].order))


def _fit_values(lines: Sequence[str], results: Sequence[Result], room: int, count: Count) -> list[str]:
    """Return a line for each result whose values fit. Small results leave the rest of their share to large ones.

    Of several results of the same call the newest is listed. ``lines`` are those of an earlier ledger.
    """
    newest: dict[str, tuple[int, Result]] = {}
    for result in (*(_result_of(line, count) for line in lines), *results):
        if size := count(result.values(MOST_LISTED)):
            # Without its arguments a call cannot be told from others of the same tool.
            call = f"{result.call}{result.turn}" if result.call.endswith("()") else result.call
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
    """Return the result of which an earlier ledger lists values. No others of it are known."""
    said = FROM_TOOL.search(line)
    call, _, values = FROM_TOOL.sub("", line).partition("): ")

    def shorten(room: int) -> str:
        rows = values.split("; ")
        while rows and count("; ".join(rows)) > room:
            rows.pop()
        return "; ".join(rows)

    return Result(int(said[1]) if said else 0, f"{call})", shorten)
