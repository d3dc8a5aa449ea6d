"""Parser that separates thinking from an answer, for servers that leave it between tags in the text."""

import re
from collections.abc import Iterator

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
# Only pieces with one of these characters, which are few, are compared with each tag.
TAG_START = re.compile("[" + re.escape("".join(sorted({tag[0] for tag in CLOSING.values()}))) + "]")
QUOTES = "`\"'“‘«"  # a tag after one of these is quoted
FENCE = "```"

Parted = TextDelta | ReasoningDelta | Rethought


class ThinkTags:
    """A parser that takes a text's pieces in order by ``feed``, and ends by ``close``.

    An opening tag counts only at the beginning of the text and right after a closing tag, since an answer may talk
    about tags. If a template writes the opening tag, the text begins with thinking, and only the first closing tag
    shows it. The first ``held`` characters are held back for such a tag. Text that was released before it comes is
    taken back by ``Rethought``.
    """

    def __init__(self, held: int = 0) -> None:
        self._held = held
        self._rest = ""  # text that is held back: it may become a tag, or prove to be thinking
        self._searched = 0  # characters of ``_rest`` that were searched for a closing tag
        self._said: list[str] = []  # released text that may prove to be thinking
        self._closing = ""  # the closing tag that ends the present thinking; empty outside of thinking
        self._begins = False  # whether the present thinking has no text yet
        self._has_thought = False  # whether any thinking was found
        self._is_text = False  # whether the text began without a tag, so that a closing tag may come
        self._is_plain = False  # whether the rest is the answer, in which no tag counts
        self.was_untagged = False  # whether thinking came without an opening tag

    def hold_nothing(self) -> None:
        """Hold nothing back, since thinking comes in a field of its own."""
        self._held = 0

    def feed(self, piece: str) -> Iterator[Parted]:
        if self._is_plain:
            yield TextDelta(piece)
            return
        if self._is_text and self._said and not self._rest and not TAG_START.search(piece):  # true of most pieces
            self._said.append(piece)
            yield TextDelta(piece)
            return
        self._rest += piece
        while self._rest:
            if self._closing:
                thought, is_over = self._take_thinking()
                if thought:
                    yield ReasoningDelta(thought)
                if not is_over:
                    return
            elif self._is_text:
                yield from self._hold_or_release()
                if not self._has_thought:
                    return
            elif not self._take_opening_tag() and not self._is_text:
                yield from self._release()
                return

    def close(self) -> Iterator[Parted]:
        """Yield the text that was held back. White space alone is no answer."""
        rest, self._rest = self._rest, ""
        if self._closing and rest:
            yield ReasoningDelta(rest)
        elif rest.strip() or (rest and self._said):
            yield TextDelta(rest)

    def _take_opening_tag(self) -> bool:
        """Remove an opening tag from the beginning of the text, and return whether there was one."""
        start = self._rest.lstrip()
        tag = next((tag for tag in CLOSING if start.startswith(tag)), "")
        if tag:
            self._closing, self._rest = CLOSING[tag], start.removeprefix(tag)
            self._begins = self._has_thought = True
            return True
        if mark := next((mark for mark in ANSWERS if start.startswith(mark)), ""):
            self._rest, self._is_plain = start.removeprefix(mark), True
            return False
        if self._has_thought:
            self._rest = start  # white space between thinking and answer belongs to neither
        is_no_tag = bool(start) and not any(tag.startswith(start) for tag in (*CLOSING, *ANSWERS))
        self._is_plain = is_no_tag and self._has_thought
        self._is_text = is_no_tag and not self._has_thought
        return False

    def _release(self) -> Iterator[TextDelta]:
        """Yield the first words of an answer once they cannot be a tag."""
        if self._is_plain and self._rest:
            text, self._rest = self._rest, ""
            yield TextDelta(text)

    def _hold_or_release(self) -> Iterator[Parted]:
        """Hold, release or take back text that may turn out to be thinking."""
        tags = CLOSING.values() if TAG_START.search(self._rest, self._searched) else ()
        found = [(place, tag) for tag in tags if (place := self._rest.find(tag, self._searched)) >= 0]
        if found:
            place, tag = min(found)
            before, behind = self._rest[:place], self._rest[place + len(tag) :]
            self._is_text = False
            if _speaks_of_tags("".join(self._said) + before):
                text, self._rest, self._is_plain = self._rest, "", True
                yield TextDelta(text)
                return
            if self._said:
                yield Rethought()
            if before and (self._said or before.strip()):
                yield ReasoningDelta(before)
            self._rest, self._has_thought, self.was_untagged = behind, True, True
            return
        kept = max((_possible_tag(self._rest, tag) for tag in tags), default=0)
        if len(self._rest) <= self._held or not (self._said or self._rest[: len(self._rest) - kept].strip()):
            self._searched = len(self._rest) - kept
            return
        self._held = self._searched = 0
        text, self._rest = self._rest[: len(self._rest) - kept], self._rest[len(self._rest) - kept :]
        if text:
            self._said.append(text)
            yield TextDelta(text)

    def _take_thinking(self) -> tuple[str, bool]:
        """Return the text that is certainly thinking, and whether the closing tag has come."""
        if self._begins:
            self._rest = self._rest.lstrip("\n")
            self._begins = not self._rest
        thought, tag, behind = self._rest.partition(self._closing)
        if tag:
            self._closing, self._rest = "", behind
            return thought, True
        kept = _possible_tag(self._rest, self._closing)
        thought, self._rest = self._rest[: len(self._rest) - kept], self._rest[len(self._rest) - kept :]
        return thought, False


def _speaks_of_tags(text: str) -> bool:
    """Check whether an answer that begins with ``text`` only talks about the closing tag that follows."""
    return is_quoted(text) or any(tag in text for tag in CLOSING)


def is_quoted(before: str) -> bool:
    """Check whether the text after ``before`` stands in quotation marks or in a block of code."""
    return before.endswith(tuple(QUOTES)) or before.count(FENCE) % 2 == 1


def _possible_tag(text: str, tag: str) -> int:
    """Return the number of characters at the end of ``text`` that may be the beginning of ``tag``."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
