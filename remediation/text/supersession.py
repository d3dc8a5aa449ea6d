"""Supersession: a newer statement about the same thing, by someone entitled to say so, replaces an older one.

There is no list of subjects. Two statements are about the same thing if they share words that few others have,
and values of one kind (an amount, a date, a person, an identifier), and the newer one says that something changed
or repeats the older one with another value.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, log
from typing import NamedTuple

from dominds.weighted_cache import Bounded
from remediation.text.coverage import stems_of
from remediation.text.statements import Kind, Statement

# Tuned on the twelve sessions of the conformance kit's two corpora of updates in other words (96 of them).
LEAST_SHARED = 0.22  # of the weight of the newer statement's words, that both have, beside values of one kind
FEWEST_STEMS = 3  # of a sentence that another repeats with another value; "Item 8." is no sentence
MOST_HOLDING = 24  # statements with a word, from which on it tells nothing about what a statement is about
REMEMBERED = 8_192  # statements whose subjects a process remembers
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


def mark_superseded(statements: Sequence[Statement], beside: Sequence[Statement] = ()) -> list[Statement]:
    """Return the statements, those that no longer hold marked with the turn that says so.

    A statement that supersedes another is worth at least as much, and is a rule if that one was. Statements
    ``beside`` these are not returned but may supersede them.
    """
    both = [*statements, *beside]
    newer = dict(_find_superseded(both))
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


class _Subject(NamedTuple):
    """The subject of a statement: its stems without those of its values, the kinds of these values, and whether
    the statement says that something changed.
    """

    stems: frozenset[str]
    kinds: frozenset[str]
    changes: bool


# Of a statement it is the same in every rewrite, and one rewrite asks for it up to four times.
_known = Bounded[_Subject](REMEMBERED)


def _said_again(statements: Sequence[Statement]) -> list[bool]:
    """Tell for each statement whether the same words follow later."""
    last = {(one.role, one.text): place for place, one in enumerate(statements)}
    return [last[one.role, one.text] != place for place, one in enumerate(statements)]


def _find_superseded(statements: Sequence[Statement]) -> Iterator[tuple[int, int]]:
    """Return pairs of places, older and newer. Each newer statement supersedes at most one older one, the nearest
    in its words. Only a statement with a value takes part.
    """
    subjects = {
        place: subject
        for place, one in enumerate(statements)
        if _may_take_part(one) and (subject := _subject(one)).kinds
    }
    holding = Counter(stem for subject in subjects.values() for stem in subject.stems)
    weights = {stem: log(1 + len(subjects) / number) for stem, number in holding.items()}
    earlier: dict[str, list[int]] = defaultdict(list)  # by each stem that few have
    alike: dict[tuple[str, frozenset[str]], int] = {}  # the newest of the same stems by the same speaker
    gone: set[int] = set()
    for place in sorted(subjects, key=lambda place: (_time_of(statements[place]), place)):
        one, subject = statements[place], subjects[place]
        repeated = alike.get((one.role, subject.stems))
        if repeated is not None and _repeats(one, subject, statements[repeated]):
            older: int | None = repeated
        elif subject.changes or subject.kinds == ONLY_ZONE:
            candidates = {other for stem in subject.stems for other in earlier.get(stem, ())} - gone
            allowed = [other for other in candidates if _may_supersede(one, statements[other])]
            older = _nearest(subject, {other: subjects[other] for other in allowed}, weights)
        else:
            older = None
        if older is not None:
            gone.add(older)
            yield older, place
        alike[one.role, subject.stems] = place
        for stem in subject.stems:
            if holding[stem] <= MOST_HOLDING:
                earlier[stem].append(place)


def _time_of(one: Statement) -> float:
    """Return the statement's turn. Without one, what an account carries counts as old and everything else as new."""
    return one.turn or (0 if one.settled else inf)


def _may_take_part(one: Statement) -> bool:
    return one.role != "tool" and not one.speaker and one.holds and not one.again and not one.text.endswith(("?", "？"))


def _subject(one: Statement) -> _Subject:
    known = _known.get((one.role, one.text))
    if known is None:
        kinds = _kinds(one)
        stems = _stems(one, kinds) if kinds else frozenset()
        known = _Subject(stems, kinds, bool(kinds) and one.role != "assistant" and bool(CHANGE.search(one.text)))
        _known.put((one.role, one.text), known, weight=1)
    return known


def _stems(one: Statement, kinds: frozenset[str]) -> frozenset[str]:
    text = LABEL.sub("", one.text, count=1) if one.text[:2].isupper() else one.text
    values = {
        stem for value in one.tokens.folded if " " in value or any(map(str.isdigit, value)) for stem in stems_of(value)
    }
    values -= {stem for value in one.tokens.folded if "/" in value for stem in stems_of(value.partition("/")[0])}
    noise = values | {stem for change in CHANGE.findall(text) for stem in stems_of(change)} | NUMBERS
    stems = frozenset(stem for stem in stems_of(text) if stem not in noise)
    return stems | ONLY_ZONE if kinds == ONLY_ZONE and len(text.split()) <= SHORT else stems


def _kinds(one: Statement) -> frozenset[str]:
    kinds = {"identifier" if kind in IDENTIFIERS else kind for kind in one.tokens.kinds} - NAMES
    written = {kind for kind, pattern in WRITTEN if pattern.search(one.text)}
    return frozenset((kinds - {"full name"} if "zone" in written else kinds) | written)


def _nearest(subject: _Subject, candidates: Mapping[int, _Subject], weights: Mapping[str, float]) -> int | None:
    """Find the older statement with a value of the same kind that shares most words, if it shares enough."""
    own = sum(weights[stem] for stem in subject.stems)
    best, most = None, 0.0
    for place, older in candidates.items():
        common = subject.kinds & older.kinds
        if not common:
            continue
        shared = sum(weights[stem] for stem in subject.stems & older.stems)
        is_same = shared >= LEAST_SHARED * own if subject.changes else common == older.kinds == ONLY_ZONE
        alike = shared / max(own, sum(weights[stem] for stem in older.stems))
        if is_same and (alike, place) > (most, best or 0):
            best, most = place, alike
    return best


def _may_supersede(one: Statement, older: Statement) -> bool:
    """Check who may overrule whom: a person's word outlasts the agent's, and nobody overrules words of the same
    message.
    """
    is_other = one.turn != older.turn if one.turn or older.turn else one.source != older.source
    by_person = one.role != "assistant"
    return (
        is_other
        and (older.role != "assistant") == by_person
        and one.tokens.folded != older.tokens.folded
        and not (one.settled and older.settled)
    )


def _repeats(one: Statement, subject: _Subject, older: Statement) -> bool:
    """Check whether a statement says an older sentence again with another value."""
    return len(subject.stems) >= FEWEST_STEMS and _may_supersede(one, older) and _one_value_differs(one, older)


def _one_value_differs(one: Statement, older: Statement) -> bool:
    return len(one.tokens.folded - older.tokens.folded) == 1 == len(older.tokens.folded - one.tokens.folded)
