"""The place of one page in its dialog's events."""


class EventCursor:
    """The number of the last event that was sent, and whether there may be newer ones. Times are monotonic."""

    def __init__(self, sent: int, now: float) -> None:
        self.sent = sent
        self.announced_at = now  # when a read last became necessary
        self._announced = 0  # the newest event that was announced
        self._may_have_missed = True  # there may be events that nobody announced

    @property
    def is_behind(self) -> bool:
        return self._may_have_missed or self._announced > self.sent

    def announce(self, seq: int, now: float) -> None:
        """Note that there are events up to ``seq``; 0 says that some may have been missed."""
        self._may_have_missed = self._may_have_missed or seq == 0
        self._announced = max(self._announced, seq)
        self.announced_at = now

    def repeat(self) -> None:
        """Have a read repeated that failed, that ended before the newest event, or that was not sent."""
        self._may_have_missed = True

    def note_read(self, begun_at: float) -> None:
        """Note that a read has everything that was announced before it began."""
        if self.announced_at <= begun_at:
            self._may_have_missed, self._announced = False, 0
