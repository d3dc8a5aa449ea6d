"""The reader of messages, which divides a text into blocks and returns the sentences of those that say something.

A block is a run of lines of one kind and one speaker. Programs, headings and the runtime's own marks say nothing. What
somebody quotes is told as quoted. The reader passes over the lines once, and its work is linear in the text.
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

# A sentence of more characters than both together is cut into parts of at most the first, at blanks. The second leaves
# room for the marks that the runtime adds to a sentence.
LONGEST_STATEMENT, MARK_CHARS = 400, 120
MOST_CHARS = 120_000  # of a text that are read, a half at its beginning and a half at its end
HYPHENS = frozenset(("", "\xad", "\u2010"))  # signs at the end of a line that belong to the break, not to the word
WRAPPED_COLUMNS = 50  # the least width of a wrapped paragraph: mails are wrapped at 60 to 80


class Kind(StrEnum):
    """The kind of a line of a message."""

    PROSE = "prose"
    PRINTED = "printed"  # pasted output of a program, where each line stands for itself
    SILENT = "silent"  # says nothing: code, headings, marks of the runtime, the name above a quote, the frame of a file


ATTACHED = re.compile(r'<file name="([^"]{1,120})">$')  # the first line of an attached file; only files follow
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
# Forms of lines that programs print and people do not write: indented, in columns, with a sign or a clock at the
# beginning, or without any blank.
PRINTED = re.compile(
    r"\s+(?![-*•+] |\d{1,3}[.)] )\S|[-+#;](?=\S)|[<|$%=~^{}\\]|@@|//|/\*|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
    r"|\[?\d\d:\d\d:\d\d\b|.*[^\s.!?:;,。] {2,}\S|.*\S\t|[!-~]{12,}$|\w+ \"[^\"]*\"$"
)
LINE_CHARS = 200  # of a line that decide about its form
FEWEST_PRINTED = 3  # lines of such a form that make a paragraph a paste, if they are half of its lines as well
# The mark or the number before an entry of a list.
BULLET = re.compile(
    rf"(?:[-*#\u2010-\u2015\u2022-\u2043\u25a0-\u27bf]+|\d{{1,3}}(?:\.\d{{1,3}}){{0,4}}\\?[.)])\s+"
    rf"|\d{{1,3}}[.、．](?={WIDE.pattern})"
)
# A heading in an answer. In a person's message such a line says what the message is about, and is a sentence.
HEADING = re.compile(r"#{1,6}\s|(?:\d{1,3}\\?[.)]\s+)?\*\*[^*]*[^*.!?:;。！？；]\*\*$")
# The name before a message that begins with a quote: "Anna: > quoted".
LABELLED_QUOTE = re.compile(r"[A-Z][\w.-]{0,30}: (?=> ?(?:\d{1,3}\\?\. )?[^\W\d]|> ?>)")
LONG_WORD = re.compile(r"([!-~]{60})[!-~]{140,}")  # encoded data, for which some patterns take quadratic time
# It begins with a class of signs, so that the rest is only tried where one of them stands.
SENTENCE_END = re.compile(
    r"[.!?;。！？；](?:(?<=[。！？；])[”’」』）]*|[\"'”’)\]]{0,2}(?=\s+(?:[\"'“(\[„]?[^\W_]|[`*-])))"
)
LONGEST_SHORT = 12  # characters at the end of a text in which NO_END is looked for
# An abbreviation, a number of a list or an initial, whose full stop ends no sentence.
NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|z\.B|d\.h|u\.a|a\.m|p\.m|et al|bzw|ca|cf|etc|est|vs|approx|resp|incl|excl|no|nr|dr|mr|mrs|ms"
    r"|prof|jr|sr|st|sec|fig|vol"
    r"|pp?|bspw|inkl|max|min|dept|inc|ltd|corp)|\b\d{1,2}\\?|\b[A-Z])\.$",
    re.I,
)

# The beginning of a log line that reports nothing unusual, or of a line in a listing of files (rights, links, owner),
# and how long something took. Facts need the room.
ROUTINE = re.compile(
    r"[-dlbcps](?:[r-][w-][xsStT-]){3}[.+@]?\s+\d+\s+\S+\s+\S+\s+|"
    r"\[?(?:\d{4}-\d\d-\d\d[T ]?)?(?:\d\d:\d\d(?::\d\d)?[.,\d]{0,10}Z?\]?)? ?\[?(?:TRACE|DEBUG|INFO)\b\]?:? ?"
)
DURATION = re.compile(r"(?:\bin )?\b\d{1,12}(?:\.\d{1,6})? ?(?:ns|us|µs|ms|s|sec|seconds)\b")

# The form of a line of a program. After a word with which prose may begin as well, more signs of a program are needed.
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
VALUE = re.compile(r"[A-Z][A-Z0-9_]+\s?=\s?[^\s({\[]+$")  # a setting, which is a fact even among code


class Sentence(NamedTuple):
    """A sentence of a text.

    ``speaker`` is who is quoted, or empty for the own words of whoever said the text. ``paragraph`` is the place of the
    sentence's paragraph, or of a printed line, among those of the text.
    """

    text: str
    speaker: str = ""
    paragraph: int = 0


def sentences_of(text: str, pastes: bool = False) -> Iterator[Sentence]:
    """Return the sentences of a text, without secrets and without lines that say nothing.

    With ``pastes``, as for people, lines that a program seems to have printed are quoted, and headings are sentences.
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


