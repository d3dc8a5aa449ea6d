"""A model's reasoning before an answer, as its turn shows it."""

from dataclasses import dataclass

from dialogs.models import Turn

SHOWN_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The reasoning of a turn: the beginning of its text, its whole length in characters, and its seconds."""

    text: str
    chars: int
    seconds: int

    @property
    def is_cut(self) -> bool:
        return self.chars > len(self.text)


def reasoning_of(turn: Turn) -> Reasoning | None:
    result = turn.reasoning
    if not result:
        return None
    return Reasoning(result["text"][:SHOWN_CHARS], len(result["text"]), round(result["ms"] / 1000))
