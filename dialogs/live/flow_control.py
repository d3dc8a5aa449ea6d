"""Flow control of one socket: how much it may be sent before it has acknowledged earlier frames."""

UNREAD_BYTES = 256 * 1024  # nothing more is sent while so much is unacknowledged
PING_BYTES = UNREAD_BYTES // 4  # at most between pings, so that a page that reads never waits for the next tick
# A program that never acknowledges is paced by the clock instead.
SILENT_BYTES_PER_SECOND = 32 * 1024
SLOW_SECONDS = 10  # nothing more is sent after so long without an acknowledgement
DEAD_SECONDS = 60  # the socket is closed after so long without an acknowledgement
UNREAD_PING_SECONDS = 2  # between pings, while something is unacknowledged
PING_SECONDS = 25  # between pings otherwise


class FlowControl:
    """Counters of the frames' bytes since the socket opened. Times are monotonic."""

    def __init__(self, now: float) -> None:
        self.sent = 0
        self._acked = 0
        self._acknowledges = False  # whether the other side has ever acknowledged
        self._pinged = 0  # the number of bytes sent by the last ping
        self._opened_at = self._pinged_at = now
        self._progress_at = now  # when it last acknowledged, or last had nothing left to acknowledge

    def count(self, size: int, now: float) -> None:
        if self.sent == self._acked:
            self._progress_at = now
        self.sent += size

    def acknowledge(self, received: int, now: float) -> None:
        self._acknowledges = True
        self._acked = min(max(self._acked, received), self.sent)
        self._progress_at = now

    def is_slow(self, now: float) -> bool:
        unread = self.sent - self._acked
        if not self._acknowledges:
            return unread > UNREAD_BYTES + SILENT_BYTES_PER_SECOND * (now - self._opened_at)
        return unread > UNREAD_BYTES or (unread > 0 and now - self._progress_at > SLOW_SECONDS)

    def is_dead(self, now: float) -> bool:
        return self._acknowledges and self.is_slow(now) and now - self._progress_at > DEAD_SECONDS

    def ping_is_due(self, now: float) -> bool:
        waits = self._acknowledges and self.sent > self._acked
        is_due = now - self._pinged_at >= (UNREAD_PING_SECONDS if waits else PING_SECONDS)
        return is_due or self.sent - self._pinged >= PING_BYTES

    def note_ping(self, now: float) -> None:
        self._pinged, self._pinged_at = self.sent, now
