"""Messages read as what they are: blocks with a speaker and a kind, and the sentences of those that say something.

Everything that judges text reads blocks. A printed program, a listing of files, the furniture of a mail and the
runtime's own marks state nothing; what somebody quotes is told as quoted. One pass over the lines, linear in the text.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count, groupby, pairwise
from typing import NamedTuple

from remediation.text.marks import PART_BEGIN, PART_END, disarm
from remediation.text.secret_masking import redact
from remediation.text.words import WIDE, columns

LONGEST_STATEMENT = 400  # characters; what is longer than this and the marks about it is cut at a blank
MARK_CHARS = 120
MOST_CHARS = 120_000  # that are read of one text: its beginning and its end
HYPHENS = frozenset(("", "\xad", "\u2010"))  # at the end of a line, none of the word's own
WRAPPED_COLUMNS = 50  # of the widest line of what was wrapped: mails are wrapped at 60 to 80


class Kind(StrEnum):
    """The kind of a line of a message."""

    PROSE = "prose"
    PRINTED = "printed"  # by a program, and pasted: lines are no sentences
    SILENT = "silent"  # code, headings, the runtime's own marks, who wrote what is quoted, and where a file begins


ATTACHED = re.compile(r'<file name="([^"]{1,120})">$')  # from here to its end a message is what files say
FENCES = ("```", "~~~")
QUOTE = re.compile(r"\s{0,3}>(?!>>|=)\s?")
MARK = re.compile(
    r"\[(?:Result of |Omitted |Summary of |Cut, since it has |Recalled by the runtime"
    r"|… [\d,]+ (?:lines|characters) left out"
    r"|I answered this; )|Previous \d+ turns?: \d|Key facts from messages that are no longer shown"
)
WROTE = re.compile(
    r"(?:.{0,80}[,>:\d] )?([\w.'-]+(?: [\w.'-]+){0,3})(?: <[^<>\s]{1,80}>)? (?:wrote|writes|said|schrieb|a écrit"
    r"|escribió)\s?:$"
)
NUMBERED = re.compile(r"\s{0,8}(\d{1,6})(?:\t|[:→|-] ?| \| ?|  )(.*)")
# How a line begins or stands that people do not write: indented, in columns, with a sign or a clock, without a blank.
PRINTED = re.compile(
    r"\s+(?![-*•+] |\d{1,3}[.)] )\S|[-+#;](?=\S)|[<|$%=~^{}\\]|@@|//|/\*|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
    r"|\[?\d\d:\d\d:\d\d\b|.*[^\s.!?:;,。] {2,}\S|.*\S\t|[!-~]{12,}$|\w+ \"[^\"]*\"$"
)
LINE_CHARS = 200  # of a line, by which its form is judged
FEWEST_PRINTED = 3  # such lines, and half of a paragraph, that make it a paste
BULLET = re.compile(
    rf"(?:[-*#\u2010-\u2015\u2022-\u2043\u25a0-\u27bf]+|\d{{1,3}}(?:\.\d{{1,3}}){{0,4}}\\?[.)])\s+"
    rf"|\d{{1,3}}[.、．](?={WIDE.pattern})"
)
# Above a part of an answer. What a person puts above a message is its title, and says what it is about.
HEADING = re.compile(r"#{1,6}\s|(?:\d{1,3}\\?[.)]\s+)?\*\*[^*]*[^*.!?:;。！？；]\*\*$")
# "Anna: > quoted", where a name was put before a message.
LABELLED_QUOTE = re.compile(r"[A-Z][\w.-]{0,30}: (?=> ?(?:\d{1,3}\\?\. )?[^\W\d]|> ?>)")
LONG_WORD = re.compile(r"([!-~]{60})[!-~]{140,}")  # encoded data, over which patterns would take quadratic time
# It begins with a class of signs, which are looked for without trying the rest at each place.
SENTENCE_END = re.compile(
    r"[.!?;。！？；](?:(?<=[。！？；])[”’」』）]*|[\"'”’)\]]{0,2}(?=\s+(?:[\"'“(\[„]?[^\W_]|[`*-])))"
)
LONGEST_SHORT = 12  # characters of what ends with a full stop and ends no sentence
NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|z\.B|d\.h|u\.a|a\.m|p\.m|et al|bzw|ca|cf|etc|est|vs|approx|resp|incl|excl|no|nr|dr|mr|mrs|ms"
    r"|prof|jr|sr|st|sec|fig|vol"
    r"|pp?|bspw|inkl|max|min|dept|inc|ltd|corp)|\b\d{1,2}\\?|\b[A-Z])\.$",
    re.I,
)

# The beginning of a log line that reports nothing unusual, that of a file in a listing (rights, links, owner), and how
# long something took: they would crowd out the facts.
ROUTINE = re.compile(
    r"[-dlbcps](?:[r-][w-][xsStT-]){3}[.+@]?\s+\d+\s+\S+\s+\S+\s+|"
    r"\[?(?:\d{4}-\d\d-\d\d[T ]?)?(?:\d\d:\d\d(?::\d\d)?[.,\d]{0,10}Z?\]?)? ?\[?(?:TRACE|DEBUG|INFO)\b\]?:? ?"
)
DURATION = re.compile(r"(?:\bin )?\b\d{1,12}(?:\.\d{1,6})? ?(?:ns|us|µs|ms|s|sec|seconds)\b")

# Where a line of a program gives itself away. Words that prose begins with as well ask for more signs of a program.
CODE = re.compile(
    r"(?:async def|def|class|fn|func|function|impl|struct|interface|enum|namespace|typedef)\s+[\w<]"
    r"|(?:except|catch|elif|else|try|finally|do|switch|case|if|for|while|with|match|unless)\b[^.?!]*[:{]$"
    r"|(?:raise|throw|return|yield|await|assert|del|new|delete|goto|lambda)\b.*(?:[(){}=;]|\bErr\b|\bError\b"
    r"|\bException\b|\bNone\b|\bnull\b)|(?:raise|return|throw|yield) [\w.]+$"
    r"|(?:from [\w.]+ import|import [\w.{*]+|#include|using |package |require\(|export |public |private |protected "
    r"|static )"
    r"|@\w[\w.]*(?:\(.*\))?$"
    r"|[\w.\[\]\"']+\s*[-+*/|&%:]?=\s*(?:[\w.]+\(|\[|\{|lambda\b|not\b|await\b|new\b|f?[\"'].*[\"']$|[\w.]+\[|self\."
    r"|None$|True$|False$)"
    r"|(?:[\w]+\.)*[\w]+\((?:.*\)[;,:]?|[^)]*)$"
    r"|[\w.]+(?:: [\w\[\], |.]+)? = \S.*$|[\w.]+=[\w.]+(?:\([^)]*\))?,"
    r"|f?[\"'].*[\"'](?:,|:|\s*%|\.format\()|self\.\w+|\"\"\"|'''|[}\])]+,?$"
)
CODE_ENDS = ("{", "}", ";", "):", "=>", "&&", "||", "==", "!=", ":=", "->")  # of a line
VALUE = re.compile(r"[A-Z][A-Z0-9_]+\s?=\s?[^\s({\[]+$")  # a setting is a fact, wherever it stands


class Sentence(NamedTuple):
    """``speaker`` is who is quoted; empty for the speaker's own words, a quotation mark where the
    text does not name them. ``paragraph`` is the place of its paragraph or printed line in the text."""

    text: str
    speaker: str = ""
    paragraph: int = 0


def sentences_of(text: str, pastes: bool = False) -> Iterator[Sentence]:
    """Return the sentences of what someone said, without secrets and without sentences that state nothing. Who
    ``pastes`` says only what stands between the lines that a program printed.
    """
    lines = redact(_excerpt(text)).splitlines()
    reader = _Reader(_find_printed(lines), _find_pasted(lines) if pastes else frozenset(), pastes)
    for place, (line, following) in enumerate(pairwise([*lines, ""])):
        reader.take(line, place, following)
    places = count()
    for (kind, quotes, name), block in reader.blocks:
        speaker = (disarm(name).translate(PARENTHESES)[:NAME_CHARS].strip() or QUOTED) if quotes else ""
        for paragraph in _paragraphs_of(kind, block):
            place = next(places)
            for sentence in paragraph:
                yield Sentence(disarm(sentence), speaker, place)


QUOTED = "somebody"
PASTED = "pasted text"
NAME_CHARS = 80  # of who or what is quoted, as statements are read back
PARENTHESES = str.maketrans("", "", "()")


@dataclass
class _Reader:
    """The blocks of what a person or an agent said: lines of one kind, whether somebody else said them, and who."""

    printed: Collection[int]  # places of lines of a numbered file
    pasted: Collection[int]  # the same of other lines that a program printed
    has_title: bool  # what looks like a heading states something
    blocks: list[tuple[tuple[Kind, bool, str], list[str]]] = field(default_factory=list)
    fenced: bool = False
    speaker: str = ""  # whom the next quote quotes
    file: str = ""  # that all further lines stand in

    def take(self, line: str, place: int, following: str) -> None:
        if not place and (label := LABELLED_QUOTE.match(line)):
            line = line[label.end() :]
        bare = line.strip()
        if bare.startswith("<") and (attached := ATTACHED.match(bare)):
            self.file = attached[1]
        if self.fenced:
            self.fenced = not bare.startswith(FENCES)
            return
        quote = QUOTE.match(line)
        if quote and place not in self.printed:
            line = line[quote.end() :]
            is_quoted_twice = QUOTE.match(line) or WROTE.match(line.strip())  # it stands where it was said first
            self._put(Kind.SILENT if is_quoted_twice else Kind.PROSE, line, quotes=True)
            return
        kind = Kind.SILENT if place in self.printed else self._kind(bare, following)
        if kind is Kind.PROSE and place in self.pasted:
            self._put(Kind.PRINTED, line, quotes=True, speaker=PASTED)
            return
        if bare and kind is Kind.PROSE:
            self.speaker = self.speaker if not self.blocks or not self.blocks[-1][0][1] else ""
        self._put(kind, line)

    def _kind(self, bare: str, following: str) -> Kind:
        if bare.startswith(FENCES):
            self.fenced = True
            return Kind.SILENT
        names_speaker = bare.endswith(":") and len(bare) <= LINE_CHARS and following.strip()[:1] in ("", ">")
        if wrote := WROTE.match(bare) if names_speaker else None:
            self.speaker = wrote[1]
            return Kind.SILENT
        is_frame = MARK.match(bare) or ATTACHED.match(bare) or (self.file and bare == "</file>")
        is_heading = not self.has_title and HEADING.match(bare)
        return Kind.SILENT if is_frame or is_heading or is_code_line(bare) else Kind.PROSE

    def _put(self, kind: Kind, line: str, quotes: bool = False, speaker: str = "") -> None:
        key = kind, quotes or bool(self.file), self.file or speaker or (self.speaker if quotes else "")
        if self.blocks and self.blocks[-1][0] == key:
            self.blocks[-1][1].append(line)
        else:
            self.blocks.append((key, [line]))


def _find_printed(lines: Sequence[str]) -> set[int]:
    """Return the places of lines that a program printed of a file, numbered in rising order."""
    places: set[int] = set()
    run: list[int] = []
    last = -1
    for place, line in enumerate(lines):
        match = NUMBERED.match(line) if line[:9].lstrip()[:1].isdigit() else None
        number = int(match[1]) if match else -1
        if match and run and last < number <= last + 200:
            run.append(place)
        elif match or run:
            _close(run, lines, places)
            run = [place] if match else []
        last = number
    _close(run, lines, places)
    return places


def _close(run: list[int], lines: Sequence[str], places: set[int]) -> None:
    """End a run of numbered lines. People number their points too, so half of them must be code."""
    if len(run) < FEWEST_PRINTED:
        return
    texts = [match[2].strip() for place in run if (match := NUMBERED.match(lines[place]))]
    if 2 * sum(not text or _has_form_of_code(text) for text in texts) >= len(run):
        places.update(run)


def _find_pasted(lines: Sequence[str]) -> set[int]:
    """Return the places of lines in paragraphs that a program printed, by the form of most of their lines. What stands
    in fences is marked already, and ends a paragraph.
    """
    bare = without_fenced(lines)
    odd = {place for place, line in enumerate(bare) if PRINTED.match(line[:LINE_CHARS]) or is_code_line(line.strip())}
    places: set[int] = set()
    for is_blank, group in groupby(range(len(bare)), lambda place: not bare[place].strip()):
        paragraph = list(group)
        printed = odd.intersection(paragraph)
        if not is_blank and 2 * len(printed) >= len(paragraph) and len(printed) >= min(FEWEST_PRINTED, len(paragraph)):
            places.update(range(min(printed), max(printed) + 1))
    return places if len(odd) >= FEWEST_PRINTED else set()


def without_fenced(lines: Sequence[str]) -> list[str]:
    bare: list[str] = []
    fenced = False
    for line in lines:
        is_fence = line.lstrip().startswith(FENCES)
        fenced ^= is_fence
        bare.append("" if fenced or is_fence else line)
    return bare


def _paragraphs_of(kind: Kind, lines: Sequence[str]) -> Iterator[Iterator[str]]:
    """Yield the sentences of each paragraph, or of each line that a program printed."""
    if kind is Kind.PRINTED:
        yield from (_split_long(LONG_WORD.sub(r"\1…", line)) for line in lines)
    elif kind is Kind.PROSE:
        yield from map(_sentences_in, _paragraphs(lines))


def _sentences_in(paragraph: str) -> Iterator[str]:
    held = ""
    text = LONG_WORD.sub(r"\1…", paragraph)
    ends = [0, *(match.end() for match in SENTENCE_END.finditer(text)), len(text)]
    for begin, end in pairwise(ends):
        held = f"{held} {text[begin:end].strip()}".strip()
        if not (held.endswith(".") and NO_END.search(held[-LONGEST_SHORT:])):
            yield from _split_long(held)
            held = ""
    if held:
        yield from _split_long(held)


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """Join lines that were wrapped. Blank lines go."""
    for is_blank, group in groupby(map(str.rstrip, lines), lambda line: not line):
        paragraph = [] if is_blank else list(group)
        if len(paragraph) == 1:
            yield paragraph[0].strip()
            continue
        widest = max(map(columns, paragraph), default=0)
        run: list[str] = []
        for line, following in pairwise([*paragraph, ""]):
            run.append(line)
            if _ends(line, following.lstrip()):
                yield from _without_breaks(run, widest)
                run = []


def _ends(line: str, following: str) -> bool:
    is_closed = line[-1] in ".!?:;。！？；" and not following[:1].islower()
    return not following or is_closed or bool(BULLET.match(following))


def _without_breaks(run: Sequence[str], widest: int) -> Iterator[str]:
    """Join lines that were broken since the next word no longer fitted into the width of their paragraph: most of those
    that something follows.
    """
    broken = [
        widest >= WRAPPED_COLUMNS and _is_full(line, following.lstrip(), widest) for line, following in pairwise(run)
    ]
    if 2 * sum(broken) <= len(broken):
        yield from map(str.strip, run)
        return
    held = ""
    for line, goes_on in zip(map(str.strip, run), [*broken, False], strict=True):
        held = _joined(held, line)
        if not goes_on:
            yield held
            held = ""


def _is_full(line: str, following: str, widest: int) -> bool:
    word = following[0] if columns(following[0]) > 1 else following.split(maxsplit=1)[0]
    return line[-1] in HYPHENS or columns(line) + 1 + columns(word) > widest


def _joined(held: str, line: str) -> str:
    if held[-1:] in HYPHENS:
        return held[:-1] + line
    return held + line if columns(held[-1] + line[0]) == 4 else f"{held} {line}"


def _split_long(sentence: str) -> Iterator[str]:
    sentence = " ".join(sentence[bullet.end() :].split() if (bullet := BULLET.match(sentence)) else sentence.split())
    if sentence[:1] == "(" and ")" not in sentence:
        sentence = sentence[1:]
    elif sentence[-1:] == ")" and "(" not in sentence and sentence[-2:-1] not in ":;=-^":
        sentence = sentence[:-1]
    while len(sentence) > LONGEST_STATEMENT + MARK_CHARS:
        cut = sentence.rfind(" ", LONGEST_STATEMENT // 2, LONGEST_STATEMENT)
        cut = LONGEST_STATEMENT if cut < 0 else cut
        yield sentence[:cut] + PART_END
        sentence = PART_BEGIN + sentence[cut:].strip()
    if len(sentence) > 2 or (len(sentence) == 2 and not sentence.isascii()):
        yield sentence


def _excerpt(text: str) -> str:
    """Return the beginning and the end of a text that is too long to read whole."""
    if len(text) <= MOST_CHARS:
        return text
    half = MOST_CHARS // 2
    return f"{text[:half].rpartition(' ')[0] or text[:half]}\n{text[-half:].partition(' ')[2] or text[-half:]}"


def asks(text: str) -> bool:
    """Check for a question, whatever closes it."""
    return text.rstrip("*_` )]\"'”’").endswith(("?", "？"))


def without_routine(line: str) -> str:
    """Strip clock time, level and durations from a log line that reports nothing unusual."""
    routine = ROUTINE.match(line)
    return DURATION.sub("", line[routine.end() :]) if routine and routine.end() else line


def is_code_line(bare: str) -> bool:
    """Check whether a line is a program's: what people and agents write is prose unless it is code beyond doubt."""
    if not bare or bare.endswith((".", "?", "!", "。")) or BULLET.match(bare) or VALUE.match(bare):
        return False
    return _has_form_of_code(bare) and not _reads_as_prose(bare)


def _has_form_of_code(bare: str) -> bool:
    return bare.endswith(CODE_ENDS) or (bare.endswith(":") and ") ->" in bare) or bool(CODE.match(bare))


def _reads_as_prose(line: str) -> bool:
    """Check for several plain words in a row: a person may write about ``x = f(y)``."""
    words = line.split()
    return (
        sum(word.strip("`'\",.;:()").isalpha() for word in words) >= max(3, 0.6 * len(words))
        and not line.endswith(("{", "}", ";", "):", ") {"))
        and not re.match(r"(?:async def|def|class|except|raise|return|import|from|elif)\b", line)
    )
