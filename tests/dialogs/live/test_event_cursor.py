"""When a page needs another look at its dialog's events."""

from dialogs.live.event_cursor import EventCursor


def needs_read(cursor: EventCursor) -> bool:
    return cursor.is_behind


def current(sent: int = 5) -> EventCursor:
    cursor = EventCursor(sent, now=0)
    cursor.note_read(begun_at=1)
    return cursor


def test_a_page_that_opens_needs_a_read_since_nobody_knows_what_came_before() -> None:
    assert needs_read(EventCursor(5, now=0))
    assert not needs_read(current())


def test_only_newer_events_and_lost_announcements_need_a_read() -> None:
    cursor = current()
    cursor.announce(5, now=2)
    assert not needs_read(cursor)
    cursor.announce(6, now=2)
    assert needs_read(cursor)
    cursor.note_read(begun_at=3)
    assert not needs_read(cursor)
    cursor.announce(0, now=4)
    assert needs_read(cursor)


def test_a_read_that_began_before_an_announcement_is_not_enough() -> None:
    cursor = current()
    cursor.announce(6, now=3)
    cursor.note_read(begun_at=2)
    assert needs_read(cursor)
    cursor.sent = 6  # it was in that read after all
    assert not needs_read(cursor)


def test_a_read_that_was_not_sent_is_repeated() -> None:
    cursor = current()
    cursor.repeat()
    assert needs_read(cursor)
