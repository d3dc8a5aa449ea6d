"""Parser of thinking that a server leaves in the answer's text, between tags."""

from collections.abc import Iterator

from dominds.llm.stream import ReasoningDelta, TextDelta

NAMES = ("think", "mm:think", "thinking", "thought")  # mm: MiniMax; thought: Google
# By opening tag; the last is Mistral's.
CLOSING = {f"<{name}>": f"</{name}>" for name in NAMES} | {"[THINK]": "[/THINK]"}


class ThinkTags:
    """Feed it a text's pieces in order, then ``close`` it. Tags count at the text's beginning and behind a closing one
    only: an answer may speak of them."""

    def __init__(self) -> None:
        self._rest = ""  # held back: it may become a tag
        self._closing = ""  # of the thinking under way
        self._begins = False  # nothing of it has come yet
        self._has_thought = False
        self._is_plain = False

    def feed(self, piece: str) -> Iterator[TextDelta | ReasoningDelta]:
        if self._is_plain:
            yield TextDelta(piece)
            return
        self._rest += piece
        while self._rest:
            if self._closing:
                thought, is_over = self._thought()
                if thought:
                    yield ReasoningDelta(thought)
                if not is_over:
                    return
            elif not self._opened():
                yield from self._released()
                return

    def close(self) -> Iterator[TextDelta | ReasoningDelta]:
        """What was held back; white space alone is no answer."""
        rest, self._rest = self._rest, ""
        if self._closing and rest:
            yield ReasoningDelta(rest)
        elif rest.strip():
            yield TextDelta(rest)

    def _opened(self) -> bool:
        """Whether the text goes on with an opening tag, which is taken off."""
        start = self._rest.lstrip()
        tag = next((tag for tag in CLOSING if start.startswith(tag)), "")
        if tag:
            self._closing, self._rest = CLOSING[tag], start.removeprefix(tag)
            self._begins = self._has_thought = True
            return True
        if self._has_thought:
            self._rest = start  # what stands between thinking and answer belongs to neither
        self._is_plain = bool(start) and not any(tag.startswith(start) for tag in CLOSING)
        return False

    def _released(self) -> Iterator[TextDelta]:
        """The first words of an answer, once they are known to be no tag."""
        if self._is_plain:
            text, self._rest = self._rest, ""
            yield TextDelta(text)

    def _thought(self) -> tuple[str, bool]:
        """What is surely thinking, and whether its end has come."""
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


def _possible_tag(text: str, tag: str) -> int:
    """Characters at the end of ``text`` that may be the beginning of ``tag``."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
