"""Statements: the sentences of a dialog, each with a worth, by which it would be missed in the further work.

Output of tools makes no statements: it can be had again, it instructs nobody, and of the lines that were once chosen
from it nine in ten were junk. Statements have a bounded length, so the work is linear in the text.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from dominds.weighted_cache import Bounded
from remediation.text.directives import is_directive
from remediation.text.exact_tokens import Tokens, tokens_in, worth_of_values
from remediation.text.reading import PASTED, Sentence, asks, sentences_of
from remediation.text.words import columns


class Said(NamedTuple):
    """A text that somebody said. ``role`` is ``user``, ``assistant`` or ``system``; ``turn`` is 0 if it is unknown.

    ``settled`` means that the text stands in an earlier account or ledger, which has judged what of it still holds.
    """

    role: str
    text: str
    turn: int = 0
    settled: bool = False


RoleText = tuple[str, str] | Said

# The texts whose statements a process remembers, with these statements: 8,000 messages of LoCoMo take 36 million. If
# the texts of one rewrite do not fit, the rewrite reads each of them several times.
REMEMBERED_CHARS = 40_000_000
SENTENCE_CHARS = 1_000  # counted for a statement, which takes 780 bytes in LoCoMo and 1,280 in tau-bench

# Tuned on the sets of docs/experiments.md#numbers, which has what half and twice as much change.
RULE_WORTH = 3.0  # of a directive; 6: updates and canaries of the kit -7, 12: -15
LIMIT_WORTH = 2.5  # of a limit, such as "write it without recursion"; 1.25: LoCoMo -14, 5: lost +4
REQUEST_WORTH = 2.0  # of a person's request; 1: lost +3, LoCoMo -14, 4: lost +3, LoCoMo +4
PERSON_WORTH = 1.0  # of any sentence of a person but the shortest; 0.5: lost +10, 2: canaries -4
PERSON_TRUST = 1.6  # the factor for people's sentences; 1: lost +9, 3.2: lost -3, canaries -6


class Statement(NamedTuple):
    """A sentence of a text, or a line that a program printed."""

    role: str
    text: str
    bare: str  # the same without the words "(quoting ...)"
    is_rule: bool
    worth: float
    tokens: Tokens
    spelled: bool  # whether it names a number, a day or a time in words
    speaker: str = ""  # who is quoted; empty for the speaker's own words
    holds: bool = True
    until: int = 0  # the turn from which it no longer holds; 0 if it holds or the turn is unknown
    order: int = 0  # its place among all statements
    source: int = 0  # the place of its text among all texts
    paragraph: int = 0  # the place of its paragraph in the text
    turn: int = 0
    settled: bool = False  # as in ``Said``
    again: bool = False  # whether the same words follow later
    corrects: bool = False  # whether it supersedes an older statement

    @property
    def leads_on(self) -> bool:
        """Check whether the sentence only announces what follows it, and says nothing alone."""
        return self.text.rstrip("*_` ").endswith((":", "："))

    @property
    def marked(self) -> str:
        """Return the text, with a mark before the full stop if it no longer holds. There it is read as a part of it."""
        if self.holds:
            return self.text
        end = self.end
        return f"{self.text[:end]} {until_mark(self.until)}{self.text[end:]}"

    @property
    def end(self) -> int:
        """Return where in the text its mark stands: before the sign that ends the sentence."""
        return len(self.text.rstrip(".!。！;；"))


def until_mark(turn: int) -> str:
    """Return the mark of what no longer holds; ``turn`` says something newer, 0 if that is not known."""
    return f"({UNTIL} {turn})" if turn else "(no longer holds)"


# Numbers, days and times in words. They are grouped by their first letters, which halves the time of the search.
SPELLED = re.compile(
    r"\b(?:acht|d(?:rei|ienstag|onnerstag)|e(?:ight|leven|lf)|f(?:our|ive|ifteen|ünf|riday|reitag)|gestern"
    r"|h(?:undred|alf|eute)|m(?:onday|ontag|ittwoch|orgen)|n(?:ine|eun)|once|s(?:ix|even|echs|ieben|aturday|unday"
    r"|amstag|onntag)|t(?:wo|hree|en|welve|wenty|hirty|housand|wice|uesday|hursday|oday|omorrow|onight)|vier"
    r"|w(?:ednesday|eekend|ochenende)|yesterday|z(?:wei|ehn|wölf)|übermorgen"
    r"|(?:last|next) (?:night|week|month|year|spring|summer|autumn|fall|winter)|(?:day|week|month|year)s? ago"
    r"|(?:letzte|nächste)[nrs]? (?:nacht|woche|monat|jahr)|vor \w+ (?:tagen|wochen|monaten|jahren))\b",
)

# The patterns around here read lower case, since patterns that ignore case take several times as long.
# Words by which a person's sentence limits or excludes something.
LIMITS = re.compile(
    r"\b(?:should(?: not|n[’']t)|may not|cannot|can[’']t|never|don[’']t|do not|avoid|without|only|always|must|not"
    r"|instead of|except|unless|nicht|kein\w*|nur|immer|muss|müssen|ohne)\b|必须|只能|不能|不可|一定要|务必",
)
REQUEST = re.compile(
    r"\b(please|(?:could|can|would) (?:you|someone|somebody|anybody)"
    r"|i(?:[’']d)? (?:want|need|like|would like|expect|prefer|appreciate)|we (?:want|need|should|have to)|"
    r"make sure|needs? to|has to|have to|let[’']s|later|afterwards|also|careful|must|should|write (?:that|it) down|"
    r"bitte|ich (?:will|möchte|brauche|hätte gern)|wir (?:brauchen|wollen|sollten|müssen)|soll(?:te|en)?|muss|kannst du"
    r"|können sie|könnten sie|später|danach|außerdem|"
    r"als nächstes)\b"
    r"|^(?:(?:ok(?:ay)?|now|next|then|so),? )?(?:add|build|change|check|compare|convert|create|delete|explain|find|fix"
    r"|give|have a look|list|look|make|move|put|remove|rename|replace|run|send|set|show|switch|test|tell|try|update|use"
    r"|write)\b"
    r"|请|需要|帮我|帮忙|麻烦|给我|接下来",
)
UNTIL = "until turn"
UNTIL_MARK = re.compile(rf"(?: \((?:{UNTIL} (\d{{1,9}})|no longer holds)\))+(?=[.!。！;；]*$)")
WORDS = re.compile(r"\w+")
NESTED = str.maketrans("“”", "‘’")
QUOTED = re.compile(r"\(quoting ([^()\n]{1,80})\) “([^”\n]*)”")


# Remembered since one rewrite asks for the statements of a text up to three times, and the next one again.
_read = Bounded[tuple[Statement, ...]](REMEMBERED_CHARS)


def statements_of(texts: Sequence[RoleText], first: int = 0) -> list[Statement]:
    """Return all statements of ``texts`` in order, without secrets and source code.

    A sentence that is quoted from one of the texts stands there, and is left out where it is quoted. ``first`` is the
    place of the first text.
    """
    read = [(Said(*entry), _read_text(entry[0], entry[1])) for entry in texts]
    said = [one for _, statements in read for one in statements]
    own = {_bare_words(one.text) for one in said if not one.speaker} if any(one.speaker for one in said) else set()
    results = [
        (source, entry, one)
        for source, (entry, statements) in enumerate(read)
        for one in statements
        if not one.speaker or _bare_words(one.bare) not in own
    ]
    shapes = Counter(one.tokens.shape for _, _, one in results)
    alike = Counter({token: shape for _, _, one in results for token, shape, _ in one.tokens.worths}.values())
    return [
        one._replace(
            worth=(one.worth + worth_of_values(one.tokens.worths, alike))
            * shapes[one.tokens.shape] ** -0.5
            * _share_of(one),
            order=order,
            source=first + source,
            turn=entry.turn,
            settled=entry.settled,
        )
        for order, (source, entry, one) in enumerate(results)
    ]


def _bare_words(text: str) -> str:
    """Return the letters and digits of a text: a quote may differ from the original in all other signs."""
    return "".join(WORDS.findall(text))


def statement_of(said: Said, order: int = 0) -> Statement:
    """Return a whole text as one statement, such as a line of a ledger."""
    one = _judge(said.role, Sentence(said.text))
    worth = (one.worth + worth_of_values(one.tokens.worths, {})) * _share_of(one)
    return one._replace(worth=worth, order=order, source=order, turn=said.turn)


def _share_of(one: Statement) -> float:
    """Return the factor by which the worth of a statement grows if a person or the instructions said it."""
    return PERSON_TRUST if one.role != "assistant" and not one.speaker else 1.0


def _read_text(role: str, text: str) -> tuple[Statement, ...]:
    known = _read.get((role, text))
    if known is None:
        known = tuple(_judge(role, sentence) for sentence in sentences_of(text, role == "user"))
        _read.put((role, text), known, len(text) + SENTENCE_CHARS * len(known))
    return known


def _judge(role: str, sentence: Sentence) -> Statement:
    """Return a sentence as a statement, whose worth is that of its words alone. A quoted sentence is no rule."""
    gone = UNTIL_MARK.search(sentence.text) if "(" in sentence.text else None
    said = sentence.text[: gone.start()] + sentence.text[gone.end() :] if gone else sentence.text
    earlier = QUOTED.match(said)
    speaker = sentence.speaker or (earlier[1] if earlier else "")
    bare = earlier[2] if earlier else said
    is_own = role != "assistant" and not speaker and gone is None
    is_rule = is_own and is_directive(bare)
    limits = RULE_WORTH if is_rule else LIMIT_WORTH * (is_own and not asks(bare) and bool(LIMITS.search(bare.lower())))
    spelled = bool(SPELLED.search(bare.lower()))
    return Statement(
        role=role,
        text=f"(quoting {speaker}) “{bare.translate(NESTED)}”" if speaker else bare,
        bare=bare,
        is_rule=is_rule,
        worth=limits + spelled + (0 if speaker == PASTED else _worth_of_words(role, bare)),
        tokens=tokens_in(bare),
        spelled=spelled,
        speaker=speaker,
        paragraph=sentence.paragraph,
        holds=gone is None,
        until=int(gone[1] or 0) if gone else 0,
    )


def _worth_of_words(role: str, text: str) -> float:
    """Return the worth of the words apart from the limits and values in them."""
    if role == "user":
        return PERSON_WORTH * (columns(text) > 20) + REQUEST_WORTH * is_request(text)
    return LIMIT_WORTH * (role == "assistant" and is_directive(text))  # an agent that binds itself states a limit


def is_request(text: str) -> bool:
    """Check whether a sentence asks for something to be done."""
    return bool(REQUEST.search(text.lower()))