QUOTED = "somebody"  # the speaker of a quote whom the text does not name
PASTED = "pasted text"  # the speaker of lines that a program printed
NAME_CHARS = 80  # the greatest length of a speaker's name, as statements are read back
PARENTHESES = str.maketrans("", "", "()")


@dataclass
class _Reader:
    """The blocks of a text, made of its lines one by one.

    A block is its kind, whether it is quoted, from whom, and its lines.
    """

    printed: Collection[int]  # places of numbered lines of a file
    pasted: Collection[int]  # places of other lines that a program printed
    has_title: bool  # whether a line in the form of a heading says something
    blocks: list[tuple[tuple[Kind, bool, str], list[str]]] = field(default_factory=list)
    fenced: bool = False  # whether the next line stands in a code fence
    speaker: str = ""  # of the next quote
    file: str = ""  # the name of the file to which the next line belongs

    def take(self, line: str, place: int, following: str) -> None:
        """Add a line at its place in the text. ``following`` is the next line."""
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
            # A quote within a quote stands where it was said first.
            is_quoted_twice = QUOTE.match(line) or WROTE.match(line.strip())
            self._put(Kind.SILENT if is_quoted_twice else Kind.PROSE, line, quotes=True)
            return
        kind = Kind.SILENT if place in self.printed else self._kind(bare, following)
        if kind is Kind.PROSE and place in self.pasted:
            self._put(Kind.PRINTED, line, quotes=True, speaker=PASTED)
            return
        if bare and kind is Kind.PROSE and self.blocks and self.blocks[-1][0][1]:
            self.speaker = ""  # a quote ends where own words follow
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
    """Return the places of the lines of a file that a program printed with rising numbers."""
    places: set[int] = set()
    run: list[int] = []
    last = -1
    for place, line in enumerate(lines):
        match = NUMBERED.match(line) if line[:9].lstrip()[:1].isdigit() else None
        number = int(match[1]) if match else -1
        if match and run and last < number <= last + 200:
            run.append(place)
        elif match or run:
            _add_printed(run, lines, places)
            run = [place] if match else []
        last = number
    _add_printed(run, lines, places)
    return places


def _add_printed(run: list[int], lines: Sequence[str], places: set[int]) -> None:
    """Add a run of numbered lines to ``places``. People number their points too, so half of the run must be code."""
    if len(run) < FEWEST_PRINTED:
        return
    texts = [match[2].strip() for place in run if (match := NUMBERED.match(lines[place]))]
    if 2 * sum(not text or _has_form_of_code(text) for text in texts) >= len(run):
        places.update(run)


def _find_pasted(lines: Sequence[str]) -> set[int]:
    """Return the places of lines that a program printed, by the form of at least half of the lines of their paragraph.

    Fenced lines are known to be code already. They end a paragraph.
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
    """Return the lines with empty ones in place of those in code fences, and of the fences."""
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
    """Yield the sentences of a paragraph."""
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
    """Yield the paragraphs and the entries of lists. Lines that were wrapped are joined, and blank ones left out."""
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
    """Check whether a paragraph or an entry of a list ends with this line."""
    is_closed = line[-1] in ".!?:;。！？；" and not following[:1].islower()
    return not following or is_closed or bool(BULLET.match(following))


def _without_breaks(run: Sequence[str], widest: int) -> Iterator[str]:
    """Yield the lines of a run. If most of them were wrapped, these are joined with the next line.

    A line was wrapped if the next word no longer fitted into the width of the paragraph.
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
    """Yield a sentence without bullet and unpaired parentheses, or its parts if it is too long."""
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
    """Check whether a text ends with a question mark, apart from closing signs."""
    return text.rstrip("*_` )]\"'”’").endswith(("?", "？"))


def without_routine(line: str) -> str:
    """Return a line of a log or of a listing without clock time, level and durations if it reports nothing unusual."""
    routine = ROUTINE.match(line)
    return DURATION.sub("", line[routine.end() :]) if routine and routine.end() else line


def is_code_line(bare: str) -> bool:
    """Check whether a line is surely one of a program. ``bare`` is the line without blanks around it."""
    if not bare or bare.endswith((".", "?", "!", "。")) or BULLET.match(bare) or VALUE.match(bare):
        return False
    return _has_form_of_code(bare) and not _reads_as_prose(bare)


def _has_form_of_code(bare: str) -> bool:
    return bare.endswith(CODE_ENDS) or (bare.endswith(":") and ") ->" in bare) or bool(CODE.match(bare))


def _reads_as_prose(line: str) -> bool:
    """Check whether most of a line is plain words: a person may write about ``x = f(y)``."""
    words = line.split()
    return (
        sum(word.strip("`'\",.;:()").isalpha() for word in words) >= max(3, 0.6 * len(words))
        and not line.endswith(("{", "}", ";", "):", ") {"))
        and not re.match(r"(?:async def|def|class|except|raise|return|import|from|elif)\b", line)
    )
