"""Supersession: a person's newer statement about the same thing takes the place of an older one of theirs.

There is no list of subjects. Either the newer statement says beside a value that something changed ("moved to", "from
now on", "new limit of"), and the older one has its only value of that kind among the same rare words; or both are the
same sentence but for one value, which is said of something ("is 40", "until 12:30").

A wrong mark is worse than a missing one: lists, series, questions, conditions and quotes change nothing, nor does what
the agent, a tool or the instructions say.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf, log
from typing import NamedTuple

from dominds.weighted_cache import Bounded
from remediation.text.coverage import stems_of
from remediation.text.exact_tokens import NAMES, places_of_tokens, shape_of
from remediation.text.statements import Kind, Statement

# Tuned on the 96 updates of the conformance kit and on a reading of all marks in BEAM, tau-bench, LoCoMo and threads.
LEAST_SHARED = 0.15  # of the weight of the words around the newer value, that stand around the older one as well
AROUND = 60  # characters on each side of a value, whose words tell what it is a value of
NEAR = 60  # characters between the words that say that something changed and the value that is new
FEWEST_SHARED = 2  # of these words for a plain number or a measure, of which a dialog has many
MOST_HOLDING = 24  # statements with a word, from which on it tells nothing about what a value is a value of
REMEMBERED = 8_192  # statements whose values a process remembers
FADED = 0.3  # of its worth that what no longer holds has in an account
PASSED_ON = 2.0  # what a statement that supersedes another is worth more than that one
CHANGE = re.compile(
    r"\bfrom now on\b|\bas of (?:now|today)\b|\bno longer\b|\binstead of\b|^(?:quick )?(?:update|correction):"
    r"|\b(?:moved|changed|updated|switched|renamed|rebased|raised|lowered|reduced|increased|improved|extended"
    r"|postponed|rotat(?:ed|ion)|retired)\b"
    r"|\b(?:currently|now) reached\b|\bnew (?:\w+ ){1,3}?(?:is|of)\b|^new \w+ for\b|\bthe new \w+"
    r"|\b(?:is|are|we|they) now (?=\w)|\b\w+ now \w+s\b|\b(?:is|are) .{3,60} now\.?$"
    r"|\bab (?:sofort|jetzt)\b|\bnicht mehr\b|\b(?:geändert|verschoben|umgestellt)\b"
    r"|\b(?:ist|sind|gilt) (?:jetzt|nun)\b"
    r"|改为|改成|改到|换成|不再|更正|推迟到|提前到",
    re.I,
)
# In the clause before what says that something changed: it did not, or not yet.
UNREAL = re.compile(
    r"\b(?:if|whether|would|could|might|may|should|heard|hop(?:e|ing)|wish|suggest\w*|recommend\w*|maybe|perhaps|once|when|"
    r"wenn|falls|ob|könnte|sollte|würde)\b[^,;:.]*$|如果|要是",
    re.I,
)
# Before a value: it is said of something, and is no part of a name.
SAID_OF = re.compile(r"(?:\b(?:is|are|be|to|at|on|by|until|under|below|above|over|ist|sind|bis|auf|um)|[=:是为到])\s*$")
BOUND = re.compile(
    r"\b(?:under|below|at most|at least|up to|within|exceed|cap|limit|ceiling|budget"
    r"|max\w*|min(?:imum)?|target\w*|goal)\b",
    re.I,
)
CLAUSE = re.compile(r"[,;，；]\s|\s(?:and|but|so|und|aber)\s")
FORMER = re.compile(r"\bfrom\s+$|\binstead of\s+$|\bno longer\s+$")  # before the value that an older statement has
ZONE = re.compile(r"\b(?:UTC|GMT|CES?T|[ECMP][SD]T)\b|\b[A-Z][a-z]+ [Tt]ime\b(?! ?out)")
MONEY = re.compile(r"\b(?:\w+ )?(?:hundred|thousand|million)s? (?:dollars|euros|pounds|francs)\b", re.I)
UNITS = re.compile(r"\b(?:metric|imperial)\b", re.I)
TONGUE = re.compile(
    r"\bin (?:English|German|French|Spanish|Italian|Portuguese|Dutch|Polish|Russian|Chinese|Japanese|Korean)\b"
    r"|\bauf (?:Deutsch|Englisch|Französisch|Spanisch)\b|用(?:中文|英文|英语|德语|日语|法语)",
    re.I,
)
# What only one of can hold for an agent's answers: a newer directive resets it, whatever its other words.
AXES = {"zone": ZONE, "units": UNITS, "tongue": TONGUE}
WRITTEN = (*AXES.items(), ("money", MONEY))  # values in plain words
IDENTIFIERS = frozenset({"code", "path", "host", "hash", "url", "address"})
NO_VALUES = frozenset({"name", "quoted", "snake", "camel", "flag"})  # what a statement is about
SETTINGS = frozenset({"setting", "assignment", "pair"})
NOISE = frozenset(  # words that tell nothing of what changed
    stems_of(
        "one two three four five six seven eight nine ten hundred thousand million dollars euros quick update updated "
        "moved changed switched raised lowered reduced increased improved extended new correction currently reached "
        "already recently sure trying"
    )
)
WORD = re.compile(r"[^\W\d_]+")


def mark_superseded(statements: Sequence[Statement], beside: Sequence[Statement] = ()) -> list[Statement]:
    """Return the statements, those that no longer hold marked with the turn that says so.

    A statement that supersedes another is worth at least as much, and is a rule if that one was. Statements
    ``beside`` these are not returned but may supersede them.
    """
    both = [*statements, *beside]
    newer = dict(_find_superseded(both))
    results = [
        one._replace(worth=0.0, again=True) if again else one
        for one, again in zip(statements, _said_again(both), strict=False)
    ]
    for older, place in newer.items():
        if older < len(results):
            results[older] = both[older]._replace(
                kind=Kind.FACT,
                strength=0.0,
                worth=FADED * both[older].worth,
                until=both[place].turn,
                holds=False,
            )
    for older, place in newer.items():
        if place < len(results) and results[place].holds:
            one, former = results[place], both[older]
            is_rule = former.kind is Kind.RULE
            results[place] = one._replace(
                worth=max(one.worth, former.worth) + PASSED_ON,
                kind=Kind.RULE if is_rule else one.kind,
                strength=max(one.strength, former.strength) if is_rule else one.strength,
                corrects=True,
            )
    return results


def _said_again(statements: Sequence[Statement]) -> list[bool]:
    """Tell for each statement whether the same words follow later."""
    last = {(one.role, one.text): place for place, one in enumerate(statements)}
    return [last[one.role, one.text] != place for place, one in enumerate(statements)]


class _Value(NamedTuple):
    """A value in a statement: its kind with its unit or name, its place, and the stems of the words around it."""

    kind: str
    text: str
    start: int
    end: int
    stems: frozenset[str]
    clause: frozenset[str]  # those of them that stand in the value's own clause
    is_bound: bool  # it is a limit or an aim, and not what was seen


# Of a statement they are the same in every rewrite.
_known = Bounded[tuple[_Value, ...]](REMEMBERED)


def _find_superseded(statements: Sequence[Statement]) -> Iterator[tuple[int, int]]:
    """Return pairs of places, older and newer."""
    places = [place for place, one in enumerate(statements) if _may_take_part(one)]
    places.sort(key=lambda place: (_time_of(statements[place]), place))
    pairs = dict(_find_repeated(statements, places)) | dict(_find_reset(statements, places))
    news = {place: values for place in places if (values := _new_values(statements[place]))}
    if news:
        pairs = dict(_find_changed(statements, places, news)) | pairs
    yield from pairs.items()


def _time_of(one: Statement) -> float:
    """Return the statement's turn. Without one, what an account carries counts as old and everything else as new."""
    return one.turn or (0 if one.settled else inf)


