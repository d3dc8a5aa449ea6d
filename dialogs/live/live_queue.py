"""The live text that is still to be sent to one page."""

from collections import deque
from enum import Enum, auto
from typing import Any

MOST_FRAMES = 200  # a page that leaves more unsent gets the text from its beginning instead


class State(Enum):
    """What a page has of the live text."""

    OPENING = auto()  # none yet, since events from before it opened are still to be sent
    INTERRUPTED = auto()  # a part, or none: the text has to be sent from its beginning
    FOLLOWING = auto()  # all that was sent


class LiveQueue:
    """Frames of live text in order. A frame waits for the start of its generation, which is an event.

    The start comes after its message and after the end of the answer before. The page would otherwise show the text in
    their place, and then move it.
    """

    def __init__(self) -> None:
        self.state = State.OPENING
        self.started_generation = 0  # the newest generation whose start was sent
        self._frames: deque[dict[str, Any]] = deque()

    @property
    def is_open(self) -> bool:
        return self.state is not State.OPENING

    def note_start(self, generation: int) -> None:
        self.started_generation = max(self.started_generation, generation)

    def open(self) -> None:
        """Note that all events from before the page opened were sent."""
        if not self.is_open:
            self.state = State.INTERRUPTED

    def add(self, frame: dict[str, Any]) -> bool:
        """Take a frame that the page can use, and return whether it is the only one."""
        if frame.get("reset") and self.is_open:
            self.restart(frame)
        elif self.state is State.FOLLOWING:
            self._frames.append(frame)
            if len(self._frames) > MOST_FRAMES:
                self.interrupt()
        return len(self._frames) == 1

    def interrupt(self) -> None:
        """Drop what was not sent: the page gets the text from its beginning."""
        self._frames.clear()
        if self.state is State.FOLLOWING:
            self.state = State.INTERRUPTED

    def restart(self, snapshot: dict[str, Any] | None) -> None:
        """Go on from the whole text, or from nothing if no text is known."""
        self._frames = deque([snapshot] if snapshot else [])
        self.state = State.FOLLOWING

    def waits(self, ended_generation: int) -> bool:
        """Check whether the next frame waits for its start. Text of a generation that has ended waits for nothing."""
        return bool(self._frames) and self._frames[0]["generation"] > max(self.started_generation, ended_generation)

    def next_frame(self, ended_generation: int) -> dict[str, Any] | None:
        """Take the next frame that may be sent, or None. Frames of generations that have ended are left out."""
        while self._frames and not self.waits(ended_generation):
            frame = self._frames.popleft()
            if frame["generation"] > ended_generation:
                return frame
        return None
