"""What holds now: a newer statement about the same thing, by somebody who may say so, supersedes the older one.

No list of subjects: two statements are about the same thing if they share words that few others have and values of one
kind (an amount, a date, a person, an identifier), and the newer one says that something changed or repeats the older
one with another value.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

from remediation.text.coverage import stems_of
from remediation.text.statements import Kind, Statement

# Tuned on the twelve sessions of the conformance kit's two corpora of updates in other words (96 of them).
LEAST_SHARED = 0.22  # of the weight of the newer statement's words, that both have, beside values of one kind
LEAST_ALIKE = 0.8  # the same where nothing says that something changed
FEWEST_STEMS = 3  # of a sentence that another repeats with another value; "Item 8." is no sentence
MOST_HOLDING = 24  # statements with a word, from which on it tells nothing about what a statement is about
FADED = 0.3  # of its worth that what no longer holds has in an account
PASSED_ON = 2.0  # what a statement that supersedes another is worth more than that one
CHANGE = re.compile(
    r"\b(?:now|no longer|not any ?more|from now on|as of (?:today|now)|instead|rather|update[ds]?|chang(?:e[ds]?|ing)"
    r"|moved?|switch(?:ed|ing)?|new|rotat(?:ed|ion)|renamed|rebased|checked out|correct(?:ion|ed)|actually|replaced?"
    r"|retired|previous(?:ly)?|improved|reached|increased|raised|lowered|postponed|extended|latest|jetzt|ab sofort"
    r"|nicht mehr|stattdessen|geändert|verschoben|neue[mnrs]?|inzwischen)\b"
    r"|现在|改为|改成|改到|换成|不再|更新|更正|推迟|提前到",
    re.I,
)
NUMBERS = frozenset(
    stems_of("one two three four five six seven eight nine ten hundred thousand million dollars euros quick")
)
LABEL = re.compile(r"[A-Z][A-Z ]{2,30}: ?")  # "FACT: " tells nothing of the subject
MONEY = re.compile(r"\b(?:hundred|thousand|million)s? (?:dollars|euros|pounds|francs)\b", re.I)
ZONE = re.compile(r"\b(?:UTC|GMT|CES?T|[ECMP][SD]T)\b|\b[A-Z][a-z]+ [Tt]ime\b(?! ?out)")
IDENTIFIERS = frozenset({"code", "path", "host", "hash", "url", "address"})
NAMES = frozenset(
    {"name", "quoted", "snake", "camel", "flag"}
)  # which say what a statement is about, and are no value of it
WRITTEN = (("zone", ZONE), ("money", MONEY))  # kinds of values that are written in plain words
ONLY_ZONE = frozenset({"zone"})  # a short statement of no other value: of these a dialog has one at a time
SHORT = 12  # words


def marked(statements: Sequence[Statement], beside: Sequence[Statement] = ()) -> list[Statement]:
    """The statements, those that no longer hold with the turn that says so. What supersedes another is worth at least
    as much, and a rule if that one was. ``beside`` are statements that stand elsewhere and may supersede these."""
    both = [*statements, *beside]
    newer = dict(_superseded(both))
    results = [
        replace(one, worth=0.0, again=True) if again else one
        for one, again in zip(statements, _said_again(both), strict=False)
    ]
    for older, place in newer.items():
        if older < len(results):
            results[older] = replace(
                both[older],
                kind=Kind.FACT,
                strength=0.0,
                worth=FADED * both[older].worth,
                until=both[place].turn,
                holds=False,
            )
    for older, place in newer.items():
        if place < len(results) and results[place].holds:
            one, former = results[place], both[older]
            is_rule = former.kind is Kind.RULE and one.role == former.role
            results[place] = replace(
                one,
                worth=max(one.worth, former.worth) + PASSED_ON,
                kind=Kind.RULE if is_rule else one.kind,
                strength=max(one.strength, former.strength) if is_rule else one.strength,
                corrects=True,
            )
    return results


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a statement is about: the weights of its stems, and the kinds of its values."""

    said: Statement
    stems: Mapping[str, float]
    kinds: frozenset[str]
    changes: bool
    weight: float


def _said_again(statements: Sequence[Statement]) -> list[bool]:
    """Of each whether the same words follow later."""
    last = {(one.role, one.text): place for place, one in enumerate(statements)}
    return [last[one.role, one.text] != place for place, one in enumerate(statements)]


