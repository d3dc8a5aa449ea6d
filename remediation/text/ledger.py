"""The key-fact ledger (ruling R15): what a rewrite removes and must not be lost, in few words.

A fact is one short line; rules begin with ``Rule: ``. Rules are only what people, system prompts or the model said: the
text of tool results can state facts and never rules.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from remediation.text.secret_masking import REDACTED, redact

__all__ = ["key_facts", "merge_ledgers", "redact", "render_ledger"]

Count = Callable[[str], int]  # tokens of a text
RoleText = tuple[str, str]  # "user", "assistant", "system" or "tool"; and what it said

HEADING = "Key facts from messages that are no longer shown (rules still hold):"
RULE = "Rule: "
TOOL = "Tool output: "  # before a tool's sentence that reads like a rule
LONGEST_FACT = 200  # characters
LONGEST_WHOLE = 130  # characters of a statement that is kept as it stands, since cutting it would save little
CONTEXT_WORDS = 5  # kept before and after a token of a longer statement
RULE_SHARE = 0.6  # of the budget: what rules may take before anything else has its turn
FAILURE_SHARE = 0.8  # the same of rules and failures together
STRONG = 3.0  # the strength from which a rule is marked as one
MEMORABLE_WORTH = 2.0  # of a statement that introduces itself as worth remembering
WEAK = 2.5  # of "write it without recursion"
WEAK_TOLD = 0.8  # of "the parser works without recursion", which only tells
TOOL_TRUST = 0.85  # what a tool printed matters less than what somebody said
CODE_TRUST = 0.5  # names in code can be read again where the code is
LEAST_WORTH = 0.6  # below, a line is not worth its room: one of many like it
REPEATED_WORTH = 2.0  # from which a line without a new token is still worth its room


class Kind(IntEnum):
    """In the order of their claim on the budget."""

    RULE = 0
    FAILURE = 1
    FACT = 2


# Shapes of what cannot be guessed again, with their worth. The first that matches at a place counts.
TOKENS: tuple[tuple[str, str, float], ...] = (
    ("url", r"\b[a-z][a-z0-9+.-]*://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]", 3.0),
    ("email", r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b", 3.0),
    ("setting", r"\b[A-Z][A-Z0-9_]+\s?[=:]\s?(?:\"[^\"\n]{1,80}\"|'[^'\n]{1,80}'|[^\s=,;\"'()]+)", 3.0),
    ("assignment", r"(?<![\w.])[A-Za-z_][\w.-]*\s?=\s?(?:\"[^\"\n]{1,80}\"|'[^'\n]{1,80}'|[\d/~.$-][^\s,;]*)", 2.5),
    ("pair", r"(?<![\w.=])[A-Za-z_][\w.-]*=[^\s=,;\"'()]+", 2.5),
    ("windows path", r"\b[A-Za-z]:\\[\w\\.-]+", 3.0),
    ("path", r"(?<![\w.:/])(?:~|\.{1,2})?/(?:[\w.@-]+/)*[\w.@-]*\w/?|\b(?:[\w.-]+/)+[\w-]+\.\w{1,8}\b", 3.0),
    (
        "time",
        r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?|\b\d{1,2}:\d\d(?::\d\d)?\b",
        2.5,
    ),
    ("uuid", r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", 3.0),
    ("address", r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:/\d+)?\b", 3.0),
    ("version", r"\bv?\d+\.\d+(?:\.\d+)+(?:[-+.]\w+)*\b|\bv\d+(?:\.\d+)*\b", 2.5),
    (
        "money",
        r"[$€£¥]\s?\d[\d,.]*\d?\s?(?:[kKmM]\b|million|billion)?|\b\d[\d,.]*\s?(?:USD|EUR|GBP|dollars|euros)\b",
        2.5,
    ),
    ("host", r"\b(?:[a-zA-Z0-9][\w-]*\.)+(?:[a-z]{2,12})(?::\d+)?\b", 2.5),
    ("hash", r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b", 3.0),
    ("number sign", r"(?<!\w)#\d+\b", 2.5),
    ("flag", r"(?<![\w-])--?[a-zA-Z][\w-]+(?:=\S+)?", 1.5),
    ("code", r"\b[A-Za-z]+(?:[-_/][A-Za-z0-9]+)*[-_/]?\d[\w-]*\b|\b\d+[A-Za-z]+\d\w*\b", 2.5),
    ("quoted", r"\"[^\"\n]{2,80}\"|`[^`\n]{2,80}`|“[^”\n]{2,80}”|(?<!\w)'[^'\n]{2,60}'(?!\w)", 2.5),
    ("snake", r"\b_*[A-Za-z]\w*_\w+\b", 2.0),
    ("camel", r"\b[a-z]+[A-Z]\w*\b|\b[A-Z][a-z0-9]+[A-Z]\w*\b", 2.0),
    (
        "measure",
        r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?\s?(?:%|[KMGT]i?B\b|[kmµn]?s\b|min\b|rpm\b)|(?<![\w.])\d{4,}\b",
        2.0,
    ),
    ("number", r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?!\w)", 1.5),
    ("full name", r"\b[A-Z][a-z'-]+(?: [A-Z][a-z'-]+)+\b", 2.0),
    ("name", r"(?<=[a-z,;:] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*", 1.2),
)
TOKEN = re.compile("|".join(f"(?P<k{place}>{pattern})" for place, (_, pattern, _) in enumerate(TOKENS)))
WORTH = {f"k{place}": worth for place, (_, _, worth) in enumerate(TOKENS)}

# "don't know" and "it doesn't" report; "don't push" instructs.
STRONG_RULE = re.compile(
    r"\bnever\b(?! mind)|\bmust(?: not|n[’']t)\b|\bunder no circumstances\b|\b(?:forbidden|prohibited|off[- ]limits|hands off)\b"
    r"|\bno(?:t| longer) allowed\b|(?-i:\bSTOP\b)|(?<!\bI )(?<!\bwe )(?<!\bthey )\b(?:do not|don[’']t)\b"
    r"|(?:^|[,;:.!(–—-]\s*|\b(?:please|and|but|so|also|then|should|must|always|to) )(?:stop|avoid|refrain from)\b",
    re.I,
)
WEAK_RULE = re.compile(
    r"\b(should(?: not|n[’']t)|may not|cannot|can[’']t|avoid|without|only|always|must|not to|instead of|except|unless|"
    r"leave .{1,40} alone|keep .{1,30} (?:private|secret|unchanged))\b|^no (?!problem|idea|worries|errors?|issues?|thanks)[a-z]",
    re.I,
)
REPORTS = re.compile(
    r"\b(I|we|they|it|he|she|you) (?:really )?(don[’']t|do not|cannot|can[’']t) (?:really )?"
    r"(know|think|understand|see|remember|have|need|mind|care|believe|expect|find|tell|want to)\b",
    re.I,
)
TOLD = re.compile(
    r"(?:the|this|that|these|those|an?|one|another|some|I|we|he|she|it|they|there|our|my|his|her|its|their)\b", re.I
)
FAILURE = re.compile(
    r"\b(errors?|err|fail(?:ed|s|ure|ures|ing)?|exception|traceback|fatal|panic(?:ked)?|crash(?:ed|es)?|refused|denied|"
    r"timed out|unreachable|out of memory|oom|segfault|rejected|aborted|broken|corrupt(?:ed)?|not found|"
    r"does(?: not|n[’']t) work|rolled back|regression)\b|\b\w+(?:Error|Exception)\b|[✗❌]",
    re.I,
)
NO_FAILURE = re.compile(
    r"\b(no|zero|0|without(?: any)?) (errors?|failures?|failed)\b|\b(errors?|failures?|failed)\s?[:=]\s?0\b", re.I
)
MEMORABLE = re.compile(
    r"\b(remember|note that|important|decided|decision|agreed|prefers?|deadline|due|owner|owned by|called|named|codename|"
    r"nicknamed|birthday|lives? in|allergic|favou?rite|assigned to|responsible|approved|chose|choose|will use|switch(?:ed)? to|"
    r"root cause|because|the plan is|goal|budget|located|stored (?:in|at|under)|runs? on|depends on)\b",
    re.I,
)
INJECTION = re.compile(
    r"\b(ignore|disregard|forget|override|bypass)\b.{0,40}\b(instructions?|rules?|prompts?|above|previous|prior|earlier)\b"
    r"|\bapprove (?:all|every)|\bsystem prompt\b|\byou are now\b|\bnew instructions?\b|\bact as\b|\bdo anything now\b",
    re.I,
)
# Who may enter, up to which share of the budget, and whether without a new token.
TURNS = (
    (Kind.RULE, RULE_SHARE, False),
    (Kind.FAILURE, FAILURE_SHARE, False),
    (Kind.FACT, 1.0, False),
    (Kind.FACT, 1.0, True),
)
STATEMENT_END = re.compile(r"(?<=[.!?;])\s+(?=[\"'“(\[]?[A-Z0-9`*-])|(?<=[。！？])")
BULLET = re.compile(r"^(?:[-*•>#]+|\d+[.)])\s+")
PREFIXES = re.compile(rf"^(?:{RULE.strip()}\s*)+", re.I)  # no text makes itself a rule
BLANKS = re.compile(r"\s+")
WORDS = re.compile(r"\S+")
LONG_WORD = re.compile(r"(\S{60})\S{140,}")  # encoded data, over which the patterns above would take quadratic time
CODE = re.compile(
    r"[{};]$|^(?:def|class|if|elif|else|for|while|return|import|from|const|let|var|function|public|private)\b.*[:;{()]"
)


@dataclass(frozen=True, slots=True)
class _Rarity:
    """How many statements, and how many different tokens, are alike but for their numbers: each then says little."""

    statements: Mapping[str, int]
    tokens: Mapping[str, int]

    def of(self, statement: str) -> float:
        """1 for a statement of a shape of its own, less the more there are."""
        return float(self.statements.get(_shape(statement), 1) ** -0.5)

    def worth(self, text: str) -> float:
        """The worth of the tokens in ``text``: the best counts whole, each further one half of the one before."""
        worths = [worth * self.tokens.get(_token_shape(token), 1) ** -0.5 for token, worth in _found(text)]
        return float(sum(worth * 0.5**place for place, worth in enumerate(sorted(worths, reverse=True))))


@dataclass(frozen=True, slots=True)
class _Fact:
    """A line that may enter the ledger. ``order`` is its place in the removed texts, ``worth`` per line, not per token."""

    kind: Kind
    line: str
    worth: float
    order: int
    tokens: frozenset[str]


ALONE = _Rarity({}, {})  # nothing to compare with


def key_facts(texts: Sequence[RoleText], budget_tokens: int, count: Count) -> tuple[str, ...]:
    """The facts of removed ``texts`` that fit, as lines for ``render_ledger``: rules, then failures, then the rest.

    The rendered ledger takes at most ``budget_tokens`` by ``count``. Secrets are redacted before anything is looked at.
    """
    statements = [
        (role, statement)
        for role, text in texts
        for statement in _statements(redact(text))
        if role != "tool" or not INJECTION.search(statement)
    ]
    rarity = _rarity_in([statement for _, statement in statements])
    facts = [
        fact for order, (role, statement) in enumerate(statements) for fact in _facts_of(role, statement, order, rarity)
    ]
    return _fitting(facts, budget_tokens, count)


def merge_ledgers(old: Sequence[str], new: Sequence[str], budget_tokens: int, count: Count) -> tuple[str, ...]:
    """Both ledgers in one, within the budget, without repetitions. Rules go before failures, and those before facts."""
    lines = dict.fromkeys((*old, *new))
    facts = [
        _Fact(_kind_of(line), line, 1.0 + ALONE.worth(line), order, _tokens_of(line) or frozenset((line.lower(),)))
        for order, line in enumerate(lines)
    ]
    return _fitting(facts, budget_tokens, count)


def render_ledger(facts: Sequence[str]) -> str:
    """The block that stands after the summary; empty without facts."""
    return "\n".join((HEADING, *(f"- {fact}" for fact in facts))) if facts else ""


def _statements(text: str) -> Iterator[str]:
    for line in text.splitlines():
        for part in STATEMENT_END.split(LONG_WORD.sub(r"\1…", line.strip())):
            statement = PREFIXES.sub("", BULLET.sub("", BLANKS.sub(" ", part).strip()))
            if len(statement) > 2:
                yield statement


def _facts_of(role: str, statement: str, order: int, rarity: _Rarity) -> Iterator[_Fact]:
    rare = rarity.of(statement)
    tokens = _tokens_of(statement)
    whole = frozenset((statement.lower(),))
    strength = _rule_strength(role, statement)
    if strength >= STRONG:
        yield _Fact(Kind.RULE, RULE + _shortened(statement), strength * rare, order, whole)
    elif strength:
        yield _Fact(Kind.FACT, _shortened(statement), (strength + rarity.worth(statement)) * rare, order, whole)
    elif _is_failure(statement):
        line = _attributed(role, _shortened(statement))
        yield _Fact(Kind.FAILURE, line, (2 + rarity.worth(statement)) * rare, order, tokens or whole)
    else:
        yield from _plain_facts(role, statement, order, rarity)


def _plain_facts(role: str, statement: str, order: int, rarity: _Rarity) -> Iterator[_Fact]:
    memorable = MEMORABLE_WORTH if role != "tool" and MEMORABLE.search(statement) else 0.0
    trust = rarity.of(statement) * (CODE_TRUST if CODE.search(statement) else TOOL_TRUST if role == "tool" else 1.0)
    for line in _lines_of(statement):
        tokens = _tokens_of(line)
        worth = (memorable + rarity.worth(line)) * trust
        if worth >= LEAST_WORTH:
            yield _Fact(Kind.FACT, _attributed(role, line), worth, order, tokens or frozenset((line.lower(),)))


def _rule_strength(role: str, statement: str) -> float:
    """0 if ``statement`` is no rule. A model's own prose instructs nobody unless it says so strongly."""
    if role == "tool" or statement.endswith("?"):
        return 0.0
    if STRONG_RULE.search(statement) and not REPORTS.search(statement):
        return 2 * STRONG * (0.75 if role == "assistant" else 1.0)
    if role == "assistant" or not WEAK_RULE.search(statement):
        return 0.0
    return WEAK_TOLD if TOLD.match(statement) else WEAK


