"""Parser that separates thinking from an answer, for servers that leave it between tags in the text."""

import re
from collections.abc import Iterator
from enum import Enum, auto

from dominds.llm.stream import ReasoningDelta, Rethought, TextDelta

# mm: MiniMax; seed: ByteDance; thought: Google; the last two are taken from Open WebUI
NAMES = ("think", "mm:think", "seed:think", "thinking", "thought", "reason", "reasoning")
# Closing tags by opening tag. Those added below are of Mistral, Moonshot, OpenThinker, Cohere, and of gpt-oss on a
# server without its parser.
CLOSING = {f"<{form}>": f"</{form}>" for name in NAMES for form in (name, name.upper(), name.title())}
CLOSING |= {
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    **dict.fromkeys(
        (f"{start}<|channel|>analysis<|message|>" for start in ("", "<|start|>assistant")),
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
}
# The marks that gpt-oss writes before an answer without thinking.
ANSWERS = ("<|channel|>final<|message|>", "<|start|>assistant<|channel|>final<|message|>")
# gpt-oss on a server that drops these marks writes "analysis", its thinking and "assistantfinal" without spaces between
# them. An answer may begin with the first word, but goes on with a space or in lower case then.
BARE = "analysis"
BARE_OPENING = re.compile(BARE + r"(?=[^\W\d_a-z])")
BARE_CLOSING = "assistantfinal"
# Only pieces with one of these characters, which are few, are compared with each tag.
TAG_START = re.compile("[" + re.escape("".join(sorted({tag[0] for tag in CLOSING.values()}))) + "]")
QUOTES = "`\"'“‘«"  # a tag after one of these is quoted
FENCE = "```"

Parted = TextDelta | ReasoningDelta | Rethought


class Place(Enum):
    """The kind of place in the text up to which it was read."""

    START = auto()  # the beginning: an opening tag may come, or the mark of an answer
    OPENED = auto()  # right after an opening tag: line breaks belong to the tag
    THINKING = auto()  # in thinking, which ends with its closing tag
    CLOSED = auto()  # right after a closing tag: as at the beginning, but what is no tag is the answer
    UNTAGGED = auto()  # in text that began without a tag: a closing tag would show that it was thinking
    ANSWER = auto()  # in the answer: no tag counts any more


class ThinkTags:
    """A parser that takes a text's pieces in order by ``feed``, and ends by ``close``.

    An opening tag counts only at the beginning of the text and right after a closing tag, since an answer may talk
    about tags. If a template writes the opening tag, the text begins with thinking, and only the first closing tag
    shows it. The first ``held`` characters are held back for such a tag. Text that was released before it comes is
    taken back by ``Rethought``.
    """

    def __init__(self, held: int = 0) -> None:
        self._held = held
        self._place = Place.START
        self._rest = ""  # text that is held back: it may become a tag, or prove to be thinking
        self._closing = ""  # the closing tag of the present thinking
        self._said: list[str] = []  # text that was released; it may prove to be thinking if it began without a tag
        self._searched = 0  # characters of ``_rest`` that were searched for a closing tag
        self.was_untagged = False  # whether thinking came without an opening tag

    def hold_nothing(self) -> None:
        """Hold nothing back, since thinking comes in a field of its own."""
        self._held = 0

    def feed(self, piece: str) -> Iterator[Parted]:
        if not self._rest and self._is_free(piece):  # true of most pieces: they need no search for tags
            self._said.append(piece)
            yield TextDelta(piece)
            return
        self._rest += piece
        before = None
        while self._rest and before is not self._place:
            before = self._place
            match before:
                case Place.START | Place.CLOSED:
                    self._read_opening()
                case Place.OPENED:
                    self._rest = self._rest.lstrip("\n")
                    self._place = Place.THINKING if self._rest else Place.OPENED
                case Place.THINKING:
                    yield from self._read_thinking()
                case Place.UNTAGGED:
                    yield from self._read_untagged()
                case Place.ANSWER:
                    yield TextDelta(self._release(0))

    def _is_free(self, piece: str) -> bool:
        """Check whether a piece is text for certain, as far as is known so far."""
        return self._place is Place.ANSWER or bool(self._said and not TAG_START.search(piece))

    def close(self) -> Iterator[Parted]:
        """Yield the text that was held back. White space alone is no answer."""
        rest = self._release(0)
        if rest and self._place is Place.THINKING:
            yield ReasoningDelta(rest)
        elif rest.strip() or (rest and self._said):
            yield TextDelta(rest)

    def _read_opening(self) -> None:
        """Read a tag or mark at the beginning of the text, which white space may precede."""
        start = self._rest.lstrip()
        if tag := next((tag for tag in CLOSING if start.startswith(tag)), ""):
            self._place, self._closing, self._rest = Place.OPENED, CLOSING[tag], start.removeprefix(tag)
        elif BARE_OPENING.match(start):
            self._place, self._closing, self._rest = Place.OPENED, BARE_CLOSING, start.removeprefix(BARE)
        elif mark := next((mark for mark in ANSWERS if start.startswith(mark)), ""):
            self._place, self._rest = Place.ANSWER, start.removeprefix(mark)
        else:
            is_first = self._place is Place.START
            self._rest = self._rest if is_first else start  # white space behind thinking belongs to nothing
            if start and not any(tag.startswith(start) for tag in (*CLOSING, *ANSWERS, BARE)):
                self._place = Place.UNTAGGED if is_first else Place.ANSWER

    def _read_thinking(self) -> Iterator[ReasoningDelta]:
        """Release thinking up to its closing tag, or up to what may be the beginning of that tag."""
        thought, tag, behind = self._rest.partition(self._closing)
        if tag:
            self._place, self._rest = Place.CLOSED, behind
        else:
            thought = self._release(_possible_tag(self._rest, self._closing))
        if thought:
            yield ReasoningDelta(thought)

    def _read_untagged(self) -> Iterator[Parted]:
        """Release text without a tag once enough of it is held, or part it at the closing tag that shows thinking."""
        tags = CLOSING.values() if TAG_START.search(self._rest, self._searched) else ()
        found = [(place, tag) for tag in tags if (place := self._rest.find(tag, self._searched)) >= 0]
        if found:
            yield from self._part_untagged(*min(found))
            return
        kept = max((_possible_tag(self._rest, tag) for tag in tags), default=0)
        free = len(self._rest) - kept
        if len(self._rest) <= self._held or not (self._said or self._rest[:free].strip()):
            self._searched = free
            return
        self._held = self._searched = 0
        if text := self._release(kept):
            self._said.append(text)
            yield TextDelta(text)

    def _part_untagged(self, place: int, tag: str) -> Iterator[Parted]:
        """Take all text before a closing tag as thinking, unless the text only talks about the tag."""
        before, behind = self._rest[:place], self._rest[place + len(tag) :]
        if _speaks_of_tags("".join(self._said) + before):
            self._place = Place.ANSWER
            return
        self._place, self._rest, self.was_untagged = Place.CLOSED, behind, True
        if self._said:
            yield Rethought()
        if before.strip() or (before and self._said):
            yield ReasoningDelta(before)
        self._said.clear()

    def _release(self, kept: int) -> str:
        """Return the text that is held, and go on holding its last ``kept`` characters."""
        end = len(self._rest) - kept
        text, self._rest = self._rest[:end], self._rest[end:]
        return text


def _speaks_of_tags(text: str) -> bool:
    """Check whether an answer that begins with ``text`` only talks about the closing tag that follows."""
    return is_quoted(text) or any(tag in text for tag in CLOSING)


def is_quoted(before: str) -> bool:
    """Check whether the text after ``before`` stands in quotation marks or in a block of code."""
    return before.endswith(tuple(QUOTES)) or before.count(FENCE) % 2 == 1


def _possible_tag(text: str, tag: str) -> int:
    """Return the number of characters at the end of ``text`` that may be the beginning of ``tag``."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
