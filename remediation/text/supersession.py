"""Supersession: which of people's older statements a newer one about the same thing makes invalid.

There is no list of subjects. A statement supersedes an older one in one of three ways. It says beside a value that
something changed ("moved to", "from now on", "new limit of"), and the older one has a value of the same kind among the
same rare words. Or both are the same sentence with one different value, which is said of something ("is 40", "until
12:30"). Or both are directives that set the same property of the answers, such as their language.

A wrong mark does more harm than a missing one, so lists, series, questions, conditions and quotes supersede nothing,
and neither does what an agent, a tool or the instructions say.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from math import inf
from operator import itemgetter
from typing import NamedTuple

from remediation.text.coverage import stems_of
from remediation.text.exact_tokens import ASSIGNED, tokens_in
from remediation.text.reading import asks
from remediation.text.statements import Statement, statements_of
from remediation.text.words import FUNCTION_WORDS, WIDE, lower_in_place

# Tuned on the 96 updates of the conformance kit and on a reading of all marks in BEAM, tau-bench, LoCoMo and threads.
LEAST_SHARED = 0.15  # the share of the words around the newer value that stand around the older one as well
AROUND = 60  # characters on each side of a value whose words tell what it is a value of
NEAR = 60  # characters at most between the words of a change and the new value
FEWEST_SHARED = 2  # words that have to be shared for a plain number or a measure, of which a dialog has many
MOST_HOLDING = 24  # statements at most with a word that tells what a value is a value of
REMEMBERED = 8_192  # statements whose values a process remembers
FADED = 0.3  # the share of its worth that an invalid statement keeps
PASSED_ON = 2.0  # the worth that a statement gains beyond that of the one which it supersedes
# Words of a change, in lower case, since a pattern that ignores case takes several times as long.
CHANGE = re.compile(
    r"\b(?:(?:from now on|as of (?:now|today)|no longer|instead of)\b|^(?:quick )?(?:update|correction):"
    r"|(?:moved|changed|updated|switched|renamed|rebased|raised|lowered|reduced|increased|improved|extended"
    r"|postponed|rotat(?:ed|ion)|retired)\b"
    r"|(?:currently|now) reached\b|new (?:\w+ ){1,3}?(?:is|of)\b|^new \w+ for\b|the new \w+"
    r"|(?:is|are|we|they) now (?=\w)|\w+ now \w+s\b|(?:is|are) .{3,60} now\.?$"
    r"|(?:ab sofort|nicht mehr|geändert|verschoben|umgestellt|umgestiegen|erhöht|gesenkt|verlängert|jetzt|nun)\b)"
    r"|改为|改成|改到|换成|不再|更正|推迟到|提前到",
)
# Words in the clause before the words of a change. With them nothing has changed, or not yet.
UNREAL = re.compile(
    r"\b(?:if|whether|would|could|might|may|should|heard|hop(?:e|ing)|wish|suggest\w*|recommend\w*|maybe|perhaps|once|"
    r"when|wenn|falls|ob|könnte|sollte|würde)\b[^,;:.]*$|如果|要是",
    re.I,
)
# Words before a value that is said of something and is no part of a name.
SAID_OF = re.compile(r"(?:\b(?:is|are|be|to|at|on|by|until|under|below|above|over|ist|sind|bis|auf|um)|[=:是为到])\s*$")
# Words around a value that is a limit or an aim.
BOUND = re.compile(
    r"\b(?:under|below|at most|at least|up to|within|exceed|cap|limit|ceiling|budget"
    r"|max\w*|min(?:imum)?|target\w*|goal)\b",
    re.I,
)
CLAUSE = re.compile(r"[,;]\s|[，；]|\s(?:and|but|so|und|aber)\s")
# Words before the value that held until now.
FORMER = re.compile(r"(?:\b(?:from|instead of|no longer|von|statt|nicht mehr)\s+|从|不再)$", re.I)
FORMER_CHARS = 16  # the greatest length of these words
# Values in plain words. AXES are those of which answers have only one, so that a newer directive replaces an older one,
# whatever its other words.
WRITTEN = re.compile(
    r"(?P<zone>\b(?:UTC|GMT|CES?T|[ECMP][SD]T)\b|\b[A-Z][a-z]+ [Tt]ime\b(?! ?out))"
    r"|(?P<units>\b(?i:metric|imperial)\b)"
    r"|(?P<tongue>(?i:\bin (?:English|German|French|Spanish|Italian|Portuguese|Dutch|Polish|Russian|Chinese|Japanese"
    r"|Korean)\b|\bauf (?:Deutsch|Englisch|Französisch|Spanisch)\b)|用(?:中文|英文|英语|德语|日语|法语))"
    r"|(?P<money>(?i:\b(?:\w+ )?(?:hundred|thousand|million)s? (?:dollars|euros|pounds|francs)\b))"
)
AXES = frozenset({"zone", "units", "tongue"})
IDENTIFIERS = frozenset({"code", "path", "host", "hash", "url", "address"})
NO_VALUES = frozenset({"name", "quoted", "snake", "camel", "flag"})  # shapes that say what a statement is about
NOISE = frozenset(  # stems that do not tell what it is that changed
    stems_of(
        "one two three four five six seven eight nine ten hundred thousand million dollars euros quick update updated "
        "moved changed switched raised lowered reduced increased improved extended new correction currently reached "
        "already recently sure trying"
    )
)
WORD = re.compile(r"[^\W\d_]+")


def mark_superseded(statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements with those marked that no longer hold, that are said again, or that correct others.

    A statement that supersedes another is worth more than that one was, and is a rule if that one was.
    """
    last = {(one.role, one.text): place for place, one in enumerate(statements)}
    results = [
        one if last[one.role, one.text] == place else one._replace(worth=0.0, again=True)
        for place, one in enumerate(statements)
    ]
    newer = _find_superseded(statements)
    for older, place in newer.items():
        worth, until = FADED * statements[older].worth, statements[place].turn
        results[older] = statements[older]._replace(is_rule=False, worth=worth, until=until, holds=False)
    for older, place in newer.items():
        if results[place].holds:
            one, former = results[place], statements[older]
            worth = max(one.worth, former.worth) + PASSED_ON
            results[place] = one._replace(worth=worth, is_rule=one.is_rule or former.is_rule, corrects=True)
    return results


