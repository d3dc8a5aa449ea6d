"""One text, put together from live text, committed turns and notices, and beside it the reasoning:
each character once, in order. Pure."""

BETWEEN_TURNS = "\n\n"


class Restarted(Exception):
    """Raised when a new attempt says something else than the lost one, of which the client already has a part."""


class Composer:
    """The text of one answer as its client has it. Each method returns what is new to the client."""

    def __init__(self) -> None:
        self._sent = ""  # the text of the part under way that the client has
        self._live = ""  # the text of ``_generation`` so far
        self._generation = 0
        self._pause = ""  # what separates the next text from the last one
        self._at_line_start = True

    def live_text(self, generation: int, position: int, text: str) -> str:
        """Take text of a running generation from a position on, in characters. Gaps are left to the turn."""
        if generation < self._generation:
            return ""
        if generation > self._generation:
            self._generation, self._live = generation, ""
        if position > len(self._live):
            return ""
        self._live += text[len(self._live) - position :]
        return self._new(self._live, whole=False)

    def turn(self, generation: int, text: str, *, goes_on: bool = False, thought: str = "") -> str:
        """Take a committed part of the answer.

        ``goes_on`` says that the next part continues its sentence. What was sent as text and proved to be thinking
        stays with the client, and the answer follows it.
        """
        if self._sent and not text.startswith(self._sent) and thought.startswith(self._sent.rstrip()):
            self._sent, self._pause = "", BETWEEN_TURNS
        new = self._new(text, whole=True)
        if text:
            self._pause = "" if goes_on else BETWEEN_TURNS
        self._sent = ""
        self._generation, self._live = generation + 1, ""  # later frames of this generation hold nothing new
        return new

    def text(self, text: str) -> str:
        """Add something that is said apart from any model call."""
        return self.turn(self._generation, text)

    def notice(self, text: str) -> str:
        before = "" if self._at_line_start else BETWEEN_TURNS
        self._pause, self._at_line_start = "", True
        return f"{before}{text}\n\n"

    def _new(self, text: str, *, whole: bool) -> str:
        if not text.startswith(self._sent):
            if whole or not self._sent.startswith(text):
                raise Restarted
            return ""
        new = text[len(self._sent) :]
        self._sent = text
        if not new:
            return ""
        pause, self._pause = ("" if self._at_line_start else self._pause), ""
        self._at_line_start = new.endswith("\n")
        return pause + new


class Thoughts:
    """The reasoning of all model calls of an answer, those of lost attempts too: it is no part of the answer."""

    def __init__(self) -> None:
        self._generation = 0
        self._thought = ""
        self._has_begun = False

    def piece(self, generation: int, position: int, text: str) -> str:
        """Return a generation's reasoning from a position on, in characters. Gaps are left to its turn."""
        if generation > self._generation:
            self._generation, self._thought = generation, ""
        known = len(self._thought)
        if generation < self._generation or position > known or not (new := text[known - position :]):
            return ""
        pause = BETWEEN_TURNS if self._has_begun and not known else ""
        self._thought, self._has_begun = self._thought + new, True
        return pause + new