def _may_take_part(one: Statement) -> bool:
    return (
        one.role == "user"
        and bool(one.tokens.kinds or any(pattern.search(one.text) for _, pattern in WRITTEN))
        and not one.speaker
        and one.holds
        and not one.again
        and not one.text.endswith(("?", "？"))
    )


def _may_supersede(one: Statement, older: Statement) -> bool:
    """Check that the statements stand in different messages, and that an account has not judged both already."""
    is_other = one.turn != older.turn if one.turn or older.turn else one.source != older.source
    return is_other and not (one.settled and older.settled)


def _find_repeated(statements: Sequence[Statement], places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pair sentences that are the same but for one value. Several of a kind in one message are a series."""
    alike: dict[str, list[int]] = defaultdict(list)
    for place in places:
        alike[shape_of(statements[place].text).lower()].append(place)
    for group in alike.values():
        if len({statements[place].source for place in group}) == len(group):
            for older, newer in pairwise(group):
                if _one_value_differs(statements[newer], statements[older]):
                    yield older, newer


def _find_reset(statements: Sequence[Statement], places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pair directives that set the same axis of the answers, such as their time zone, to another value."""
    last: dict[str, tuple[int, str]] = {}
    for place in places:
        if statements[place].kind is not Kind.RULE:
            continue
        for value in _sole_values(statements[place]):
            if value.kind in AXES:
                older, text = last.get(value.kind, (place, value.text))
                if text != value.text and _may_supersede(statements[place], statements[older]):
                    yield older, place
                last[value.kind] = place, value.text


def _one_value_differs(one: Statement, older: Statement) -> bool:
    if one.text == older.text or not _may_supersede(one, older):
        return False
    differing = [(new, old) for new, old in zip(_values(one), _values(older), strict=False) if new.text != old.text]
    return (
        len(differing) == 1
        and len(_values(one)) == len(_values(older))
        and bool(SAID_OF.search(one.text[: differing[0][0].start]))
    )


def _find_changed(
    statements: Sequence[Statement], places: Sequence[int], news: Mapping[int, tuple[_Value, ...]]
) -> Iterator[tuple[int, int]]:
    """Pair each statement that says that something changed with the older one that tells most of the same thing, and
    with all others that say the same value of it.
    """
    sole = {place: _sole_values(statements[place]) for place in places}
    holding = Counter(stem for values in sole.values() for stem in {stem for value in values for stem in value.stems})
    weights = {stem: log(1 + len(sole) / number) for stem, number in holding.items() if number <= MOST_HOLDING}
    earlier: dict[tuple[str, str], list[tuple[int, _Value]]] = defaultdict(list)  # by kind and stem
    gone: set[int] = set()
    for place in places:
        one = statements[place]
        former = (
            [value.text for value in _values(one) if FORMER.search(one.text[: value.start])] if place in news else []
        )
        alike = [
            (share, other, old.text)
            for new in news.get(place, ())
            for other, old in {pair for stem in new.stems for pair in earlier[new.kind, stem]}
            if other not in gone and _is_other_value(new, old, former) and _may_supersede(one, statements[other])
            if (share := _share_of_words(new, old, weights)) >= LEAST_SHARED
        ]
        nearest = max(alike)[2] if alike else ""
        for older in sorted({other for _, other, value in alike if value == nearest}):
            gone.add(older)
            yield older, place
        for value in sole[place]:
            for stem in value.clause & weights.keys():
                earlier[value.kind, stem].append((place, value))


def _is_other_value(new: _Value, old: _Value, former: Sequence[str]) -> bool:
    """Check for two values of one kind. Where the newer statement says what it was before, it must have been that."""
    return (
        (new.kind, new.is_bound) == (old.kind, old.is_bound)
        and new.text != old.text
        and (not former or old.text in former)
    )


def _share_of_words(new: _Value, old: _Value, weights: Mapping[str, float]) -> float:
    """Return the share of the words around the newer value, by their weight, that the older value's clause has too."""
    common = [weights[stem] for stem in new.stems & old.clause if stem in weights]
    if len(common) < (FEWEST_SHARED if new.kind.startswith("number") else 1):
        return 0.0
    return sum(common) / (sum(weights.get(stem, 0.0) for stem in new.clause or new.stems) or 1.0)


def _new_values(one: Statement) -> tuple[_Value, ...]:
    """Return the value nearest to the words by which a statement says that something changed, and what stands for it
    directly behind it, as in "06-28 (June 28)".
    """
    changes = [change for change in CHANGE.finditer(one.text) if not UNREAL.search(one.text[: change.start()])]
    values = _values(one) if changes else ()
    near = [
        (max(value.start - change.end(), change.start() - value.end), place)
        for change in changes
        for place, value in enumerate(values)
        if not FORMER.search(one.text[: value.start])
    ]
    distance, first = min(near, default=(NEAR + 1, 0))
    if distance > NEAR:
        return ()
    last = first + 1
    while last < len(values) and one.text[values[last - 1].end : values[last].start].strip(" (-/") == "":
        last += 1
    return values[first:last]


def _sole_values(one: Statement) -> tuple[_Value, ...]:
    """Return the values of which a statement has no other of the kind: of several nobody knows which one changed."""
    values = _values(one)
    kinds = Counter(value.kind for value in values)
    return tuple(value for value in values if kinds[value.kind] == 1)


def _values(one: Statement) -> tuple[_Value, ...]:
    values = _known.get(one.text)
    if values is None:
        values = tuple(_read_values(one.text))
        _known.put(one.text, values, weight=1)
    return values


def _read_values(text: str) -> Iterator[_Value]:
    shapes = [(NAMES[str(match.lastgroup)], match) for match in places_of_tokens(text)]
    written = [(kind, match) for kind, pattern in WRITTEN for match in pattern.finditer(text)]
    taken = [match.span() for _, match in written]
    shapes = [
        (shape, match)
        for shape, match in shapes
        if shape not in NO_VALUES and not any(start <= match.start() < end for start, end in taken)
    ]
    for shape, match in sorted((*shapes, *written), key=lambda pair: pair[1].start()):
        start, end = match.span()
        before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
        own = f"{CLAUSE.split(before)[-1]} {CLAUSE.split(after)[0]} {match.group().partition('/')[0]}"
        around = f"{before} {after} {own}"
        kind = _kind_of(shape, match, text)
        is_bound = kind.startswith(("number", "money")) and bool(BOUND.search(around))
        yield _Value(kind, match.group().lower(), start, end, _telling_stems(around), _telling_stems(own), is_bound)


def _telling_stems(text: str) -> frozenset[str]:
    return frozenset(stem for stem in stems_of(text) if stem not in NOISE and not any(map(str.isdigit, stem)))


def _kind_of(shape: str, match: re.Match[str], text: str) -> str:
    """Name a value's kind: a number or a measure with its unit, a version with what has it, a setting with its name."""
    if shape in IDENTIFIERS:
        return "identifier"
    if shape in SETTINGS:
        return re.split(r"\s?[=:]", match.group(), maxsplit=1)[0].lower()
    if shape == "version":
        before = WORD.findall(text[: match.start()])
        return f"version {before[-1].lower() if before else ''}"
    if shape in ("measure", "number"):
        unit = WORD.findall(match.group()) or WORD.findall(text[match.end() : match.end() + 20])[:1]
        return f"number {unit[0].lower().rstrip('s') if unit else '%' if '%' in match.group() else ''}"
    return shape