class _Value(NamedTuple):
    """A value in a statement."""

    kind: str  # its shape, with its unit or its name where it has one
    text: str  # in lower case
    start: int
    end: int
    stems: frozenset[str]  # of the words around it
    clause: frozenset[str]  # those of them that stand in its own clause
    is_bound: bool  # whether it is a limit or an aim, and no observation


class _Reading(NamedTuple):
    """The values of a statement, those of them that are new, and the texts of those that held until now."""

    values: tuple[_Value, ...]
    new: tuple[_Value, ...]
    former: tuple[str, ...]
    stems: frozenset[str]  # of the words around the values


def _find_superseded(statements: Sequence[Statement]) -> Mapping[int, int]:
    """Map the places of older statements to those of the newer ones that supersede them."""
    readings = {place: _read(one.text) for place, one in enumerate(statements) if _may_take_part(one)}

    def time_of(place: int) -> tuple[float, int]:
        """Return what to order statements by. Without a turn those of an account are oldest, others newest."""
        return statements[place].turn or (0 if statements[place].settled else inf), place

    places = sorted(readings, key=time_of)
    readings = {place: readings[place] for place in places if readings[place].values}
    pairs = dict(_find_repeated(statements, readings)) | dict(_find_reset(statements, readings))
    return dict(_find_changed(statements, readings)) | pairs