def _superseded(statements: Sequence[Statement]) -> Iterator[tuple[int, int]]:
    """Places of older and newer statements. Each newer one supersedes one older one at most:
    the nearest in its words."""
    order = sorted(
        (place for place, one in enumerate(statements) if _may_take_part(one)),
        key=lambda place: (statements[place].turn, place),
    )
    topics = {place: _topic(statements[place]) for place in order}
    holding = Counter(stem for topic in topics.values() for stem in topic)
    subjects: dict[int, _Subject] = {}
    earlier: dict[str, list[int]] = defaultdict(list)
    for place in order:
        one = statements[place]
        stems = {stem: log(1 + len(order) / holding[stem]) for stem in topics[place]}
        subject = subjects[place] = _Subject(
            one,
            stems,
            _kinds(one),
            one.role != "assistant" and bool(CHANGE.search(one.text)),
            sum(stems.values()) or 1.0,
        )
        older = _nearest(place, subject, subjects, earlier)
        told = [stem for stem in stems if holding[stem] <= MOST_HOLDING]
        if older is not None:
            yield older, place
            for stem in subjects[older].stems:
                if older in earlier.get(stem, ()):
                    earlier[stem].remove(older)
        for stem in told:
            earlier[stem].append(place)


def _may_take_part(one: Statement) -> bool:
    return one.role != "tool" and not one.speaker and one.holds and not one.text.endswith(("?", "？"))


def _topic(one: Statement) -> frozenset[str]:
    """The stems that tell what it is about, without those of its values."""
    text = LABEL.sub("", one.text, count=1) if one.text[:2].isupper() else one.text
    values = {
        stem for value in one.tokens.folded if " " in value or any(map(str.isdigit, value)) for stem in stems_of(value)
    }
    values -= {stem for value in one.tokens.folded if "/" in value for stem in stems_of(value.partition("/")[0])}
    is_zone = _kinds(one) == ONLY_ZONE and len(text.split()) <= SHORT
    noise = values | {stem for change in CHANGE.findall(text) for stem in stems_of(change)} | NUMBERS
    return frozenset(stem for stem in stems_of(text) if stem not in noise) | (ONLY_ZONE if is_zone else frozenset())


def _kinds(one: Statement) -> frozenset[str]:
    kinds = {"identifier" if kind in IDENTIFIERS else kind for kind in one.tokens.kinds} - NAMES
    written = {kind for kind, pattern in WRITTEN if pattern.search(one.text)}
    return frozenset((kinds - {"full name"} if "zone" in written else kinds) | written)


def _nearest(
    place: int, subject: _Subject, subjects: Mapping[int, _Subject], earlier: Mapping[str, Sequence[int]]
) -> int | None:
    """The place of the statement that this one supersedes."""
    best, most = None, 0.0
    for other in {other for stem in subject.stems for other in earlier.get(stem, ())}:
        older = subjects[other]
        if not _may_supersede(subject.said, older.said):
            continue
        shared = sum(weight for stem, weight in subject.stems.items() if stem in older.stems)
        alike = shared / max(subject.weight, older.weight)
        common = subject.kinds & older.kinds
        is_same = bool(common) and (
            (subject.changes and shared >= LEAST_SHARED * subject.weight)
            or (
                alike >= LEAST_ALIKE
                and len(subject.stems) >= FEWEST_STEMS
                and _one_value_differs(subject.said, older.said)
            )
            or (common == subject.kinds == older.kinds == ONLY_ZONE)
        )
        if is_same and alike >= most:
            best, most = other, alike
    return best


def _may_supersede(one: Statement, older: Statement) -> bool:
    """A person's word outlasts the agent's; nobody takes back what was said in the same breath."""
    by_person = one.role != "assistant"
    return (
        (one.turn != older.turn or not one.turn)
        and one.source != older.source
        and (older.role != "assistant" if by_person else older.role == "assistant")
        and one.tokens.folded != older.tokens.folded
        and not (one.settled and older.settled)
    )


def _one_value_differs(one: Statement, older: Statement) -> bool:
    return len(one.tokens.folded - older.tokens.folded) == 1 == len(older.tokens.folded - one.tokens.folded)