def _is_failure(statement: str) -> bool:
    return bool(FAILURE.search(statement)) and not NO_FAILURE.search(statement)


def _attributed(role: str, line: str) -> str:
    """A tool's sentence that reads like a rule is marked as the tool's."""
    return TOOL + line if role == "tool" and STRONG_RULE.search(line) else line


def _lines_of(statement: str) -> Iterator[str]:
    """A short statement whole; of a longer one, each group of tokens with a few words around it."""
    if len(statement) <= LONGEST_WHOLE:
        yield statement
        return
    words = list(WORDS.finditer(statement))
    for first, last in _groups(statement, words):
        yield _shortened(statement[words[first].start() : words[last].end()].strip(" ,;:"))


def _groups(statement: str, words: Sequence[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """First and last word of each window around tokens; windows that touch are one, while it stays short."""
    first, last = -1, -1
    for found in TOKEN.finditer(statement):
        near = [place for place, word in enumerate(words) if word.end() > found.start() and word.start() < found.end()]
        start, end = max(0, near[0] - CONTEXT_WORDS), min(len(words) - 1, near[-1] + CONTEXT_WORDS)
        if first >= 0 and start <= last + 1 and words[end].end() - words[first].start() <= LONGEST_FACT:
            last = max(last, end)
            continue
        if first >= 0:
            yield first, last
        first, last = (start if start > last else min(last + 1, near[0])), end
    yield (first, last) if first >= 0 else (0, len(words) - 1)


@lru_cache(maxsize=4_096)
def _found(text: str) -> tuple[tuple[str, float], ...]:
    """Each token in ``text``, in lower case, with its worth. Remembered, since a statement is asked for both."""
    found = ((match.group(), WORTH[str(match.lastgroup)]) for match in TOKEN.finditer(text))
    return tuple((token.strip().lower(), worth) for token, worth in found if REDACTED not in token)


def _tokens_of(text: str) -> frozenset[str]:
    return frozenset(token for token, _ in _found(text))


def _rarity_in(statements: Sequence[str]) -> _Rarity:
    different = {token for statement in statements for token, _ in _found(statement)}
    return _Rarity(Counter(map(_shape, statements)), Counter(map(_token_shape, different)))


def _token_shape(token: str) -> str:
    return re.sub(r"\d", "0", token)


def _shape(statement: str) -> str:
    return re.sub(r"\d+", "0", statement)


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_FACT:
        return text
    return text[: LONGEST_FACT - 1].rsplit(" ", 1)[0] + "…"


def _kind_of(line: str) -> Kind:
    if line.startswith(RULE):
        return Kind.RULE
    return Kind.FAILURE if _is_failure(line) else Kind.FACT


def _fitting(facts: Iterable[_Fact], budget_tokens: int, count: Count) -> tuple[str, ...]:
    """The best lines within the budget: rules in their share, failures in theirs, then what adds a new token."""
    room = budget_tokens - count(HEADING)
    chosen: list[_Fact] = []
    lines: set[str] = set()
    tokens: set[str] = set()
    used = 0
    waiting = _ranked(facts, count)
    for kind, share, again in TURNS:
        left = []
        for fact, cost in waiting:
            new = not fact.tokens <= tokens or (again and fact.worth >= REPEATED_WORTH)
            if fact.kind > kind or used + cost > room * share or not new or fact.line.lower() in lines:
                left.append((fact, cost))
                continue
            chosen.append(fact)
            lines.add(fact.line.lower())
            tokens |= fact.tokens
            used += cost
        waiting = left
    return _within(chosen, budget_tokens, count)


def _ranked(facts: Iterable[_Fact], count: Count) -> list[tuple[_Fact, int]]:
    """With their cost in tokens; the most worth for its cost first. Long lines are not punished in full measure."""
    priced = [(fact, count(f"\n- {fact.line}")) for fact in facts]
    return sorted(priced, key=lambda pair: (pair[0].kind, -pair[0].worth / (pair[1] + 6) ** 0.5, pair[0].order))


def _within(chosen: list[_Fact], budget_tokens: int, count: Count) -> tuple[str, ...]:
    """Tokens of parts do not add up exactly: the last chosen go until the whole fits."""
    while chosen:
        lines = tuple(dict.fromkeys(fact.line for fact in sorted(chosen, key=lambda fact: (fact.kind, fact.order))))
        if count(render_ledger(lines)) <= budget_tokens:
            return lines
        chosen = chosen[:-1]
    return ()