def may_supersede(text: str) -> bool:
    """Check whether a person's text says a value that is new, or sets an axis of the answers. A repetition with another
    value supersedes without such words.
    """
    if not (CHANGE.search(text.lower()) or WRITTEN.search(text)):
        return False
    statements = [one for one in statements_of([("user", text)]) if _may_take_part(one)]
    return any(
        reading.new or (one.is_rule and any(value.kind in AXES for value in reading.values))
        for one, reading in ((one, _read(one.text)) for one in statements)
    )


def _may_take_part(one: Statement) -> bool:
    """Check whether a statement may supersede others or be superseded: a person's own, with a value in it."""
    return (
        one.role == "user"
        and one.holds
        and not one.speaker
        and not one.again
        and not asks(one.bare)
        and (any(shape not in NO_VALUES for shape, *_ in one.tokens.places) or bool(WRITTEN.search(one.text)))
    )


def _may_supersede(one: Statement, older: Statement) -> bool:
    """Check whether two statements stand in different messages, and are not both of an account that judged them."""
    is_other = one.turn != older.turn if one.turn or older.turn else one.source != older.source
    return is_other and not (one.settled and older.settled)


def _find_repeated(statements: Sequence[Statement], readings: Mapping[int, _Reading]) -> Iterator[tuple[int, int]]:
    """Yield pairs of sentences that differ in one value alone. Several of a kind in one message are a series."""
    alike: dict[str, list[int]] = defaultdict(list)
    for place in readings:
        alike[statements[place].tokens.shape.lower()].append(place)
    for group in alike.values():
        if len({statements[place].source for place in group}) == len(group):
            for older, newer in pairwise(group):
                is_newer = _may_supersede(statements[newer], statements[older])
                if is_newer and _one_value_differs(statements[newer].text, readings[newer], readings[older]):
                    yield older, newer


def _one_value_differs(text: str, newer: _Reading, older: _Reading) -> bool:
    if len(newer.values) != len(older.values):
        return False
    differing = [new for new, old in zip(newer.values, older.values, strict=True) if new.text != old.text]
    return len(differing) == 1 and bool(SAID_OF.search(text[: differing[0].start]))


def _find_reset(statements: Sequence[Statement], readings: Mapping[int, _Reading]) -> Iterator[tuple[int, int]]:
    """Yield pairs of directives that set the same axis of the answers, such as their time zone, to different values."""
    last: dict[str, tuple[int, str]] = {}
    for place, reading in readings.items():
        if not statements[place].is_rule:
            continue
        for value in reading.values:
            if value.kind in AXES:
                older, text = last.get(value.kind, (place, value.text))
                if text != value.text and _may_supersede(statements[place], statements[older]):
                    yield older, place
                last[value.kind] = place, value.text


def _find_changed(statements: Sequence[Statement], readings: Mapping[int, _Reading]) -> Iterator[tuple[int, int]]:
    """Yield pairs of each statement that says that something changed and the older ones that it supersedes.

    These are the one with most words of the newer statement around its value, and all others with the same value.
    """
    kinds = {new.kind for reading in readings.values() for new in reading.new}
    if not kinds:
        return
    holding = Counter(chain.from_iterable([reading.stems for reading in readings.values()]))
    telling = {stem for stem, number in holding.items() if number <= MOST_HOLDING}
    earlier: dict[tuple[str, str], list[tuple[int, _Value]]] = defaultdict(list)  # by kind and stem
    gone: set[int] = set()
    for place, reading in readings.items():
        alike = [
            (share, other, old.text)
            for new in reading.new
            for other, old in {pair for stem in new.stems for pair in earlier[new.kind, stem]}
            if other not in gone
            and (new.kind, new.is_bound) == (old.kind, old.is_bound)
            and new.text != old.text
            and (not reading.former or old.text in reading.former)
            and _may_supersede(statements[place], statements[other])
            if (share := _share_of_words(new, old, telling)) >= LEAST_SHARED
        ]
        nearest = max(alike)[2] if alike else ""
        for older in sorted({other for _, other, value in alike if value == nearest}):
            gone.add(older)
            yield older, place
        for value in reading.values:
            for stem in value.clause if value.kind in kinds else ():
                if stem in telling:
                    earlier[value.kind, stem].append((place, value))


def _share_of_words(new: _Value, old: _Value, telling: set[str]) -> float:
    """Return the share of the words around the newer value that stand in the older value's clause as well."""
    common = len(new.stems & old.clause & telling)
    if common < (FEWEST_SHARED if new.kind.startswith("number") else 1):
        return 0.0
    return common / (len((new.clause or new.stems) & telling) or 1.0)


@lru_cache(maxsize=REMEMBERED)
def _read(text: str) -> _Reading:
    values = tuple(_read_values(text))
    former = [value for value in values if FORMER.search(text, max(0, value.start - FORMER_CHARS), value.start)]
    new = _new_values(text, values, former) if values else ()
    stems = frozenset(chain.from_iterable(value.stems for value in values))
    return _Reading(values, new, tuple(value.text for value in former) if new else (), stems)


def _new_values(text: str, values: Sequence[_Value], former: Sequence[_Value]) -> tuple[_Value, ...]:
    """Return the value nearest to the words of a change, and other forms of it behind it, as in "06-28 (June 28)"."""
    near = [
        (max(value.start - change.end(), change.start() - value.end), place)
        for change in CHANGE.finditer(lower_in_place(text))
        if not UNREAL.search(text[: change.start()])
        for place, value in enumerate(values)
        if value not in former
    ]
    distance, first = min(near, default=(NEAR + 1, 0))
    if distance > NEAR:
        return ()
    last = first + 1
    while last < len(values) and text[values[last - 1].end : values[last].start].strip(" (-/年月") == "":
        last += 1
    return tuple(values[first:last])


def _read_values(text: str) -> Iterator[_Value]:
    written = [(str(match.lastgroup), *match.span()) for match in WRITTEN.finditer(text)]
    places = [  # "Der Server" and "The Server" are nobody's names
        (shape, start, end)
        for shape, start, end in tokens_in(text).places
        if shape not in NO_VALUES
        and not (shape == "full name" and text[start:end].partition(" ")[0].lower() in FUNCTION_WORDS)
        and not any(first <= start < last for _, first, last in written)
    ]
    for shape, start, end in sorted((*places, *written), key=itemgetter(1)):
        value, before, after = text[start:end], text[max(0, start - AROUND) : start], text[end : end + AROUND]
        own = f"{CLAUSE.split(before)[-1]} {CLAUSE.split(after)[0]} {value.partition('/')[0]}"
        around = f"{before} {after} {own}"
        kind = _kind_of(shape, value, before, after)
        is_bound = kind.startswith(("number", "money")) and bool(BOUND.search(around))
        yield _Value(kind, value.lower(), start, end, _telling_stems(around), _telling_stems(own), is_bound)


def _telling_stems(text: str) -> frozenset[str]:
    return frozenset(stem for stem in stems_of(text) if stem not in NOISE and not any(map(str.isdigit, stem)))


def _kind_of(shape: str, value: str, before: str, after: str) -> str:
    """Return a value's kind: numbers and measures with their unit, versions and settings with the name before them."""
    if shape in IDENTIFIERS:
        return "identifier"
    if shape in ASSIGNED:
        return re.split(r"\s?[=:]", value, maxsplit=1)[0].lower()
    if shape == "version":
        named = [word for word in WORD.findall(before.lower()) if word not in FUNCTION_WORDS]
        return f"version {''.join(named[-1:])}"
    if shape in ("measure", "number"):
        unit = WORD.findall(value) or WIDE.findall(after[:1]) or WORD.findall(after[:20])
        return f"number {unit[0].lower().rstrip('s') if unit else '%' if '%' in value else ''}"
    return shape
